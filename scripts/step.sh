#!/usr/bin/env bash
# Runs a step of a build or a test and records its duration: `scripts/step.sh NAME COMMAND…`.
# `--summary` prints the recorded durations.
set -euo pipefail
steps=target/tests/steps.tsv
if [ "${1:-}" = --summary ]; then
    echo "steps of this run, in seconds:"
    cat $steps
    exit
fi
name=$1
shift
mkdir -p target/tests
begun=$(date +%s)
status=0
"$@" || status=$?
printf '%6d  %s\n' $(($(date +%s) - begun)) "$name" >>$steps
exit $status
