# A Debian release in a folder, for chroot. Sourced by second-root.sh and by the test of the packages,
# after say.sh.
# shellcheck shell=bash

# debian_root SUITE FOLDER PACKAGES: installs the release with these packages (separated by commas)
# unless the folder has it already, and writes its apt sources. Installs debootstrap if it is missing.
# The suite `experimental` is no whole release: it is added to unstable, for packages that only it has.
debian_root() {
    suite=$1 root=$2 include=$3
    archive=${SAMOVAR_MIRROR:-$(mirror debian)}
    [ -n "$archive" ] || fail "no Debian archive in the apt sources of this machine" \
        "set SAMOVAR_MIRROR to the URL of the folder with dists/ and pool/"
    make_root
    write_sources
    copy_network
}

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
        case $suite in
            sid | unstable) source_of "$archive" "$suite" ;;
            experimental) source_of "$archive" "sid experimental" ;;
            *)
                source_of "$archive" "$suite $suite-updates"
                # Without a security archive on this machine, the folder has none either.
                [ -z "$security" ] || source_of "$security" "$suite-security"
                ;;
        esac
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
    if ! debootstrap --variant=minbase --include="$include" "${suite/experimental/sid}" "$root" "$archive" \
        sid >"$root.log" 2>&1; then
        tail -n 5 "$root.log" >&2
        fail "debootstrap failed; see $root.log" "check that $archive is reachable"
    fi
    # No service may start automatically.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"
    touch "$root/.complete"
}
