#!/usr/bin/env bash
# Tests the source archive of the current commit: two archives are identical, and the programs build
# from it with an empty CARGO_HOME and without network.
#
#   scripts/release-test.sh [FOLDER]    scripts/release-test.sh target/release-test
#
# FOLDER is replaced, and removed after success. RELEASE_TEST_STEPS=archive leaves out the build.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh

folder=$(realpath -m "${1:-target/release-test}")
rm -rf "$folder"
mkdir -p "$folder/home" "$folder/tree"
for number in 1 2; do
    mkdir "$folder/$number"
    scripts/release.py archive "$folder/$number/samovar-test.tar.xz"
done
cmp "$folder/1/samovar-test.tar.xz" "$folder/2/samovar-test.tar.xz" || fail "two archives of one commit differ"
say "two archives are identical"

tar -x -f "$folder/1/samovar-test.tar.xz" -C "$folder/tree"
cd "$folder/tree/samovar-test"
export CARGO_HOME=$folder/home CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=$folder/built
if [ "${RELEASE_TEST_STEPS:-}" = archive ]; then
    "${CARGO:-cargo}" metadata --offline --locked --format-version 1 >/dev/null
    say "the archive's workspace resolves without network"
else
    # As unoptimized as `make run`: the test is about the files, not about the programs.
    "${CARGO:-cargo}" build --offline --locked --profile quick -p samovar -p samovar-php
    "$CARGO_TARGET_DIR/quick/samovar" --version
    "$CARGO_TARGET_DIR/quick/samovar-php" --version
    say "the programs build from the archive without network"
fi
rm -rf "$folder"
