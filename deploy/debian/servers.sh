# Functions of the maintainer scripts: servers that run from the package's units, with or without
# systemd.

# Prints their control sockets, one per line.
samovar_servers() {
    for socket in /run/samovar/control.sock /run/samovar-*/control.sock; do
        [ ! -S "$socket" ] || echo "$socket"
    done
}

# samovar_each COMMAND: runs it for each server. A failure leaves the server as it is. The folder of
# a socket belongs to the user of a site, so neither its silence nor its text is trusted.
samovar_each() {
    samovar_servers | while IFS= read -r socket; do
        if said=$(timeout 300 samovar "$1" --control "$socket" 2>&1 </dev/null); then
            continue
        fi
        said=$(printf %s "$said" | tr -cd '[:print:]\n')
        echo "samovar $1: failed for the server at $socket: $said" >&2
        echo "hint: if a server runs there, it continues as before; see its log" >&2
    done
}

# Prints the links of enabled units that dpkg does not know: sockets, and instances such as
# samovar@shop.service. One per line.
samovar_links() {
    for link in /etc/systemd/system/*.wants/samovar@*.socket /etc/systemd/system/*.wants/samovar.socket \
        /etc/systemd/system/*.wants/samovar@*.service; do
        [ ! -L "$link" ] || echo "$link"
    done
}

# Prints the names of these units.
samovar_enabled_units() {
    samovar_links | sed 's,.*/,,' | sort -u
}
