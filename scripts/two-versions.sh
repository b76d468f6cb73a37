#!/usr/bin/env bash
# Runs the test of two PHP versions in one server: this machine's, and that of another Debian
# release. The second worker is built and run in a folder with that release (see second-root.sh for
# its requirements). Needs root.
#
#   scripts/two-versions.sh [SUITE PHP]    scripts/two-versions.sh trixie 8.4
#
# SAMOVAR_BIN: the server; default: target/tested/samovar. The other requirements of the tests must
# be installed, as for `make whole`.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:-trixie} php=${2:-8.4}
root=${SAMOVAR_ROOTS:-/var/cache/samovar}/$suite
tree=/work/samovar
export SAMOVAR_BIN=${SAMOVAR_BIN:-$PWD/target/tested/samovar}

if [ ! -x "$SAMOVAR_BIN" ]; then
    echo "two-versions: no server at $SAMOVAR_BIN" >&2
    echo "hint: run make built, or set SAMOVAR_BIN" >&2
    exit 1
fi
scripts/second-root.sh "$suite" "$php" make setup
scripts/second-root.sh "$suite" "$php" cargo build --locked -p samovar-php

# A wrapper that runs the worker as if that release were this machine's: the worker has its own view
# of files, and shares everything else with the server.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/samovar-php$php" <<WORKER
#!/bin/sh
exec unshare --mount --propagation private sh -c '
    root=\$1; shift
    mount --rbind /dev "\$root/dev" && mount -t proc proc "\$root/proc" && mount --rbind /tmp "\$root/tmp" &&
    exec chroot "\$root" $tree/target/debug/samovar-php "\$@"' sh '$root' "\$@"
WORKER
chmod +x "$folder/samovar-php$php"
"$folder/samovar-php$php" --version
SAMOVAR_SECOND_PHP="$folder/samovar-php$php" cargo test --locked -p samovar-tests --test pools -- \
    --ignored --nocapture two_php_versions_run_in_one_server
