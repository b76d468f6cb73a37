#!/usr/bin/env bash
# Builds other servers from source, for comparison by bench/run.py: bench/peers/build.sh
# NAME=FOLDER...
#
#   bench/peers/build.sh swoole=/src/swoole-src workerman=/src/workerman \
#       roadrunner=/src/roadrunner frankenphp=/src/frankenphp
#
# FOLDER is the source as its project publishes it; nothing is written there. Swoole takes five
# minutes, FrankenPHP's PHP for threads ten, the others one. The results are put into target/peers,
# where bench/run.py finds them. If a build fails, its previous result stays in place.
#
# php=FOLDER: the source of that PHP for threads. Without it, the Debian source of the installed
# PHP, or of a version close to it.
# PEERS_JOBS: number of concurrent compilers; default: the number of cores.
# PHP_CONFIG: the php-config of the PHP that Swoole is built for; default: php-config8.2.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=/dev/null
. scripts/say.sh

tail_lines=15
known="swoole workerman roadrunner frankenphp"
config=${PHP_CONFIG:-php-config8.2}
php=php${config##*php-config}
jobs=${PEERS_JOBS:-$(nproc)}
to=$PWD/target/peers
work=$to/work
log=$work/log
declare -A source

# Options required by FrankenPHP's manual and by the applications of bench/apps; opcache is built
# automatically.
threads_options=(--enable-embed --enable-zts --disable-zend-signals --enable-zend-max-execution-timers --enable-mbstring
    --enable-intl --disable-cgi --disable-phpdbg --without-sqlite3 --without-pdo-sqlite)
roadrunner_plugins=(informer resetter logger rpc server http)

# quietly NAME COMMAND...: writes its output to the log, and shows the end of the log if it fails.
quietly() {
    local what=$1
    shift
    "$@" >"$log" 2>&1 || fail "$what has failed:
$(tail -n $tail_lines "$log")" "all of it is in $log"
}

needs() {
    local command
    for command in "$@"; do
        command -v "$command" >/dev/null || fail "$command is missing" "\`make peers\` installs what Debian has; Go, for RoadRunner and FrankenPHP, is not in Debian 12 as new as they ask for"
    done
}

# copied NAME: prints a folder with a copy of that source.
copied() {
    rm -rf "${work:?}/$1"
    mkdir -p "$work"
    # Without its history, which may be a hundred times as large.
    (cd "${source[$1]}" && tar -c --exclude-vcs .) | (mkdir "$work/$1" && tar -x -C "$work/$1")
    echo "$work/$1"
}

# has NAME FILE: checks that the source of NAME contains FILE.
has() {
    [ -e "${source[$1]}/$2" ] || fail "$1: ${source[$1]} has no $2" "name the folder of its source, unpacked"
}

# version NAME: from its history or the name of its folder.
version() {
    local folder=${source[$1]}
    if [ -e "$folder/.git" ]; then
        git -C "$folder" describe --tags 2>/dev/null || echo unknown
    else
        basename "$folder" | grep -oE 'v?[0-9][0-9a-z.]*$' || echo unknown
    fi
}

# put FILE WHERE: copies under another name first, so that the old or the new file always exists.
put() {
    mkdir -p "$(dirname "$2")"
    cp "$1" "$2.new"
    mv -f "$2.new" "$2"
}

build_swoole() {
    local folder
    has swoole config.m4
    needs "phpize${config##*php-config}" "$config" g++ make
    folder=$(copied swoole)
    say "Swoole: configure"
    (cd "$folder" && quietly phpize "phpize${config##*php-config}" && quietly configure ./configure "--with-php-config=$config")
    say "Swoole: compile"
    quietly "Swoole's make" make -C "$folder" -j "$jobs"
    "$php" -d "extension=$folder/modules/swoole.so" -r 'echo swoole_version(), "\n";' >"$log" 2>&1 ||
        fail "$php does not load it: $(cat "$log")"
    put "$folder/modules/swoole.so" "$to/swoole.so"
    say "Swoole $(cat "$log") is $to/swoole.so"
    rm -rf "$folder"
}

# Its package has only classes. The autoloader is written here if Composer has not created one.
build_workerman() {
    local folder
    has workerman src/Worker.php
    folder=$(copied workerman)
    if [ ! -e "$folder/vendor/autoload.php" ]; then
        mkdir -p "$folder/vendor"
        cat >"$folder/vendor/autoload.php" <<'PHP'
<?php

spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/../src/' . strtr(substr($class, strlen('Workerman\\')), '\\', '/') . '.php';
    if (str_starts_with($class, 'Workerman\\') && is_file($file)) {
        require $file;
    }
});
PHP
    fi
    rm -rf "$to/workerman"
    mv "$folder" "$to/workerman"
    say "Workerman is in $to/workerman"
}

