#!/usr/bin/env bash
# The part of the packages' test that runs in a new Debian, where nothing but apt is installed:
# installs, starts, upgrades, downgrades, removes and purges the packages in /packages.
#
#   inside.sh PHP PORT    with the folders /packages/1, /packages/2, /packages/control, and
#                         /packages/symfony, an application
#
# The load comes from outside: this script writes to /packages/control/load and waits for the
# result.
set -euo pipefail
php=$1 port=$2
control=/packages/control
config=/etc/samovar/samovar.toml
socket=/run/samovar/control.sock
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
WAIT_SECONDS=60

# shellcheck source=/dev/null
say() {
    echo "packages in $(. /etc/os-release && echo "$VERSION_CODENAME"): $*"
}

fail() {
    say "FAILED: $*"
    tail -n 20 /tmp/server.log /tmp/apt.log 2>/dev/null || true
    exit 1
}

# until_true COMMAND…: waits for the command to succeed.
until_true() {
    local end=$((SECONDS + WAIT_SECONDS))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || fail "waited ${WAIT_SECONDS} s for: $*"
        sleep 0.05
    done
}

apt() {
    apt-get -qq -y -o Dpkg::Use-Pty=0 "$@" >>/tmp/apt.log 2>&1 || fail "apt-get $*"
}

# A GET request without a client program.
get() {
    exec 9<>"/dev/tcp/127.0.0.1/$port" || return 1
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$1" >&9
    cat <&9
    exec 9<&- 9>&-
}

page_has() {
    get / | grep -q "$1"
}

# Runs a command of the unit as its user, as systemd would.
as_unit() {
    # shellcheck disable=SC2046
    setpriv --reuid www-data --regid www-data --init-groups --no-new-privs \
        --bounding-set=-all,+net_bind_service $(sed -n "s/^$1=//p" "$unit")
}

server_pid() {
    samovar status --json --control $socket | grep -o '"pid":[0-9]*' | head -n 1 | cut -d : -f 2
}

# under_load NAME COMMAND…: runs the command while visitors from outside request pages.
under_load() {
    local name=$1 before
    shift
    before=$(server_pid)
    rm -f $control/*
    touch $control/load
    until_true test -s $control/count
    until_true eval "[ \$(cat $control/count) -ge 200 ]"
    "$@"
    until_true eval "[ \$(server_pid) != $before ]"
    local at
    at=$(cat $control/count)
    until_true eval "[ \$(cat $control/count) -ge $((at + 200)) ]"
    rm $control/load
    until_true test -e $control/result
    say "$name under load: $(head -n 1 $control/result)"
    grep -q ' 0 lost$' $control/result || fail "$(cat $control/result)"
}

# Files of the packages, wherever they are. /proc and /sys are not files of the packages.
leftovers() {
    find / -xdev \( -path /proc -o -path /sys -o -path /packages \) -prune -o -iname '*samovar*' -print
}

apt update
begun=$SECONDS
apt install /packages/1/*.deb
say "installed in $((SECONDS - begun)) s"
unit=$(dpkg -L samovar | grep '/samovar.service$')
test -x /usr/bin/samovar -a -x "/usr/libexec/samovar/samovar-php$php" || fail "no binaries"
dpkg-query -W -f '${Conffiles}\n' samovar | grep -q $config || fail "no conffile"
# Another version of libphp takes the name libphp.so, as ldconfig does for the newest.
ldd "/usr/libexec/samovar/samovar-php$php" | grep -q "libphp.so => /usr/lib/samovar-php$php/libphp.so " ||
    fail "the worker does not use its own libphp: $(ldd "/usr/libexec/samovar/samovar-php$php")"
samovar check --config $config --user www-data >/tmp/check || fail "$(cat /tmp/check)"
grep -q "samovar-php$php\` runs PHP $php" /tmp/check || fail "$(cat /tmp/check)"

# The settings are the administrator's: an upgrade keeps them.
sed -i "s/127.0.0.1:8080/127.0.0.1:$port/" $config
install -d -m 700 -o www-data -g www-data /run/samovar
as_unit ExecStart >/tmp/server.log 2>&1 &
until_true page_has "Samovar runs PHP $php"
say "the first page after $((SECONDS - begun)) s"
until_true samovar status --control $socket
samovar status >/tmp/status || fail "samovar status does not find the service's server"

! page_has '\bintl\b' || fail "the extension intl is loaded before it is installed"
apt install "php$php-intl"
until_true page_has '\bintl\b'
say "an extension that is installed later is loaded"

under_load upgrade apt install /packages/2/*.deb
grep -q "127.0.0.1:$port" $config || fail "the upgrade has overwritten the settings"
page_has "Samovar runs PHP $php" || fail "no page after the upgrade"
under_load downgrade apt install --allow-downgrades /packages/1/*.deb
as_unit ExecReload || fail "the unit's ExecReload"

# A site of a framework: from the packages to its first page with one command for the settings.
begun=$SECONDS
apt install php-symfony-framework-bundle php-symfony-twig-bundle php-symfony-asset php-symfony-form php-symfony-mime \
    php-symfony-security-csrf php-symfony-validator "php$php-xml"
samovar stop --control $socket
cp -r /packages/symfony /srv/symfony
mkdir -p /srv/symfony/var
chown www-data /srv/symfony/var
(cd /srv/symfony && samovar init) >/tmp/init || fail "samovar init"
grep -q '^wrote samovar.toml: a Symfony application' /tmp/init || fail "$(cat /tmp/init)"
sed -i "s/127.0.0.1:8080/127.0.0.1:$port/" /srv/symfony/samovar.toml
cp $config /tmp/own.toml
sed 's,^root = .*,root = "/srv/symfony/public",' /srv/symfony/samovar.toml >$config
as_unit ExecStart >/tmp/server.log 2>&1 &
site_has() { get /api/square/12 | grep -q '"square":144'; }
until_true site_has
say "a Symfony site is served after $((SECONDS - begun)) s"
cp /tmp/own.toml $config
rm -r /srv/symfony

# The server of that site still runs.
apt remove samovar "samovar-php$php"
until_true eval '! get / 2>/dev/null'
until_true eval '! grep -qE ^samovar /proc/[0-9]*/comm'
test -e $config -a ! -e /usr/bin/samovar -a ! -e "/usr/libexec/samovar" || fail "files after removal"
apt install /packages/2/*.deb
mkdir -p /var/lib/samovar /var/log/samovar
touch /var/lib/samovar/history.sqlite
mkdir -p /etc/systemd/system/multi-user.target.wants
ln -s "$(dirname "$unit")/samovar@.service" /etc/systemd/system/multi-user.target.wants/samovar@shop.service
apt purge samovar "samovar-php$php"
rm -rf /run/samovar
[ -z "$(leftovers)" ] || fail "files after the purge: $(leftovers)"
say "removed and purged"

apt install systemd /packages/2/*.deb
mapfile -t units < <(dpkg -L samovar | grep -E '/samovar(@)?\.(service|socket)$' | sed 's/@/@shop/')
verified=$(systemd-analyze verify --man=no "${units[@]}" 2>&1 | grep -i samovar || true)
[ -z "$verified" ] || fail "systemd-analyze verify: $verified"
say "systemd accepts ${#units[@]} units"
