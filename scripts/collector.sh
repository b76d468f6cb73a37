#!/bin/sh
# Builds an OpenTelemetry collector from its own modules (tests/collector): scripts/collector.sh
# [FILE] This collector receives OTLP over HTTP and writes the received data as JSON. The build
# takes a few minutes and 300 MB of modules from the Go module proxy.
set -eu

source=$(cd "$(dirname "$0")/../tests/collector" && pwd)
to=$(realpath -m "${1:-${TMPDIR:-/tmp}/samovar-collector/collector}")
mkdir -p "$(dirname "$to")"
cd "$source"
exec env GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$to" .
