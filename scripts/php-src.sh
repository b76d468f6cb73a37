#!/usr/bin/env bash
# Fetches php-src's own tests from the installed PHP's source package. The tests for a web server go
# to target/php-src/tests, those of the engine to target/php-src/engine. apt uses separate lists
# below target/, so the system's own lists stay unchanged and root is not needed.
set -euo pipefail
cd "$(dirname "$0")/.."

folders=(tests/basic tests/output tests/security tests/strings)
engine=(tests/lang Zend/tests)
into=target/php-src
php=${PHP_CONFIG:-php-config8.2}
php=php${php##*php-config}

installed=$(dpkg-query -W -f '${source:Version}' "$php-cli" 2>/dev/null || true)
if [ -d "$into/tests" ] && [ -d "$into/engine" ] && [ "$(cat "$into/VERSION" 2>/dev/null)" = "${installed:-any}" ]; then
    exit 0
fi

# shellcheck source=scripts/source-package.sh
. scripts/source-package.sh
apt=$PWD/$into/apt
source_lists "$apt"

# Prints the file's name, or nothing.
fetch() {
    source_nearest "$php" "$installed" "$apt/download" || true
    find "$apt/download" -name "${php}_*.orig.tar.xz"
}

echo "setup: fetching the tests of $php $installed" >&2
tarball=$(fetch)
if [ -z "$tarball" ]; then
    # The mirror may have no sources of testing. Then use those of stable: its PHP may differ only
    # in the last number of the version.
    sed -i -E 's/^Suites:.*-security( .*)?$/Suites: stable-security/; t; s/^Suites:.*/Suites: stable/' "$apt"/parts/*
    tarball=$(fetch)
fi
if [ -z "$tarball" ]; then
    echo "php-src.sh: the Debian mirror has no source package of $php ($installed)" >&2
    echo "hint: unpack php-src's tests/{basic,output,security,strings} into $into/tests, and tests/lang and" \
        "Zend/tests into $into/engine" >&2
    exit 1
fi

# unpack TO FOLDER...
unpack() {
    local to=$1
    shift
    rm -rf "$to"
    mkdir -p "$to"
    tar -C "$to" -xJf "$tarball" --strip-components=1 --wildcards --no-wildcards-match-slash "${@/#/*/}"
}

unpack "$into/source" "${folders[@]}"
rm -rf "$into/tests"
mv "$into/source/tests" "$into/tests"
rm -rf "$into/source"
unpack "$into/engine" "${engine[@]}"
rm -rf "$apt"
echo "${installed:-any}" >"$into/VERSION"
