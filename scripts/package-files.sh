# shellcheck shell=bash disable=SC2154,SC2034
# The files of packages, in a folder $root, for packages.sh (Debian) and rpm.sh. Sourced by both,
# after say.sh. They set $built (binaries), $work (an empty folder) and SOURCE_DATE_EPOCH.

# The time of the last commit. The files of a source archive have it.
commit_time() {
    { [ -e .git ] && git log -1 --format=%ct 2>/dev/null; } || stat -c %Y Cargo.toml
}

# The version of the workspace. A pre-release is older than its release only with a tilde, for dpkg
# and for rpm.
package_version() {
    local upstream
    upstream=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
    echo "${upstream/-/\~}"
}

# require_binaries PHP_CONFIG: sets $php and $patch, the version of PHP.
require_binaries() {
    local config=$1 program command said
    for program in samovar samovar-php; do
        [ -x "$built/$program" ] || fail "$built/$program does not exist" "run make build, or make built for the profile tested"
    done
    for command in strip objdump gzip python3; do
        command -v $command >/dev/null || fail "cannot find $command" "install binutils, gzip and python3"
    done
    php=$("$config" --version | cut -d . -f 1,2)
    patch=$("$config" --version | grep -oE '^[0-9]+\.[0-9]+\.[0-9]+')
    said=$("$built/samovar-php" --version) || fail "$built/samovar-php does not run" "build it again for the installed PHP"
    [[ $said == *"(PHP $patch)" ]] ||
        fail "$built/samovar-php is \`$said\`, but $config is PHP $patch" "build it again for the installed PHP"
}

# glibc FILE...: prints the newest version of glibc whose symbols the files use.
glibc() {
    objdump -T "$@" | grep -oE 'GLIBC_[0-9.]+' | cut -d _ -f 2 | sort -uV | tail -n 1
}

# put MODE SOURCE TARGET: copies a file into the package that is being made.
put() {
    install -D -m "$1" "$2" "$root$3"
}

compressed() {
    gzip -9n <"$1" >"$work/compressed"
    put 644 "$work/compressed" "$2"
}

binary() {
    strip --strip-unneeded --remove-section=.comment --remove-section=.note -o "$work/stripped" "$1"
    put 755 "$work/stripped" "$2"
}

# server_files UNITS ZSH: the server and its documents; folders of systemd's units and of zsh's
# completions.
server_files() {
    local unit part page
    binary "$built/samovar" /usr/bin/samovar
    for unit in samovar@.service samovar@.socket; do
        sed 's,/usr/local/bin/,/usr/bin/,; /^Description=/a Documentation=man:samovar(1) man:samovar.toml(5)' \
            "deploy/systemd/$unit" >"$work/unit"
        put 644 "$work/unit" "$1/$unit"
    done
    put 644 deploy/debian/samovar.socket "$1/samovar.socket"
    put 644 deploy/debian/welcome.php /usr/share/samovar/welcome/index.php
    "$built/samovar" man samovar >"$work/page"
    compressed "$work/page" /usr/share/man/man1/samovar.1.gz
    "$built/samovar" man samovar.toml >"$work/page"
    compressed "$work/page" /usr/share/man/man5/samovar.toml.5.gz
    "$built/samovar" completions bash >"$work/script"
    put 644 "$work/script" /usr/share/bash-completion/completions/samovar
    "$built/samovar" completions zsh >"$work/script"
    put 644 "$work/script" "$2/_samovar"
    "$built/samovar" completions fish >"$work/script"
    put 644 "$work/script" /usr/share/fish/vendor_completions.d/samovar.fish
    compressed CHANGELOG.md /usr/share/doc/samovar/changelog.gz
    put 644 README.md /usr/share/doc/samovar/README.md
    sed 's,/usr/local/bin/,/usr/bin/,; s,\](\.\./\.\./docs/,](docs/,g' deploy/systemd/README.md >"$work/readme"
    put 644 "$work/readme" /usr/share/doc/samovar/README.systemd.md
    for part in start guide reference; do
        for page in "docs/$part"/*.md; do
            put 644 "$page" "/usr/share/doc/samovar/$page"
        done
    done
}
