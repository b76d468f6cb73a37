#!/bin/sh
# Builds h2spec with Go and runs all its cases, the strict ones too, against a running server:
# scripts/h2spec.sh HOST:PORT [TLS-HOST:PORT]
# Without TLS, one of its cases must fail: it sends an invalid HTTP/2 preface, which the server
# treats as HTTP/1.1, because the port serves both.
# A program h2spec in H2SPEC_FOLDER is used as it is.
set -u

if [ $# -lt 1 ]; then
    echo "usage: $0 HOST:PORT [TLS-HOST:PORT]" >&2
    exit 2
fi
folder=${H2SPEC_FOLDER:-${TMPDIR:-/tmp}/samovar-h2spec}
if [ ! -x "$folder/h2spec" ]; then
    GOBIN="$folder" GOPATH="$folder/go" go install github.com/summerwind/h2spec/cmd/h2spec@v2.2.1
fi
"$folder/h2spec" -S -h "${1%:*}" -p "${1##*:}"
if [ $# -gt 1 ]; then
    "$folder/h2spec" -S -h "${2%:*}" -p "${2##*:}" -t -k
fi
