# Messages on standard error, prefixed with the script's name. Sourced by other scripts.
# shellcheck shell=bash

say() {
    echo "$(basename "$0" .sh): $*" >&2
}

# fail WHY [HINT]
fail() {
    say "$1"
    [ -z "${2:-}" ] || echo "hint: $2" >&2
    exit 1
}
