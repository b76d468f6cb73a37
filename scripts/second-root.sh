#!/usr/bin/env bash
# Runs a command in a copy of this tree on another Debian release, and so with another PHP. The
# release is installed in a folder (chroot). The first call creates the folder; each call updates
# it.
#
#   scripts/second-root.sh SUITE PHP COMMAND…    scripts/second-root.sh trixie 8.4 make whole
#
# SAMOVAR_ROOTS: parent folder of these folders; default: /var/cache/samovar.
# SAMOVAR_MIRROR: address of the Debian archive; default: the one in this machine's apt sources.
#
# Rust is this machine's, mounted into the folder. Needs root for chroot and mounts, which end with
# the command. Installs debootstrap if it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh
# shellcheck source=/dev/null
. scripts/debian-root.sh

if [ $# -lt 3 ]; then
    echo "usage: scripts/second-root.sh SUITE PHP COMMAND…" >&2
    exit 2
fi
suite=$1 php=$2
shift 2
root=${SAMOVAR_ROOTS:-/var/cache/samovar}/$suite
tree=/work/samovar
cargo_home=${CARGO_HOME:-$HOME/.cargo}
rustup_home=${RUSTUP_HOME:-$HOME/.rustup}

# Copies all files that git tracks and files not yet added. Times are kept, so that cargo builds
# only changed files.
copy_tree() {
    mkdir -p "$root$tree"
    find "$root$tree" -mindepth 1 -maxdepth 1 ! -name target -exec rm -rf {} +
    git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do [ -e "$file" ] && printf '%s\0' "$file"; done |
        tar --null --no-recursion -cf - -T - | tar -xf - -C "$root$tree" --no-same-owner
}

enter() {
    # shellcheck disable=SC2016
    exec unshare --mount --propagation private bash -euc '
        root=$1 cargo_home=$2 rustup_home=$3 tree=$4 config=$5
        shift 5
        mkdir -p "$root$cargo_home" "$root$rustup_home"
        mount --bind "$cargo_home" "$root$cargo_home"
        mount --bind "$rustup_home" "$root$rustup_home"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        exec chroot "$root" /usr/bin/env -u SAMOVAR_ROOTS LC_ALL=C.UTF-8 PHP_CONFIG="$config" \
            CARGO_HOME="$cargo_home" RUSTUP_HOME="$rustup_home" \
            PATH="$cargo_home/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
            CARGO_TARGET_DIR="$tree/target" bash -c "cd \"\$0\" && exec \"\$@\"" "$tree" "$@"
    ' bash "$root" "$cargo_home" "$rustup_home" "$tree" "php-config$php" "$@"
}

[ "$(id -u)" = 0 ] || fail "chroot needs root" "run sudo -E make php84"
[ -d "$rustup_home/toolchains" ] || fail "no Rust in $rustup_home" "install Rust with rustup: https://rustup.rs"
debian_root "$suite" "$root" ca-certificates,make
say "copying the tree to $root$tree"
copy_tree
say "in $suite with PHP $php: $*"
enter "$@"
