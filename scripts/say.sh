# Sourced by scripts that say what they do: by their own name, on standard error.
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
