#!/usr/bin/env bash
# The server's profile: which of its code runs, and how often (docs/decisions/pgo.md).
#
#   scripts/pgo.sh build    builds target/release/samovar and samovar-php by the profile that the tree has, if it is this compiler's
#   scripts/pgo.sh train    makes that profile anew: a server that counts, the benchmarks' applications, some 15 minutes
#
# CARGO: cargo. PGO_SECONDS: how long each application is asked in each round of the training.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh

profile=scripts/pgo/server.profdata
# Whose it is: another compiler names functions otherwise, or cannot read it at all.
compiler=scripts/pgo/compiler
target=$PWD/target/pgo
trained=target/trained
read -ra cargo <<<"${CARGO:-cargo}"
seconds=${PGO_SECONDS:-1}
workloads=hello,hello-varying,echo,bootstrap,static,streamed,upload,answer-1mb
connections=1,16,64

# build DIRECTORY [FLAG]: what RUSTFLAGS has holds, too. Encoded, because paths may have spaces.
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

# In a folder of its own: other release builds have other flags, and each would throw away what the other has built.
build_trained() {
    local flags=()
    if [ "$(rustc --version)" = "$(cat $compiler)" ]; then
        flags=("-Cprofile-use=$(named)")
    else
        say "the profile is of $(cat $compiler): this build does without it, and takes up to a fifth more CPU for a small request" \
            "(hint: \`make pgo\` makes one for $(rustc --version))"
    fi
    build $trained "${flags[@]}"
    mkdir -p target/release
    ln -f $trained/release/samovar $trained/release/samovar-php target/release/
}

# A copy of the profile that is named by what it has: cargo looks at flags, not at the files that they name.
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
    [ -n "$found" ] || fail "the compiler's llvm-profdata is missing" "rustup component add llvm-tools"
    echo "$found"
}

# asks COMMAND...: a part of the training.
asks() {
    say "training: $*"
    "$@" >/dev/null
}

train() {
    local merge
    merge=$(profdata)
    say "a server that counts"
    build "$target" "-Cprofile-generate=$target/raw"
    "${cargo[@]}" build --release --locked -p samovar-load
    "${cargo[@]}" build --release --locked -p samovar-front --example bare_hello --example secure_client
    # What the compiler's own helpers have counted while it was built is of no interest.
    rm -rf "$target/raw"
    mkdir -p "$target/raw"
    # A file for each program, to which its processes add what they have counted when they end.
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
    say "$profile is new"
}

case ${1:-} in
    build) build_trained ;;
    train) train ;;
    *) fail "build or train?" "scripts/pgo.sh build" ;;
esac
