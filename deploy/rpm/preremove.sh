# shellcheck shell=sh
#SERVERS#

# $1 is the number of versions that remain: 0 at the removal. At an upgrade the servers keep running.
if [ "$1" = 0 ]; then
    if [ -d /run/systemd/system ]; then
        systemctl disable --now samovar.service samovar.socket >/dev/null 2>&1 || true
        systemctl stop 'samovar@*.socket' 'samovar@*.service' >/dev/null 2>&1 || true
        samovar_enabled_units | while IFS= read -r unit; do
            systemctl disable "$unit" </dev/null >/dev/null 2>&1 || true
        done
    fi
    samovar_each stop
fi
exit 0
