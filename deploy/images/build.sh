#!/usr/bin/env bash
# Builds the container image from a new Debian root and the packages of scripts/packages.sh:
#
#   deploy/images/build.sh [PACKAGES [FOLDER]]    deploy/images/build.sh target/packages target/images
#
# Writes FOLDER/samovar-PHP.tar, an image archive for `docker load`, `podman load` and `skopeo copy
# oci-archive:`. Needs root, and neither Docker nor another builder. The Dockerfile has the same
# steps for a public base image.
#
# PHP_CONFIG: selects the PHP version. It must be that of this machine's Debian release.
# IMAGE_EXTENSIONS: PHP extensions, without the prefix php8.2-; default: extensions.txt.
# SOURCE_DATE_EPOCH: time of all files; default: the time of the last commit.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=/dev/null
. scripts/say.sh
# shellcheck source=/dev/null
. scripts/debian-root.sh

packages=$(realpath -m "${1:-target/packages}") folder=$(realpath -m "${2:-target/images}")
php=$("${PHP_CONFIG:-php-config8.2}" --version | cut -d . -f 1,2)
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH=$epoch LC_ALL=C.UTF-8 TZ=UTC

[ "$(id -u)" = 0 ] || fail "a Debian root needs root" "run sudo -E deploy/images/build.sh"
shopt -s nullglob
debs=("$packages"/samovar_*.deb "$packages/samovar-php$php"_*.deb)
[ ${#debs[@]} = 2 ] || fail "$packages has ${#debs[@]} packages of samovar and samovar-php$php instead of 2" \
    "run make packages, and remove older versions"
archive=${SAMOVAR_MIRROR:-$(mirror debian)}
[ -n "$archive" ] || fail "no Debian archive in the apt sources of this machine" \
    "set SAMOVAR_MIRROR to the URL of the folder with dists/ and pool/"
security=$(mirror debian-security)
if ! command -v mmdebstrap >/dev/null; then
    say "installing mmdebstrap"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mmdebstrap >&2
fi

# usr-is-merged takes the place of usrmerge, which needs all of Perl.
include=usr-is-merged,ca-certificates,php$php-cli,php$php-opcache
for extension in ${IMAGE_EXTENSIONS-$(grep -v '^#' deploy/images/extensions.txt)}; do
    include+=,php$php-$extension
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder" "$work/packages"
cp "${debs[@]}" "$work/packages/"

entries=("deb $archive $suite main" "deb $archive $suite-updates main")
[ -z "$security" ] || entries+=("deb $security $suite-security main")
say "installing Debian $suite with PHP $php (a minute or two)"
# mmdebstrap's shell expands $1.
# shellcheck disable=SC2016
printf '%s\n' "${entries[@]}" |
    mmdebstrap --quiet --mode=root --variant=minbase --include="$include" \
        --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
        --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Check-Valid-Until "false"' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/lintian/*' \
        --customize-hook="copy-in $work/packages /" \
        --customize-hook="copy-in deploy/images/prepare.sh deploy/images/image.ini /packages" \
        --customize-hook="chroot \"\$1\" sh -eu /packages/prepare.sh $php" \
        --customize-hook='rm -rf "$1"/packages' \
        "$suite" "$work/root.tar" -
version=$(dpkg-deb --field "${debs[0]}" Version)
/usr/bin/python3 deploy/images/oci.py "$work/root.tar" "$folder/samovar-$php.tar" \
    --name "samovar:$php" --php "$php" --version "$version" --epoch "$epoch" \
    --architecture "$(dpkg --print-architecture)"
