#!/usr/bin/env bash
# Runs a command in a copy of this tree on another Debian release, and so with another PHP. The
# release is installed in a folder (chroot). The first call creates the folder; each call updates
# it.
#
#   scripts/second-root.sh SUITE PHP COMMAND…    scripts/second-root.sh trixie 8.4 make whole
#
# SAMOVAR_ROOTS: parent folder of these folders; default: /var/cache/samovar.
# SAMOVAR_MIRROR: address of the Debian archive; default: the one in this machine's apt sources.
#
# Rust is this machine's, mounted into the folder. Needs root for chroot and mounts, which end with
# the command. Installs debootstrap if it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh

if [ $# -lt 3 ]; then
    echo "usage: scripts/second-root.sh SUITE PHP COMMAND…" >&2
    exit 2
fi
suite=$1 php=$2
shift 2
root=${SAMOVAR_ROOTS:-/var/cache/samovar}/$suite
tree=/work/samovar
cargo_home=${CARGO_HOME:-$HOME/.cargo}
rustup_home=${RUSTUP_HOME:-$HOME/.rustup}

# The address of a Debian archive (debian, debian-security) in this machine's own apt sources, or
# nothing.
mirror() {
    cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
        grep -v '^#' | grep -oE "[a-z+]+:/[^ ]+/$1/?( |$)" | head -n 1 | sed 's,/* *$,,' || true
}

# Prints an entry of apt's sources: address, suites. Outdated lists are accepted, so a mirror may be
# some days late.
source_of() {
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nCheck-Valid-Until: no\nSigned-By: %s\n\n' \
        "$1" "$2" /usr/share/keyrings/debian-archive-keyring.gpg
}

write_sources() {
    local security
    security=$(mirror debian-security)
    rm -f "$root/etc/apt/sources.list"
    {
        source_of "$archive" "$suite $suite-updates"
        # Without a security archive on this machine, the folder has none either.
        [ -z "$security" ] || source_of "$security" "$suite-security"
    } >"$root/etc/apt/sources.list.d/debian.sources"
}

# Copies the proxies and certificates of this machine's apt.
copy_network() {
    local file
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    for file in /etc/apt/apt.conf.d/*; do
        if grep -qiE 'acquire::(https?|ftp|retries)' "$file"; then
            cp "$file" "$root/etc/apt/apt.conf.d/"
        fi
    done
    mkdir -p "$root/usr/local/share/ca-certificates" "$root/etc/ssl/certs"
    if [ -d /usr/local/share/ca-certificates ]; then
        cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
    fi
    if [ -e /etc/ssl/certs/ca-certificates.crt ] && [ ! -e "$root/etc/ssl/certs/ca-certificates.crt" ]; then
        cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    fi
}

make_root() {
    [ -e "$root/.complete" ] && return
    if ! command -v debootstrap >/dev/null; then
        say "installing debootstrap"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >&2
    fi
    if [ -e "$root" ] && [ ! -e "$root.log" ]; then
        fail "$root exists, and was not created by this script" "remove it, or set SAMOVAR_ROOTS"
    fi
    say "installing Debian $suite into $root (a few minutes)"
    rm -rf "$root"
    mkdir -p "$root"
    # debootstrap's generic script is named sid. It has no script for releases newer than itself.
    if ! debootstrap --variant=minbase --include=ca-certificates,make "$suite" "$root" "$archive" \
        sid >"$root.log" 2>&1; then
        tail -n 5 "$root.log" >&2
        fail "debootstrap failed; see $root.log" "check that $archive is reachable"
    fi
    # No service may start automatically.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"
    touch "$root/.complete"
}

# Copies all files that git tracks and files not yet added. Times are kept, so that cargo builds
# only changed files.
copy_tree() {
    mkdir -p "$root$tree"
    find "$root$tree" -mindepth 1 -maxdepth 1 ! -name target -exec rm -rf {} +
    git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do [ -e "$file" ] && printf '%s\0' "$file"; done |
        tar --null --no-recursion -cf - -T - | tar -xf - -C "$root$tree" --no-same-owner
}

enter() {
    # shellcheck disable=SC2016
    exec unshare --mount --propagation private bash -euc '
        root=$1 cargo_home=$2 rustup_home=$3 tree=$4 config=$5
        shift 5
        mkdir -p "$root$cargo_home" "$root$rustup_home"
        mount --bind "$cargo_home" "$root$cargo_home"
        mount --bind "$rustup_home" "$root$rustup_home"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        exec chroot "$root" /usr/bin/env -u SAMOVAR_ROOTS LC_ALL=C.UTF-8 PHP_CONFIG="$config" \
            CARGO_HOME="$cargo_home" RUSTUP_HOME="$rustup_home" \
            PATH="$cargo_home/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
            CARGO_TARGET_DIR="$tree/target" bash -c "cd \"\$0\" && exec \"\$@\"" "$tree" "$@"
    ' bash "$root" "$cargo_home" "$rustup_home" "$tree" "php-config$php" "$@"
}

[ "$(id -u)" = 0 ] || fail "chroot needs root" "run sudo -E make php84"
archive=${SAMOVAR_MIRROR:-$(mirror debian)}
[ -n "$archive" ] || fail "no Debian archive in the apt sources of this machine" \
    "set SAMOVAR_MIRROR to the URL of the folder with dists/ and pool/"
[ -d "$rustup_home/toolchains" ] || fail "no Rust in $rustup_home" "install Rust with rustup: https://rustup.rs"
make_root
write_sources
copy_network
say "copying the tree to $root$tree"
copy_tree
say "in $suite with PHP $php: $*"
enter "$@"
