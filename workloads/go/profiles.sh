#!/usr/bin/env bash
# Makes the profiles of fixtures/pprof: ./profiles.sh FOLDER
#
# Runs profiled.go under Go's profiler, and prints each profile with `go tool pprof`. Needs Go.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(mkdir -p "$1" && cd "$1" && pwd)"
scratch="$(mktemp -d /tmp/whyslow-go.XXXXXX)"
trap 'rm -rf "$scratch"' EXIT
export GOCACHE="$scratch/cache" GOFLAGS=-trimpath GO111MODULE=off
go build -o "$scratch/profiled" "$here/profiled.go"
(cd "$scratch" && timeout 60 ./profiled "$folder" 2)
for profile in cpu block mutex goroutine; do
    # Stacks with their values, as integers.
    go tool pprof -raw "$folder/$profile.pprof" >"$folder/$profile.raw.txt"
done
