#!/bin/sh
# Builds Caddy, a web server for use in front of PHP, from its Go module: scripts/caddy.sh [FOLDER]
# Writes `caddy` to that folder. Takes some minutes and 500 MB of modules from the Go module proxy.
set -eu

folder=$(realpath -m "${1:-${TMPDIR:-/tmp}/samovar-caddy}")
if [ ! -x "$folder/caddy" ]; then
    mkdir -p "$folder"
    GOFLAGS=-mod=mod GOBIN="$folder" GOPATH="$folder/go" CGO_ENABLED=0 \
        go install github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9
fi
