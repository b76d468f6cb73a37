# shellcheck shell=sh
#SERVERS#

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload >/dev/null 2>&1 || true
fi
# $1 is the number of installed versions: 2 at an upgrade. The new version takes over the listeners
# of each running server. No request is lost.
if [ "$1" -ge 2 ]; then
    samovar_each upgrade
fi
exit 0
