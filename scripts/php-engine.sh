#!/usr/bin/env bash
# Builds a libphp of the source of the installed PHP that takes less CPU: scripts/php-engine.sh [FOLDER]
# (docs/decisions/engine.md). FOLDER, target/engine if none is named, has libphp8.2.so and ENGINE afterwards; until all is
# well, what it had before stays.
#
# PHP_CONFIG: php-config8.2, or another version's. ENGINE_JOBS: compilers at once, as many as there are cores.
# ENGINE_SOURCE: a folder with the files of the source package (.dsc, .tar.xz), where no mirror has them.
# ENGINE_WORK: where it is built, FOLDER/work; what a run that was interrupted has finished is not done again.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh
tree=$PWD

disk_mib_min=1200     # Source, objects twice, and the link.
train_seconds=3       # Of each application, after a second of warm-up.
train_apps=(echo bootstrap symfony)
tail_lines=15

config=${PHP_CONFIG:-php-config8.2}
php=php${config##*php-config}
to=$(realpath -m "${1:-target/engine}")
work=$(realpath -m "${ENGINE_WORK:-$to/work}")
export ENGINE_JOBS=${ENGINE_JOBS:-$(nproc)}
library=lib$php.so

# version_of PACKAGE: of the source that the installed package was made of, or nothing.
version_of() {
    dpkg-query -W -f '${db:Status-Abbrev}${source:Version}' "$1" 2>/dev/null | sed -n 's/^ii *//p'
}

build_id() {
    readelf -n "$1" | sed -n 's/ *Build ID: //p'
}

# ---- what must be there ----

look_at_packages() {
    local missing=() package
    # As in setup.sh, the lists name PHP 8.2.
    while read -r package; do
        package=${package//php8.2/$php}
        [ -n "$(version_of "$package")" ] || missing+=("$package")
    done < <(sed '/^#/d; s/ .*//' scripts/packages-build.txt scripts/packages-engine.txt)
    [ ${#missing[@]} = 0 ] || fail "packages are missing: ${missing[*]}" \
        "sudo apt-get install --no-install-recommends ${missing[*]}"
}

look_at_versions() {
    local other package
    source_version=$(version_of "lib$php-embed")
    for package in "$php-cli" "$php-dev" "$php-opcache" "$php-common"; do
        other=$(version_of "$package")
        [ "$other" = "$source_version" ] || fail \
            "$package is $other, lib$php-embed $source_version: an engine is for extensions of one version" \
            "sudo apt-get install lib$php-embed $package"
    done
    installed=$(dpkg-query -L "lib$php-embed" | grep -E "/$library\$" | head -n 1)
    [ -f "$installed" ] || fail "lib$php-embed has no $library" "sudo apt-get install --reinstall lib$php-embed"
    # Debian's patches change with its version, the recipe with these files.
    recipe=$(cat scripts/php-engine.sh scripts/php-engine/* | sha256sum | cut -c 1-16)
    key="$source_version beside $(build_id "$installed")"
}

look_at_disk() {
    local free
    free=$(df -m --output=avail "$work" | tail -n 1 | tr -d ' ')
    [ "$free" -ge $disk_mib_min ] || fail "$work has $free MiB of free disk, it takes $disk_mib_min" \
        "free some, or set ENGINE_WORK to a folder on another disk"
}

# ---- steps that are done once ----

# A step's mark is made when it is done; one that was interrupted begins anew.
done_with() {
    [ "$(cat "$work/done-$1" 2>/dev/null)" = "$key $recipe" ]
}

mark() {
    echo "$key $recipe" >"$work/done-$1"
}

fetch() {
    done_with fetch && return
    say "1 of 5: the source of $php $source_version"
    rm -rf "$work/source" "$work/download" "$work/unpacked"
    if [ -n "${ENGINE_SOURCE:-}" ]; then
        local found
        found=$(realpath "$ENGINE_SOURCE")/${php}_${source_version#*:}.dsc
        [ -e "$found" ] || fail "there is no $found" \
            "the installed PHP is $source_version: ENGINE_SOURCE needs that version's files"
        mkdir -p "$work/download"
        ln -s "$(dirname "$found")"/* "$work/download/"
    else
        # shellcheck source=scripts/source-package.sh
        . scripts/source-package.sh
        source_lists "$work/apt"
        local versions
        versions=$(source_versions "$php" | tr '\n' ' ')
        if ! source_download "$php" "$source_version" "$work/download"; then
            case " $versions" in
                *" $source_version "*) fail "the Debian mirror lists the source of $php $source_version, and does not have it" \
                    "a mirror may be late: try again later, or set ENGINE_SOURCE to a folder with its files" ;;
                *) fail "the Debian mirror has no source of $php $source_version, which is installed; it lists ${versions:-none}" \
                    "upgrade PHP to one of these (sudo apt-get update; sudo apt-get upgrade), or set ENGINE_SOURCE" ;;
            esac
        fi
        rm -rf "$work/apt"
    fi
    dpkg-source --no-check -x "$work/download/${php}_${source_version#*:}.dsc" "$work/unpacked" >"$work/log" 2>&1 ||
        fail "the source cannot be unpacked: $(tail -n 3 "$work/log")" "start again"
    mv "$work/unpacked" "$work/source"
    rm -rf "$work/download" "$work"/*.tar.*
    mark fetch
}

# Debian's options of the command line's PHP, but for what is the command line's, and the embed library's instead.
options() {
    local option
    for option in $("$config" --configure-options); do
        case $option in
            --enable-cli | --with-libedit* | --with-readline*) ;;
            # Debian has it in libphp of some versions.
            --enable-pcntl) if grep -q pcntl_fork "$installed"; then echo "$option"; fi ;;
            --with-config-file* | --config-cache | --cache-file=*) ;;
            --*) echo "$option" ;;
        esac
    done
    echo --enable-cli # It runs the training.
    echo --enable-embed=shared
    echo "--with-config-file-path=/etc/php/${php#php}/embed"
    echo "--with-config-file-scan-dir=/etc/php/${php#php}/embed/conf.d"
}

configure() {
    done_with configure && return
    say "2 of 5: configure"
    local flags
    flags=$(DEB_BUILD_MAINT_OPTIONS=hardening=+bindnow dpkg-buildflags --get CFLAGS | sed -E 's/-f[a-z-]*-prefix-map=[^ ]*//g')
    rm -rf "$work/build" "$work"/done-counters "$work"/done-training "$work"/done-engine
    mkdir -p "$work/build"
    (
        cd "$work/source"
        ./buildconf --force
        cd "$work/build"
        mapfile -t options < <(options)
        # What Debian's rules have, without debugging information.
        CC="$tree/scripts/php-engine/cc" \
            CFLAGS="$flags -O2 -fsigned-char -fno-strict-aliasing -DOPENSSL_SUPPRESS_DEPRECATED -g0 -w" \
            CPPFLAGS=$(dpkg-buildflags --get CPPFLAGS) \
            LDFLAGS=$(DEB_BUILD_MAINT_OPTIONS=hardening=+bindnow dpkg-buildflags --get LDFLAGS) \
            ../source/configure "${options[@]}"
    ) >"$work/log" 2>&1 || fail "configure has failed:
$(tail -n $tail_lines "$work/log")" "all of it is in $work/log"
    mark configure
}

# Objects of a step that was interrupted, or of the one before. Pages spend nothing in plain.txt's files, or all of it in a loop
# that is as it is, so they are compiled once, as Debian does; of ext/random, a function is replaced by the worker's own (own.list),
# which must not be put into its callers.
forget() {
    local file plain=()
    while [ "$1" = engine ] && read -r file; do
        plain+=(! -path "*$file*" ! -path "*${file%/*}/.libs/${file##*/}*")
    done <scripts/php-engine/plain.txt
    find "$work/build" \( -name '*.o' -o -name '*.lo' -o -name '*.la' \) "${plain[@]}" -delete
}

# compile STEP STAGE TEXT TARGET...: all objects anew, with a line of progress now and then.
compile() {
    local step=$1 stage=$2 text=$3 all=0 count=0 shown=-1
    shift 3
    say "$step of 5: $text"
    forget "$stage"
    export ENGINE_STAGE=$stage ENGINE_BEGUN=$work/begun ENGINE_PROGRESS=$work/compiled
    all=$(make -C "$work/build" -n "$@" 2>/dev/null | grep -c -- '--mode=compile' || true)
    : >"$ENGINE_PROGRESS"
    touch "$ENGINE_BEGUN"
    sleep 1 # What is compiled is newer than that, to the second.
    setsid make -C "$work/build" -j "$ENGINE_JOBS" "$@" >"$work/log" 2>&1 &
    builder=$!
    while kill -0 $builder 2>/dev/null; do
        count=$(wc -l <"$ENGINE_PROGRESS")
        if [ "$all" -gt 0 ] && [ $((count * 10 / all)) -gt $shown ]; then
            shown=$((count * 10 / all))
            say "$step of 5: $text: $count of $all files"
            [ "$count" -lt "$all" ] || say "$step of 5: $text: it is linked, which may take a few minutes"
        fi
        sleep 1
    done
    wait $builder || fail "the compiler has failed:
$(grep -E 'error|No space|Killed' "$work/log" | tail -n 5 || true)
$(tail -n $tail_lines "$work/log")" "all of it is in $work/log; once it is mended, the same command goes on"
    builder=
    unset ENGINE_STAGE ENGINE_BEGUN ENGINE_PROGRESS
}

counters() {
    done_with counters && return
    rm -f "$work"/done-training "$work"/done-engine
    compile 3 counters "compile with counters" libphp.la sapi/cli/php
    mark counters
}

# The extensions are Debian's, which load into this PHP as they will into the engine.
train() {
    done_with training && return
    say "4 of 5: train (${train_apps[*]})"
    local app var=$work/training
    find "$work/build" -name '*.gcda' -delete
    for app in "${train_apps[@]}"; do
        rm -rf "$var"
        mkdir -p "$var/ini" "$var/sessions" "$var/app"
        printf '%s\n' opcache.enable_cli=1 opcache.jit=disable display_errors=stderr memory_limit=256M \
            "session.save_path=$var/sessions" session.gc_probability=0 >"$var/ini/99-training.ini"
        (
            export PHPRC=/etc/php/${php#php}/cli BENCH_VAR=$var/app BENCH_WORKERS=1
            export PHP_INI_SCAN_DIR=/etc/php/${php#php}/cli/conf.d:$var/ini
            cd "bench/apps/$app"
            [ ! -e setup.php ] || "$php" setup.php
            "$work/build/sapi/cli/php" alone.php $train_seconds
        ) >"$work/log" 2>&1 || fail "$app did not run for the training:
$(tail -n $tail_lines "$work/log")" "all of it is in $work/log"
        say "4 of 5: $app: $(tail -n 1 "$work/log")"
    done
    rm -rf "$var"
    [ -n "$(find "$work/build/Zend" -name '*.gcda' -print -quit)" ] ||
        fail "the training has left no counters" "is $work writable?"
    mark training
}

engine() {
    done_with engine && return
    # What the server knows it by.
    local embed=$work/source/sapi/embed/php_embed.c
    sed -i '/samovar-php-engine: /d' "$embed"
    printf 'const char samovar_php_engine[] __attribute__((used)) = "samovar-php-engine: %s";\n' "$key" >>"$embed"
    compile 5 engine "compile by what was counted, and link" libphp.la
    mark engine
}

# ---- is it what it should be? ----

# names FILE: what others find in it.
names() {
    nm -D --defined-only --format=posix "$1" | cut -d ' ' -f 1 | sort
}

examine() {
    local built=$1 lost name dynamic open
    lost=$(comm -23 <(names "$installed") <(names "$built") | head -n 5 | tr '\n' ' ')
    [ -z "$lost" ] || fail "the engine lacks functions that $installed has: $lost…" "is this the source of $source_version?"
    dynamic=$(readelf -dW "$built")
    open=$(readelf -rW "$built")
    for name in 'soname: \[libphp.so\]' BIND_NOW; do
        grep -q "$name" <<<"$dynamic" || fail "the engine was not linked as Debian's ($name)" "all of it is in $work/log"
    done
    while read -r name; do
        grep -q " $name +" <<<"$open" || fail "the engine would not let the worker replace $name" \
            "a linker that does not know --dynamic-list?"
    done < <(sed -n 's/^ *\([a-z_0-9]*\);$/\1/p' scripts/php-engine/own.list)
    if grep -q pcntl_fork "$installed" && ! grep -q pcntl_fork "$built"; then
        fail "the engine lacks the extension pcntl, which $installed has" "all of it is in $work/log"
    fi
    grep -q "samovar-php-engine: $key" "$built" || fail "the engine does not say what it was made of"
}

# Under names of its own first: whoever starts a server meanwhile gets the former engine or this one.
put() {
    local new=$to/.$library.$$
    cp "$1" "$new"
    strip --strip-debug "$new"
    examine "$new"
    chmod 644 "$new"
    sync "$new"
    mv -f "$new" "$to/$library"
    echo "$key $recipe" >"$to/.ENGINE.$$"
    mv -f "$to/.ENGINE.$$" "$to/ENGINE"
}

end() {
    if [ -n "${builder:-}" ]; then
        # Its compilers, too.
        kill -TERM -- "-$builder" 2>/dev/null || true
    fi
    rm -f "$to/.$library.$$" "$to/.ENGINE.$$"
}

stopped() {
    say "interrupted; the same command goes on with the step that was begun"
    exit 130
}

# A function, so that all of this file is read before it begins: it may be replaced meanwhile.
build() {
    look_at_packages
    look_at_versions
    mkdir -p "$to" "$work" 2>/dev/null || fail "cannot make $to and $work" "name a folder that you may write to: make php-engine ENGINE=FOLDER"
    exec 9>"$work/lock"
    flock -n 9 || fail "another run works in $work" "wait for it, or set ENGINE_WORK and another folder"
    if [ "$(cat "$to/ENGINE" 2>/dev/null)" = "$key $recipe" ] && [ -f "$to/$library" ]; then
        say "$to/$library is of $source_version, and up to date"
        exit 0
    fi
    look_at_disk
    fetch
    configure
    counters
    train
    engine
    put "$work/build/libs/libphp.so"
    rm -rf "$work"
    say "$to/$library is PHP $source_version"
    echo "hint: php_engine = \"$to/$library\" in samovar.toml, then \`samovar check\`" >&2
}

trap end EXIT
trap stopped INT TERM HUP
build
