#!/usr/bin/env bash
# Tests the Debian packages in a new Debian: installation, an extension that is installed later,
# upgrade and downgrade under load, removal, purge. Needs root, for chroot and mounts, and 2 GB.
#
#   scripts/packages-test.sh [SUITE PHP [PROFILE]]    scripts/packages-test.sh bookworm 8.2 release
#
# PROFILE: the build whose binaries are packed: tested (default) or release. For another release of
# Debian than this machine's, the binaries are built in a folder with that release
# (second-root.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh
# shellcheck source=/dev/null
. scripts/debian-root.sh

suite=${1:-bookworm} php=${2:-8.2} profile=${3:-tested}
roots=${SAMOVAR_ROOTS:-/var/cache/samovar}
base=$roots/packages-$suite
[ "$(id -u)" = 0 ] || fail "chroot needs root" "run sudo -E scripts/packages-test.sh"
# shellcheck source=/dev/null
host=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
work=$(mktemp -d)
visitors=
# Compression by xz takes 20 seconds per package.
export PACKAGE_COMPRESSION=gzip
finish() {
    [ -z "$visitors" ] || kill "$visitors" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

# make_packages NUMBER FOLDER: packages of version 0.1.0-NUMBER~test.
make_packages() {
    local version
    version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)-$1~test
    if [ "$suite" = "$host" ]; then
        PACKAGE_VERSION=$version PHP_CONFIG=php-config$php scripts/packages.sh "$profile" "$2" >&2
    else
        local tree=$roots/$suite/work/samovar
        scripts/second-root.sh "$suite" "$php" env PACKAGE_VERSION="$version" PACKAGE_COMPRESSION=$PACKAGE_COMPRESSION SOURCE_DATE_EPOCH="$epoch" \
            scripts/packages.sh "$profile" target/packages/test >&2
        mkdir -p "$2"
        mv "$tree"/target/packages/test/*.deb "$2"
    fi
}

epoch=$(git log -1 --format=%ct)
if [ "$suite" != "$host" ]; then
    scripts/second-root.sh "$suite" "$php" make setup
    scripts/second-root.sh "$suite" "$php" cargo build --locked --profile "$profile" -p samovar -p samovar-php
fi
make_packages 1 "$work/1"
make_packages 1 "$work/again"
make_packages 2 "$work/2"
for file in "$work"/1/*.deb; do
    cmp "$file" "$work/again/$(basename "$file")" || fail "two builds of $(basename "$file") differ"
done
say "two builds are identical"

# The maintainer of a published package is set by PACKAGE_MAINTAINER.
if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error,warning \
        --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "$work"/1/*.deb
    say "lintian has no complaint"
else
    say "lintian is not installed (hint: apt-get install lintian)"
fi

debian_root "$suite" "$base" ca-certificates
root=$work/root
cp -a --reflink=auto "$base" "$root"
mkdir -p "$root/packages/control"
cp -r "$work/1" "$work/2" "$root/packages/"
cp tests/packages/inside.sh "$root/packages/"
cp -r examples/symfony "$root/packages/symfony"
port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

# Visitors come and go as the script inside asks for them.
serve_visitors() {
    local control=$root/packages/control visitor='' status
    trap '[ -z "$visitor" ] || kill "$visitor"; exit' TERM
    while true; do
        if [ -e "$control/load" ]; then
            tests/packages/visitors.py "$port" "$control/count" >"$control/printed" 2>&1 &
            visitor=$!
            while [ -e "$control/load" ]; do sleep 0.05; done
            kill "$visitor" 2>/dev/null || true
            status=0
            wait "$visitor" || status=$?
            visitor=
            [ -s "$control/printed" ] || echo "visitors failed: $status" >"$control/printed"
            mv "$control/printed" "$control/result"
        fi
        sleep 0.05
    done
}
serve_visitors &
visitors=$!

# The namespace of processes ends with the script, and so do all of its processes.
# shellcheck disable=SC2016
unshare --mount --pid --fork --kill-child --propagation private bash -euc '
    root=$1; shift
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        bash /packages/inside.sh "$@"
' bash "$root" "$php" "$port"
say "passed in $suite with PHP $php"
