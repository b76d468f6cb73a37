#!/bin/sh
# Steps inside the image's root, shared by build.sh and the Dockerfile: sh prepare.sh PHP
# The folder of this script contains the packages.
set -eu

php=$1
packages=$(cd "$(dirname "$0")" && pwd)
export DEBIAN_FRONTEND=noninteractive

apt-get install -y -qq --no-install-recommends "$packages"/*.deb
for interface in cli embed; do
    cp "$packages/image.ini" "/etc/php/$php/$interface/conf.d/90-image.ini"
done

# The application's folder belongs to root: PHP cannot change its own code.
install -d -m 755 /app
# Home of composer's cache, of history and of other files that remain.
install -d -m 700 -o www-data -g www-data /var/lib/samovar

# The image has no init system, and its settings come from the environment.
rm -f /etc/samovar/samovar.toml
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/cache/debconf/*-old \
    /var/lib/dpkg/*-old /var/log/apt /var/log/*.log /usr/share/zsh /usr/share/fish \
    /usr/share/bash-completion
