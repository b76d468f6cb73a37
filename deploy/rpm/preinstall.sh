# shellcheck shell=sh
# The user of the service "samovar". Sites with separate users have units samovar@NAME.
getent group samovar >/dev/null || groupadd -r samovar
getent passwd samovar >/dev/null ||
    useradd -r -g samovar -d /var/lib/samovar -s /sbin/nologin -c "Samovar application server" samovar
exit 0
