# Functions of the maintainer scripts: servers that run from the package's units, with or without
# systemd.

# Prints their control sockets, one per line.
samovar_servers() {
    for socket in /run/samovar/control.sock /run/samovar-*/control.sock; do
        [ ! -S "$socket" ] || echo "$socket"
    done
}

# samovar_each COMMAND: runs it for each server. A failure leaves the server as it is.
samovar_each() {
    samovar_servers | while IFS= read -r socket; do
        if ! said=$(samovar "$1" --control "$socket" 2>&1); then
            echo "samovar $1: the server at $socket continues unchanged: $said" >&2
        fi
    done
}
