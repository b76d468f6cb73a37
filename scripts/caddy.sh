#!/bin/sh
# Builds Caddy, a web server that stands in front of PHP, of its Go module: scripts/caddy.sh [FOLDER]
# It puts `caddy` there; some minutes, and 500 MB of modules from the proxy of Go.
set -eu

folder=$(realpath -m "${1:-${TMPDIR:-/tmp}/samovar-caddy}")
if [ ! -x "$folder/caddy" ]; then
    mkdir -p "$folder"
    GOFLAGS=-mod=mod GOBIN="$folder" GOPATH="$folder/go" CGO_ENABLED=0 \
        go install github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9
fi
