# shellcheck shell=bash
# Downloads Debian source packages without root and without changing the system. Sourced by
# php-src.sh, php-engine.sh and bench/peers/build.sh. apt uses separate lists in a folder, made from
# the system's own Debian sources.

# source_lists FOLDER: prepares that folder for the functions below.
source_lists() {
    local apt=$1 file
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts" "$apt/download"
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -e "$file" ] || continue
        awk -v RS= -v ORS='\n\n' '/debian-archive-keyring/' "$file" | grep -v '^#' |
            sed 's/^Types:.*/Types: deb-src/' >"$apt/parts/$(basename "$file")"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -e "$file" ] || continue
        sed -n '/\/debian/s/^deb /deb-src /p' "$file" >"$apt/parts/$(basename "$file" .list).list"
    done
    source_options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/parts"
        -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=)
}

# source_versions PACKAGE: prints the versions that the mirror lists, the newest first.
source_versions() {
    apt-get "${source_options[@]}" update -qq
    apt-cache "${source_options[@]}" showsrc "$1" | sed -n 's/^Version: //p' | sort -Vr
}

# source_download PACKAGE VERSION FOLDER: downloads its files; afterwards the folder contains
# nothing else.
source_download() {
    rm -rf "$3"
    mkdir -p "$3"
    (cd "$3" && apt-get "${source_options[@]}" source -qq --download-only "$1=$2" >&2)
}

# source_nearest PACKAGE VERSION FOLDER: the same, but takes another version if that one cannot be
# downloaded: a mirror may list a version that it does not have.
source_nearest() {
    local version
    for version in $2 $(source_versions "$1"); do
        if source_download "$1" "$version" "$3"; then
            return
        fi
    done
    return 1
}
