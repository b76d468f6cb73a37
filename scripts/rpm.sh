#!/usr/bin/env bash
# Makes RPM packages for Enterprise Linux 9 and 10 from binaries that are already built:
#
#   scripts/rpm.sh [PROFILE [FOLDER]]    scripts/rpm.sh release target/rpm
#
# samovar-VERSION-RELEASE.ARCH.rpm has the server. It may be made on Debian 12: the server needs no
# libphp, and no glibc newer than that of Enterprise Linux 9.
# samovar-phpXY-VERSION-RELEASE.ARCH.rpm has the worker. It is made only on Enterprise Linux, because
# the worker must be built with the headers of the PHP that runs it:
# PHP_CONFIG=/opt/remi/php82/root/usr/bin/php-config, or /usr/bin/php-config.
#
# NFPM: the program nfpm; default: that on PATH, else it is built from its Go module.
# SOURCE_DATE_EPOCH, PACKAGE_MAINTAINER: as for packages.sh. PACKAGE_RELEASE: default: 1.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh
# shellcheck source=/dev/null
. scripts/package-files.sh

# The glibc of Enterprise Linux 9.
glibc_newest=2.34
nfpm_module=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2

profile=${1:-release} folder=$(realpath -m "${2:-target/rpm}")
config=${PHP_CONFIG:-php-config8.2}
built=target/$profile
version=$(package_version)
release=${PACKAGE_RELEASE:-1}
maintainer=${PACKAGE_MAINTAINER:-Samovar packages <packages@samovar.internal>}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(commit_time)}
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC
umask 022
php="" patch=""
require_binaries "$config"
architecture=$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"
date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
# shellcheck source=/dev/null
system=$(. /etc/os-release && echo " ${ID:-} ${ID_LIKE:-} ")

nfpm=${NFPM:-$(command -v nfpm || echo "$folder/bin/nfpm")}
if [ ! -x "$nfpm" ]; then
    command -v go >/dev/null || fail "cannot find nfpm, nor go to build it" "set NFPM, or install Go"
    say "building nfpm"
    GOFLAGS=-mod=mod GOBIN=$folder/bin CGO_ENABLED=0 go install -trimpath -ldflags '-s -w' "$nfpm_module"
fi

# require_glibc FILE
require_glibc() {
    local needed
    needed=$(glibc "$1")
    [ "$(printf '%s\n' "$needed" $glibc_newest | sort -V | tail -n 1)" = $glibc_newest ] ||
        fail "$1 needs glibc $needed, and Enterprise Linux 9 has $glibc_newest" "build it on Debian 12, or on Enterprise Linux 9"
}

# Prints the files below $root as contents for nfpm. Each has a time, so that packages are identical.
contents() {
    local file type
    (cd "$root" && find . -type f -printf '%P\n' | sort) | while IFS= read -r file; do
        type=
        case $file in etc/*) type='config|noreplace' ;; usr/share/doc/*) type=doc ;; esac
        printf -- '- src: "%s"\n  dst: "/%s"\n' "$root/$file" "$file"
        [ -z "$type" ] || printf '  type: "%s"\n' "$type"
        printf '  file_info: {mode: 0%s, mtime: "%s", owner: root, group: root}\n' \
            "$(stat -c %a "$root/$file")" "$date"
    done
}

# package NAME: makes the package from its files, with the fields of standard input.
package() {
    local name=$1
    {
        printf 'name: %s\narch: %s\nplatform: linux\nversion: "%s"\nrelease: "%s"\nversion_schema: none\n' \
            "$name" "$architecture" "$version" "$release"
        printf 'maintainer: "%s"\nvendor: Samovar\nlicense: "%s"\nmtime: "%s"\n' "$maintainer" \
            "$(sed -n 's/^license = "\(.*\)"/\1/p' Cargo.toml | head -n 1)" "$date"
        printf 'rpm: {buildhost: samovar.internal, packager: "%s", compression: "gzip:9"}\n' "$maintainer"
        cat
        printf 'contents:\n'
        contents
    } >"$work/$name.yaml"
    "$nfpm" package --config "$work/$name.yaml" --packager rpm --target "$folder" >&2
    echo "$folder/$name-$version-$release.$architecture.rpm"
}

make_server() {
    root=$work/server
    local script
    require_glibc "$built/samovar"
    server_files /usr/lib/systemd/system /usr/share/zsh/site-functions
    sed 's/www-data/samovar/; s,^ReadWritePaths=.*,ReadWritePaths=-/srv -/var/www,' deploy/debian/samovar.service >"$work/unit"
    put 644 "$work/unit" /usr/lib/systemd/system/samovar.service
    sed 's/run as www-data/run as samovar/' deploy/debian/samovar.toml >"$work/settings"
    put 644 "$work/settings" /etc/samovar/samovar.toml
    put 644 LICENSE /usr/share/doc/samovar/LICENSE
    compressed "$work/third-party" /usr/share/doc/samovar/third-party.txt.gz
    for script in preinstall postinstall preremove postremove; do
        sed -e '/^#SERVERS#$/r deploy/debian/servers.sh' -e '/^#SERVERS#$/d' "deploy/rpm/$script.sh" >"$work/$script.sh"
    done
    package samovar <<YAML
depends: ["glibc >= $(glibc "$built/samovar")", libgcc, shadow-utils, systemd, "samovar-php = $version-$release"]
recommends: [ca-certificates]
description: |
  Application server for PHP.
  Samovar replaces nginx and php-fpm and runs existing applications unchanged, with the installed PHP
  and all of its extensions. This package contains the server. Packages such as samovar-php82 contain
  the worker for a version of PHP.
scripts:
  preinstall: $work/preinstall.sh
  postinstall: $work/postinstall.sh
  preremove: $work/preremove.sh
  postremove: $work/postremove.sh
YAML
}

make_worker() {
    root=$work/worker
    local name=samovar-php${php/./} next library=php-embedded
    # Remi's packages of several versions have their number in the name and below /opt.
    [[ $config != /opt/remi/* ]] || library=php${php/./}-php-embedded
    next=${patch%.*}.$((${patch##*.} + 1))
    require_glibc "$built/samovar-php"
    binary "$built/samovar-php" "/usr/libexec/samovar/samovar-php$php"
    put 644 LICENSE "/usr/share/doc/$name/LICENSE"
    compressed "$work/third-party" "/usr/share/doc/$name/third-party.txt.gz"
    package "$name" <<YAML
depends: ["glibc >= $(glibc "$built/samovar-php")", libgcc, "$library >= $patch", "$library < $next"]
provides: ["samovar-php = $version-$release"]
description: |
  Worker of Samovar for PHP $php.
  The process that runs PHP $php with the installed extensions. It needs PHP $patch.
YAML
}

scripts/third-party.py "${CARGO:-cargo}" >"$work/third-party"
make_server
if [[ $system == *" rhel "* || $system == *" fedora "* ]]; then
    make_worker
else
    say "no worker: it must be built on Enterprise Linux, with the headers of its PHP (docs/start/install.md)"
fi
