#!/usr/bin/env bash
# Builds with, or records, the server's profile: the parts of its code that run, and how often
# (docs/internals/decisions/pgo.md).
#
#   scripts/pgo.sh build    builds target/release/samovar and samovar-php, with the tree's profile if
#                           this compiler made it
#   scripts/pgo.sh train    records the profile again (some 15 minutes): runs the benchmarks'
#                           applications on an instrumented server
#
# CARGO: the cargo command. PGO_SECONDS: duration of the load on each application in each round of
# the training.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh

profile=scripts/pgo/server.profdata
# The compiler that made the profile. Another compiler has other function names, or cannot read the
# profile at all.
compiler=scripts/pgo/compiler
target=$PWD/target/pgo
trained=target/trained
read -ra cargo <<<"${CARGO:-cargo}"
seconds=${PGO_SECONDS:-1}
workloads=hello,hello-varying,echo,bootstrap,static,streamed,upload,answer-1mb
connections=1,16,64

# build DIRECTORY [FLAG]: adds the flag to those of RUSTFLAGS. Encoded, because paths may have
# spaces.
build() {
    local flags
    read -ra flags <<<"${RUSTFLAGS:-}"
    if [ $# -gt 1 ]; then
        flags+=("$2")
        CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${flags[*]}")
        export CARGO_ENCODED_RUSTFLAGS
    fi
    "${cargo[@]}" build --release --locked -p samovar -p samovar-php --target-dir "$1"
    unset CARGO_ENCODED_RUSTFLAGS
}

# Builds in a separate folder: other release builds have other flags, and each build would discard
# the results of the other.
build_trained() {
    local flags=()
    if [ "$(rustc --version)" = "$(cat $compiler)" ]; then
        flags=("-Cprofile-use=$(named)")
    else
        say "the profile is for $(cat $compiler): building without it; small requests take up to a fifth more CPU" \
            "(hint: create a profile for $(rustc --version) with \`make pgo\`)"
    fi
    build $trained "${flags[@]}"
    mkdir -p target/release
    ln -f $trained/release/samovar $trained/release/samovar-php target/release/
}

# Prints the path of a copy of the profile that is named by its hash. Cargo compares flags, not the
# contents of the files in them.
named() {
    local copy
    copy=$PWD/$trained/$(sha256sum $profile | cut -c 1-16).profdata
    mkdir -p $trained
    cp $profile "$copy"
    echo "$copy"
}

profdata() {
    local found
    found=$(find "$(rustc --print sysroot)" -name llvm-profdata -type f -perm -u+x -print -quit)
    [ -n "$found" ] || fail "cannot find the compiler's llvm-profdata" "run rustup component add llvm-tools"
    echo "$found"
}

# asks COMMAND...: runs a part of the training.
asks() {
    say "training: $*"
    "$@" >/dev/null
}

train() {
    local merge
    merge=$(profdata)
    say "building an instrumented server"
    build "$target" "-Cprofile-generate=$target/raw"
    "${cargo[@]}" build --release --locked -p samovar-load
    "${cargo[@]}" build --release --locked -p samovar-front --example bare_hello --example secure_client
    # Drop the counts of build scripts and other helpers that ran during the build.
    rm -rf "$target/raw"
    mkdir -p "$target/raw"
    # One file per program. Its processes add their counts when they end.
    export SAMOVAR_BIN=$target/release/samovar LLVM_PROFILE_FILE=$target/raw/%m.profraw
    asks bench/run.py --workloads $workloads --servers samovar-native,samovar-resident,samovar-checkpoint,samovar-script \
        --connections $connections --rounds 1 --seconds "$seconds" --rate 0 --no-system-calls --new-connections \
        --output "$target/bench"
    asks bench/scenarios/secure.py --rounds 1 --seconds "$seconds"
    asks bench/scenarios/fastcgi.py --workloads hello --rounds 1 --seconds "$seconds" --output "$target/bench"
    asks bench/scenarios/insight.py --workloads hello --models resident,fpm --ways on,urls --rounds 1 --seconds "$seconds" \
        --output "$target/bench"
    "$merge" merge --sparse --output "$target/server.profdata" "$target"/raw/*.profraw
    mv "$target/server.profdata" $profile
    rustc --version >$compiler
    say "new profile: $profile"
}

case ${1:-} in
    build) build_trained ;;
    train) train ;;
    *) fail "missing command: build or train" "run scripts/pgo.sh build" ;;
esac
