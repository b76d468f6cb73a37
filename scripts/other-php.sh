#!/usr/bin/env bash
# Runs this machine's test programs with the worker of another PHP, in a folder with another Debian
# release (second-root.sh): only the worker is built there. The release must not be older than this
# machine's. Needs root, and `make built`.
#
#   scripts/other-php.sh SUITE PHP [WORDS…]    scripts/other-php.sh experimental 8.5 conformance
#
# WORDS select tests as for `make test TEST=`; default: below. Packages that the release does not
# have for this PHP are left out, and so are the tests that need them.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh

[ $# -ge 2 ] || fail "SUITE and PHP are missing" "scripts/other-php.sh experimental 8.5"
suite=$1 php=$2
shift 2
words=("$@")
[ ${#words[@]} -gt 0 ] || words=(conformance suite::smoke suite::calls suite::isolation::ends suite::isolation::files
    suite::isolation::large suite::isolation::leaks suite::isolation::memory suite::isolation::signals
    suite::isolation::tokens suite::isolation::unseen)
tests=target/tested
root=${SAMOVAR_ROOTS:-/var/cache/samovar}/$suite
for file in "$tests/run-tests" "$tests/samovar" target/tests/built.json; do
    [ -s "$file" ] || fail "$file does not exist" "run make built"
done

export SETUP_UNKNOWN=skip
scripts/second-root.sh "$suite" "$php" scripts/setup.sh other-php
scripts/second-root.sh "$suite" "$php" cargo build --locked --profile quick -p samovar-php
worker=$root/work/samovar/target/quick/samovar-php
# The worker looks for its libphp there, as if its package were installed.
mkdir -p "$root/usr/lib/samovar-php$php"
ln -sfn "../libphp$php.so" "$root/usr/lib/samovar-php$php/libphp.so"

# The worker's own test programs are linked with this machine's PHP.
mkdir -p "target/other-php$php"
grep -E '/deps/(suite|conformance)-[0-9a-f]+"' target/tests/built.json >"target/other-php$php/built.json"
: >"target/other-php$php/groups.toml"

# The tree has the same path there, because the test programs contain it. Its worker is replaced.
tree=$PWD
mkdir -p "$root$tree"
say "in $suite with PHP $php: ${words[*]}"
# shellcheck disable=SC2016
exec unshare --mount --propagation private bash -euc '
    root=$1 tree=$2 worker=$3 php=$4
    shift 4
    mount --bind "$tree" "$root$tree"
    mount --bind "$worker" "$root$tree/target/tested/samovar-php"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" /usr/bin/env -u SAMOVAR_ROOTS LC_ALL=C.UTF-8 PHP_CONFIG="php-config$php" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        SAMOVAR_BIN="$tree/target/tested/samovar" SAMOVAR_BINARY="$tree/target/tested/samovar" \
        bash -c "cd \"\$0\" && exec \"\$@\"" "$tree" target/tested/run-tests --at-once 2 \
        --built "target/other-php$php/built.json" --groups "target/other-php$php/groups.toml" \
        --output "target/other-php$php" "$@"
' bash "$root" "$tree" "$worker" "$php" "${words[@]}"
