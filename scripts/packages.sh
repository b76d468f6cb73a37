#!/usr/bin/env bash
# Makes the Debian packages from binaries that are already built:
#
#   scripts/packages.sh [PROFILE [FOLDER]]    scripts/packages.sh release target/packages
#
# samovar_VERSION_ARCH.deb has the server, its units, manual pages, completions and settings.
# samovar-phpX.Y_VERSION_ARCH.deb has the worker for one PHP version, that of PHP_CONFIG.
#
# SOURCE_DATE_EPOCH: time of all files; default: the time of the last commit. The same binaries and
# the same time give the same packages, byte for byte.
# PACKAGE_VERSION: default: the version of Cargo.toml, with this Debian release.
# PACKAGE_COMPRESSION: default: xz.
# PACKAGE_MAINTAINER: name and address of the person who makes the packages.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh
# shellcheck source=/dev/null
. scripts/package-files.sh

profile=${1:-release} folder=${2:-target/packages}
config=${PHP_CONFIG:-php-config8.2}
built=target/$profile
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "${VERSION_ID:-0}")
upstream=$(package_version)
version=${PACKAGE_VERSION:-$upstream-1~deb$release}
maintainer=${PACKAGE_MAINTAINER:-Samovar packages <packages@samovar.internal>}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(commit_time)}
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC
umask 022

command -v dpkg-deb >/dev/null || fail "cannot find dpkg-deb" "apt-get install dpkg"
php="" patch=""
require_binaries "$config"
architecture=$(dpkg --print-architecture)
units=/lib/systemd/system
[ "$release" = 12 ] || units=/usr/lib/systemd/system
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"

# documents PACKAGE: the files that every Debian package has.
documents() {
    local place=/usr/share/doc/$1
    cat >"$work/changelog" <<CHANGELOG
$1 ($version) unstable; urgency=medium

  * Samovar ${upstream/\~/-}. See changelog.gz of the package samovar.

 -- $maintainer  $(date -R -d "@$SOURCE_DATE_EPOCH")
CHANGELOG
    compressed "$work/changelog" "$place/changelog.Debian.gz"
    put 644 deploy/debian/copyright "$place/copyright"
    compressed "$work/third-party" "$place/third-party.txt.gz"
}

# maintainer_script NAME: fills in the functions that several scripts use.
maintainer_script() {
    mkdir -p "$root/DEBIAN"
    sed -e '/^#SERVERS#$/r deploy/debian/servers.sh' -e '/^#SERVERS#$/d' "deploy/debian/samovar.$1" >"$root/DEBIAN/$1"
    chmod 755 "$root/DEBIAN/$1"
}

# package NAME: makes the package from its files, with the fields of standard input.
package() {
    local name=$1 file
    mkdir -p "$root/DEBIAN"
    {
        printf 'Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: %s\n' \
            "$name" "$version" "$architecture" "$maintainer"
        printf 'Installed-Size: %s\n' "$(installed_size)"
        cat
    } >"$root/DEBIAN/control"
    (cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z |
        xargs -0 md5sum >DEBIAN/md5sums)
    chmod 644 "$root"/DEBIAN/control "$root"/DEBIAN/md5sums
    find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    file=$folder/${name}_${version}_$architecture.deb
    # One thread: the compressed data depend on the number of threads.
    dpkg-deb --root-owner-group --threads-max=1 "-Z${PACKAGE_COMPRESSION:-xz}" --build "$root" "$file" >/dev/null
    echo "$file"
}

# Size in KiB, counted from the lengths of files: the blocks of a file system differ.
installed_size() {
    find "$root" -path "$root/DEBIAN" -prune -o -type f -printf '%s\n' |
        awk '{ sum += int(($1 + 1023) / 1024) } END { print sum + 0 }'
}

make_server() {
    root=$work/server
    server_files $units /usr/share/zsh/vendor-completions
    put 644 deploy/debian/samovar.service $units/samovar.service
    put 644 deploy/debian/samovar.toml /etc/samovar/samovar.toml
    documents samovar
    maintainer_script postinst
    maintainer_script prerm
    maintainer_script postrm
    echo /etc/samovar/samovar.toml >"$root/DEBIAN/conffiles"
    echo 'interest-noawait /usr/lib/php' >"$root/DEBIAN/triggers"
    chmod 644 "$root/DEBIAN/conffiles" "$root/DEBIAN/triggers"
    local breaks=() other
    # Server and workers share memory, so they are of one version.
    for other in 8.1 8.2 8.3 8.4 8.5; do
        breaks+=("samovar-php$other (<< $version)" "samovar-php$other (>> $version)")
    done
    package samovar <<CONTROL
Section: httpd
Priority: optional
Depends: libc6 (>= $(glibc "$built/samovar")), libgcc-s1 (>= 3.4), init-system-helpers (>= 1.52), samovar-php (= $version)
Breaks: $(printf '%s\n' "${breaks[@]}" | paste -sd , | sed 's/,/, /g')
Recommends: ca-certificates
Description: application server for PHP
 Samovar replaces nginx and php-fpm and runs existing applications unchanged,
 with the PHP of Debian and all of its extensions.
 .
 An application that marks the end of its boot boots once: each request starts
 from the booted state, and memory returns to that state afterwards.
 .
 This package contains the server. A package such as samovar-php8.2 contains
 the worker for a version of PHP; several can be installed.
CONTROL
}

make_worker() {
    root=$work/worker
    local name=samovar-php$php next
    next=${patch%.*}.$((${patch##*.} + 1))
    binary "$built/samovar-php" "/usr/libexec/samovar/$name"
    # The worker looks for libphp.so there first: see crates/worker/build.rs.
    mkdir -p "$root/usr/lib/$name"
    ln -s "../libphp$php.so" "$root/usr/lib/$name/libphp.so"
    documents "$name"
    # The engine's structures may change in each release of PHP, so the worker needs the one that it
    # was built for.
    package "$name" <<CONTROL
Section: php
Priority: optional
Depends: libc6 (>= $(glibc "$built/samovar-php")), libgcc-s1 (>= 3.4), libphp$php-embed (>= $patch~), libphp$php-embed (<< $next~), phpapi-$("$config" --phpapi)
Recommends: samovar
Provides: samovar-php (= $version)
Breaks: samovar (<< $version)
Description: worker of Samovar for PHP $php
 Samovar is an application server for PHP. It replaces nginx and php-fpm and
 runs existing applications unchanged.
 .
 This package contains the worker, the process that runs PHP $php with the
 extensions of Debian. It needs PHP $patch.
CONTROL
}

# The list is the same for both packages.
scripts/third-party.py "${CARGO:-cargo}" >"$work/third-party"
make_server
make_worker