# With the plugins that are required to serve HTTP; its own builder also supports such a selection.
# The others depend on modules of a dozen brokers, caches and clouds, all of which would be needed.
build_roadrunner() {
    local folder plugins=container/plugins.go path
    has roadrunner cmd/rr/main.go
    has roadrunner $plugins
    needs go
    folder=$(copied roadrunner)
    say "RoadRunner: go build"
    (
        cd "$folder"
        path=$(sed -nE 's|.*"(github.com/temporalio/[^"]*)"$|\1|p' $plugins)
        [ -z "$path" ] || quietly "go mod edit" go mod edit -droprequire "$path"
        {
            printf 'package container\n\nimport (\n'
            for name in "${roadrunner_plugins[@]}"; do
                sed -nE "s|^.*\"(github.com/roadrunner-server/$name/v[0-9]+)\"\$|\t$name \"\1\"|p" $plugins
            done
            printf ')\n\nfunc Plugins() []any {\n\treturn []any{\n'
            printf '\t\t&%s.Plugin{},\n' "${roadrunner_plugins[@]}"
            printf '\t}\n}\n'
        } >chosen.go
        mv chosen.go $plugins
        CGO_ENABLED=0 GOWORK=off GOFLAGS="-buildvcs=false -mod=mod" quietly "go build" \
            go build -trimpath -ldflags "-s -X $(sed -n 's/^module //p' go.mod)/internal/meta.version=$(version roadrunner)" -o rr ./cmd/rr
    )
    put "$folder/rr" "$to/bin/rr"
    rm -rf "$folder"
    say "RoadRunner is $to/bin/rr"
}

# Builds a PHP for threads, with its libphp: $to/threads.
build_threads() {
    local folder
    if [ -n "${source[php]:-}" ]; then
        has php main/main.c
        folder=$(copied php)
    else
        say "PHP for threads: the source of $php"
        folder=$work/php
        fetch_php "$folder"
    fi
    say "PHP for threads: configure"
    (
        cd "$folder"
        quietly buildconf ./buildconf --force
        quietly configure ./configure "--prefix=$to/threads" "--with-config-file-path=$to/threads/etc" "${threads_options[@]}"
    )
    say "PHP for threads: compile"
    quietly "PHP's make" make -C "$folder" -j "$jobs"
    rm -rf "$to/threads"
    quietly "PHP's make install" make -C "$folder" install
    mkdir -p "$to/threads/etc"
    echo "zend_extension=opcache" >"$to/threads/etc/php.ini"
    "$to/threads/bin/php" -r 'exit(PHP_ZTS && extension_loaded("Zend OPcache") ? 0 : 1);' ||
        fail "the PHP for threads does not run with opcache: $to/threads/bin/php"
    rm -rf "$folder"
}

# fetch_php FOLDER: unpacks the source package of the installed PHP, or of a close version, there.
fetch_php() {
    local download=$work/download
    # shellcheck source=/dev/null
    . scripts/source-package.sh
    source_lists "$work/apt"
    source_nearest "$php" "$(dpkg-query -W -f '${source:Version}' "$php-cli")" "$download" 2>"$log" ||
        fail "Debian's mirror has no source of $php: $(tail -n 1 "$log")" "php=FOLDER names a folder with one"
    rm -rf "$1"
    quietly "dpkg-source" dpkg-source --no-check -x "$download/${php}_"*.dsc "$1"
    # dpkg-source leaves the tarball next to the folder.
    rm -rf "$work/apt" "$download" "$work"/*.tar.*
}

build_frankenphp() {
    local folder lib threads=$to/threads
    has frankenphp caddy/frankenphp/main.go
    needs go gcc g++ make autoconf bison re2c pkg-config dpkg-source
    if [ ! -x "$threads/bin/php-config" ] || [ -n "${source[php]:-}" ]; then
        build_threads
    fi
    # PHP's own source installs it in lib, Debian's in lib/php.
    lib=$(dirname "$(find "$threads/lib" -name libphp.so -print -quit)")
    folder=$(copied frankenphp)
    say "FrankenPHP: go build"
    (
        cd "$folder/caddy/frankenphp"
        CGO_ENABLED=1 CGO_CFLAGS="-O2 $("$threads/bin/php-config" --includes)" \
            CGO_LDFLAGS="-Wl,-rpath,$lib -L$lib $("$threads/bin/php-config" --ldflags) $("$threads/bin/php-config" --libs)" \
            GOFLAGS=-buildvcs=false quietly "go build" \
            go build -tags nobadger,nomysql,nopgx,nobrotli,nowatcher,nomercure -o frankenphp \
            -ldflags "-s -X 'github.com/caddyserver/caddy/v2.CustomVersion=FrankenPHP $(version frankenphp), PHP $("$threads/bin/php" -r 'echo PHP_VERSION;')'" .
    )
    put "$folder/caddy/frankenphp/frankenphp" "$to/bin/frankenphp"
    rm -rf "$folder"
    say "FrankenPHP is $to/bin/frankenphp"
}

[ $# -gt 0 ] || fail "which?" "bench/peers/build.sh NAME=FOLDER..., of $known"
for word in "$@"; do
    name=${word%%=*}
    folder=${word#*=}
    case " $known php " in
        *" $name "*) ;;
        *) fail "$word is not known" "NAME=FOLDER..., of $known" ;;
    esac
    if [ "$name" = "$word" ] || [ ! -d "$folder" ]; then
        fail "$word: there is no such folder" "$name=FOLDER, that of its source"
    fi
    source[$name]=$(realpath "$folder")
done
if [ -n "${source[php]:-}" ] && [ -z "${source[frankenphp]:-}" ]; then
    fail "php=${source[php]} is for FrankenPHP, which is not asked for" "frankenphp=FOLDER beside it"
fi
mkdir -p "$work"
exec 9>"$work/lock"
flock -n 9 || fail "another run works in $work" "wait for it"
for name in $known; do
    [ -z "${source[$name]:-}" ] || "build_$name"
done
