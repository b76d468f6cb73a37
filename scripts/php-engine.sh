#!/usr/bin/env bash
# Builds a libphp from the source of the installed PHP that takes less CPU: scripts/php-engine.sh
# [FOLDER] (docs/internals/decisions/engine.md). Writes libphp8.2.so and ENGINE to FOLDER (default:
# target/engine). The previous files stay there until the build has succeeded.
#
# PHP_CONFIG: the php-config of the PHP version; default: php-config8.2.
# ENGINE_JOBS: number of concurrent compilers; default: the number of cores.
# ENGINE_SOURCE: a folder with the files of the source package (.dsc, .tar.xz), if no mirror has
# them.
# ENGINE_WORK: the build folder; default: FOLDER/work. After an interruption, the next run continues
# with the unfinished step.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. scripts/say.sh
tree=$PWD

disk_mib_min=1200     # Source, objects twice, and the link.
train_seconds=3       # For each application, after a second of warm-up.
train_apps=(echo bootstrap symfony)
tail_lines=15

config=${PHP_CONFIG:-php-config8.2}
php=php${config##*php-config}
to=$(realpath -m "${1:-target/engine}")
work=$(realpath -m "${ENGINE_WORK:-$to/work}")
export ENGINE_JOBS=${ENGINE_JOBS:-$(nproc)}
library=lib$php.so

# version_of PACKAGE: version of the source from which the installed package was built, or nothing.
version_of() {
    dpkg-query -W -f '${db:Status-Abbrev}${source:Version}' "$1" 2>/dev/null | sed -n 's/^ii *//p'
}

build_id() {
    readelf -n "$1" | sed -n 's/ *Build ID: //p'
}

# ---- requirements ----

look_at_packages() {
    local missing=() package
    # As in setup.sh, the lists name PHP 8.2.
    while read -r package; do
        package=${package//php8.2/$php}
        [ -n "$(version_of "$package")" ] || missing+=("$package")
    done < <(sed '/^#/d; s/ .*//' scripts/packages-build.txt scripts/packages-engine.txt)
    [ ${#missing[@]} = 0 ] || fail "missing packages: ${missing[*]}" \
        "run sudo apt-get install --no-install-recommends ${missing[*]}"
}

look_at_versions() {
    local other package
    source_version=$(version_of "lib$php-embed")
    for package in "$php-cli" "$php-dev" "$php-opcache" "$php-common"; do
        other=$(version_of "$package")
        [ "$other" = "$source_version" ] || fail \
            "$package has version $other, lib$php-embed has $source_version: the engine and its extensions need the same version" \
            "run sudo apt-get install lib$php-embed $package"
    done
    installed=$(dpkg-query -L "lib$php-embed" | grep -E "/$library\$" | head -n 1)
    [ -f "$installed" ] || fail "no $library in lib$php-embed" "run sudo apt-get install --reinstall lib$php-embed"
    # A new Debian version may have other patches; a change of these files changes the build steps.
    recipe=$(cat scripts/php-engine.sh scripts/php-engine/* | sha256sum | cut -c 1-16)
    key="$source_version beside $(build_id "$installed")"
}

look_at_disk() {
    local free
    free=$(df -m --output=avail "$work" | tail -n 1 | tr -d ' ')
    [ "$free" -ge $disk_mib_min ] || fail "$work has $free MiB of free disk space, the build needs $disk_mib_min" \
        "free disk space, or set ENGINE_WORK to a folder on another disk"
}

# ---- steps that are done once ----

# The mark of a step is written at its end. An interrupted step starts again from its beginning.
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
        [ -e "$found" ] || fail "cannot find $found" \
            "set ENGINE_SOURCE to a folder with the files of $source_version, the installed PHP"
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
                *" $source_version "*) fail "the Debian mirror lists the source of $php $source_version, but does not have it" \
                    "try again later (the mirror may be outdated), or set ENGINE_SOURCE to a folder with the files" ;;
                *) fail "the Debian mirror has no source of the installed $php $source_version; it lists ${versions:-none}" \
                    "upgrade PHP to one of these (sudo apt-get update; sudo apt-get upgrade), or set ENGINE_SOURCE" ;;
            esac
        fi
        rm -rf "$work/apt"
    fi
    dpkg-source --no-check -x "$work/download/${php}_${source_version#*:}.dsc" "$work/unpacked" >"$work/log" 2>&1 ||
        fail "cannot unpack the source: $(tail -n 3 "$work/log")" "run the command again"
    mv "$work/unpacked" "$work/source"
    rm -rf "$work/download" "$work"/*.tar.*
    mark fetch
}

# The configure options of Debian's command-line PHP, with those of the embed library in place of
# the command line's own.
options() {
    local option
    for option in $("$config" --configure-options); do
        case $option in
            --enable-cli | --with-libedit* | --with-readline*) ;;
            # Debian's libphp contains pcntl in some versions only.
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
        # The flags of Debian's rules, without debugging information.
        CC="$tree/scripts/php-engine/cc" \
            CFLAGS="$flags -O2 -fsigned-char -fno-strict-aliasing -DOPENSSL_SUPPRESS_DEPRECATED -g0 -w" \
            CPPFLAGS=$(dpkg-buildflags --get CPPFLAGS) \
            LDFLAGS=$(DEB_BUILD_MAINT_OPTIONS=hardening=+bindnow dpkg-buildflags --get LDFLAGS) \
            ../source/configure "${options[@]}"
    ) >"$work/log" 2>&1 || fail "configure failed:
$(tail -n $tail_lines "$work/log")" "see $work/log"
    mark configure
}

# forget STAGE: removes the objects of an interrupted step or of the previous step. Objects of the
# files in plain.txt stay for the engine: these files are compiled once, with Debian's flags,
# because pages spend no time in them, or spend it in a loop that cannot be improved. ext/random is
# in plain.txt for another reason: the worker replaces one of its functions (own.list), so the
# compiler must not inline that function.
forget() {
    local file plain=()
    while [ "$1" = engine ] && read -r file; do
        plain+=(! -path "*$file*" ! -path "*${file%/*}/.libs/${file##*/}*")
    done <scripts/php-engine/plain.txt
    find "$work/build" \( -name '*.o' -o -name '*.lo' -o -name '*.la' \) "${plain[@]}" -delete
}

# compile STEP STAGE TEXT TARGET...: compiles all objects again and prints the progress.
compile() {
    local step=$1 stage=$2 text=$3 all=0 count=0 shown=-1
    shift 3
    say "$step of 5: $text"
    forget "$stage"
    export ENGINE_STAGE=$stage ENGINE_BEGUN=$work/begun ENGINE_PROGRESS=$work/compiled
    all=$(make -C "$work/build" -n "$@" 2>/dev/null | grep -c -- '--mode=compile' || true)
    : >"$ENGINE_PROGRESS"
    touch "$ENGINE_BEGUN"
    sleep 1 # So that compiled files are newer, even with times in whole seconds.
    setsid make -C "$work/build" -j "$ENGINE_JOBS" "$@" >"$work/log" 2>&1 &
    builder=$!
    while kill -0 $builder 2>/dev/null; do
        count=$(wc -l <"$ENGINE_PROGRESS")
        if [ "$all" -gt 0 ] && [ $((count * 10 / all)) -gt $shown ]; then
            shown=$((count * 10 / all))
            say "$step of 5: $text: $count of $all files"
            [ "$count" -lt "$all" ] || say "$step of 5: $text: linking, which may take a few minutes"
        fi
        sleep 1
    done
    wait $builder || fail "the compiler failed:
$(grep -E 'error|No space|Killed' "$work/log" | tail -n 5 || true)
$(tail -n $tail_lines "$work/log")" "see $work/log; fix the error and run the same command to continue"
    builder=
    unset ENGINE_STAGE ENGINE_BEGUN ENGINE_PROGRESS
}

counters() {
    done_with counters && return
    rm -f "$work"/done-training "$work"/done-engine
    compile 3 counters "compile with counters" libphp.la sapi/cli/php
    mark counters
}

# The training uses Debian's extensions: they can be loaded into this PHP, as later into the engine.
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
        ) >"$work/log" 2>&1 || fail "the training run of $app failed:
$(tail -n $tail_lines "$work/log")" "see $work/log"
        say "4 of 5: $app: $(tail -n 1 "$work/log")"
    done
    rm -rf "$var"
    [ -n "$(find "$work/build/Zend" -name '*.gcda' -print -quit)" ] ||
        fail "the training wrote no counters" "check that $work is writable"
    mark training
}

engine() {
    done_with engine && return
    # The server identifies the engine by this text.
    local embed=$work/source/sapi/embed/php_embed.c
    sed -i '/samovar-php-engine: /d' "$embed"
    printf 'const char samovar_php_engine[] __attribute__((used)) = "samovar-php-engine: %s";\n' "$key" >>"$embed"
    compile 5 engine "compile with the profile, and link" libphp.la
    mark engine
}

# ---- checks of the result ----

# names FILE: prints the symbols that it exports.
names() {
    nm -D --defined-only --format=posix "$1" | cut -d ' ' -f 1 | sort
}

examine() {
    local built=$1 lost name dynamic open
    lost=$(comm -23 <(names "$installed") <(names "$built") | head -n 5 | tr '\n' ' ')
    [ -z "$lost" ] || fail "the engine lacks functions that $installed has: $lost…" "check that the source has version $source_version"
    dynamic=$(readelf -dW "$built")
    open=$(readelf -rW "$built")
    for name in 'soname: \[libphp.so\]' BIND_NOW; do
        grep -q "$name" <<<"$dynamic" || fail "the engine is not linked in the same way as Debian's ($name)" "see $work/log"
    done
    while read -r name; do
        grep -q " $name +" <<<"$open" || fail "the worker cannot replace $name in the engine" \
            "check that the linker supports --dynamic-list"
    done < <(sed -n 's/^ *\([a-z_0-9]*\);$/\1/p' scripts/php-engine/own.list)
    if grep -q pcntl_fork "$installed" && ! grep -q pcntl_fork "$built"; then
        fail "the engine lacks the extension pcntl, which $installed has" "see $work/log"
    fi
    grep -q "samovar-php-engine: $key" "$built" || fail "the engine lacks the mark of its version"
}

# put FILE: installs the engine. Files are written under temporary names first, so that a server
# started in the meantime gets either the previous engine or this one.
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
        # The whole process group, so that the compilers end, too.
        kill -TERM -- "-$builder" 2>/dev/null || true
    fi
    rm -f "$to/.$library.$$" "$to/.ENGINE.$$"
}

stopped() {
    say "interrupted; run the same command to continue with the interrupted step"
    exit 130
}

# A function, so that the shell reads the whole file before the build begins: the file may be
# replaced during the build.
build() {
    look_at_packages
    look_at_versions
    mkdir -p "$to" "$work" 2>/dev/null || fail "cannot create $to and $work" "set a writable folder: make php-engine ENGINE=FOLDER"
    exec 9>"$work/lock"
    flock -n 9 || fail "another run uses $work" "wait for it, or set ENGINE_WORK and another folder"
    if [ "$(cat "$to/ENGINE" 2>/dev/null)" = "$key $recipe" ] && [ -f "$to/$library" ]; then
        say "$to/$library is up to date with $source_version"
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
    echo "hint: set php_engine = \"$to/$library\" in samovar.toml, then run \`samovar check\`" >&2
}

trap end EXIT
trap stopped INT TERM HUP
build
