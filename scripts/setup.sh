#!/usr/bin/env bash
# Installs missing Debian packages: `scripts/setup.sh build`; with `test`, `bench`, `peers` or
# `other-php`, further ones.
#
# SETUP_UNKNOWN=skip: leaves out packages that the archive does not have, and lists them. A PHP that
# Debian does not release yet has few extensions.
set -euo pipefail
cd "$(dirname "$0")/.."

# The lists name PHP 8.2. Packages of other versions have the same names except for the number.
php=${PHP_CONFIG:-php-config8.2}
php=php${php##*php-config}

# "package [releases]" means: in these releases only.
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
listed() {
    sed -E "/^#/d; /\\[/{ /[[ ]${release}[] ]/!d }; s/ .*//" "scripts/packages-$1.txt"
}

packages=$(listed build)
case "${1:-build}" in
    test | bench | peers | other-php) packages+=" $(listed "$1")" ;;
esac
packages=${packages//php8.2/$php}
# Since 8.5 opcache is a part of PHP, and has no package.
case $php in
    php8.[0-4]) ;;
    *) packages=${packages//$php-opcache/} ;;
esac

missing=()
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
    echo "setup: installing ${missing[*]}" >&2
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq
    if [ "${SETUP_UNKNOWN:-}" = skip ]; then
        known=()
        for package in "${missing[@]}"; do
            if [ -n "$(apt-cache policy "$package" | sed -n '/Candidate: (none)/d; /Candidate/p')" ]; then
                known+=("$package")
            else
                echo "setup: the archive has no $package" >&2
            fi
        done
        missing=("${known[@]}")
    fi
    # No service may start automatically: the tests start their own servers on their own ports.
    echo "slapd slapd/no_configuration boolean true" | $sudo debconf-set-selections
    $sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
    # The packages of these extensions load them into every PHP. One is slow, the others are only
    # for some tests. Extensions that were installed before stay unchanged.
    for extension in apcu dba ldap memcached mongodb msgpack pinba snmp ssh2 xdebug; do
        if [[ " ${missing[*]} " == *" $php-$extension "* ]]; then
            $sudo phpdismod -v "${php#php}" "$extension" >&2
        fi
    done
fi

if ! command -v cargo >/dev/null; then
    echo "setup: cannot find cargo (Rust 1.95 or newer)" >&2
    echo "hint: install Rust with rustup: https://rustup.rs" >&2
    exit 1
fi
