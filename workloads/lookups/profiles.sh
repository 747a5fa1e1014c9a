#!/usr/bin/env bash
# Makes the profiles of fixtures/lookups: ./profiles.sh FOLDER
#
# A shop that looks up a name for each order, once with a resolver that occasionally loses a query (slow/) and once
# with one that does not (fine/), under each profiler. Needs root, py-spy (pip install py-spy), rbspy (cargo
# install rbspy), and Debian's ruby, ruby-stackprof and ruby-prof. The machine is not changed: network, resolv.conf
# and processes are in namespaces that end after at most a minute.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(mkdir -p "$1" && cd "$1" && pwd)"
# A fixed path, because profiles contain the paths of programs.
scratch=/tmp/whyslow-lookups
rm -rf "$scratch"
mkdir -m 700 "$scratch"
trap 'rm -rf "$scratch"' EXIT
cp "$here"/*.py "$here"/web.rb "$here/inside.sh" "$scratch/"
cd "$scratch"

one() {
    local kind="$1" every="$2" out="$scratch/$3"
    mkdir -p "$out"
    # The end of the namespace's PID 1 kills all its processes, even if it is killed itself.
    timeout -k 5 60 unshare --mount --net --pid --fork --mount-proc --kill-child \
        "$scratch/inside.sh" "$kind" "$every" "$out"
}

kinds=("${@:2}")
[ ${#kinds[@]} -gt 0 ] || kinds=(speedscope chrometrace raw dumps rbspy stackprof ruby-prof)
for kind in "${kinds[@]}"; do
    for state in slow:16 fine:0; do
        case "$kind:$state" in raw:fine* | ruby-prof:fine*) continue ;; esac
        rm -rf "${scratch:?}/out"
        one "$kind" "${state#*:}" out
        rm -f "$scratch"/out/{resolv.conf,lost.txt}
        mkdir -p "$folder/${state%:*}"
        cp -r "$scratch/out/." "$folder/${state%:*}/"
    done
done
for state in slow fine; do
    [ -d "$folder/$state" ] || continue
    cd "$folder/$state"
    python3 "$here/truth.py" .
    # A process has a call tree per thread: one worker's tree suffices.
    for tree in callgrind.out.*.*; do
        grep -q connect_database "$tree" 2>/dev/null && mv "$tree" ruby_prof.calltree
    done
    rm -f callgrind.out.*
    [ -f flat.txt ] && mv flat.txt ruby_prof.flat.txt && mv graph.txt ruby_prof.graph.txt
    gzip -nf9 pyspy.{chrometrace,speedscope} ruby_prof.graph.txt stackprof.json dumps/*.json 2>/dev/null || true
done
# The dump of the healthy run is large, and has the same content as its JSON.
if [ -f "$folder/fine/stackprof.dump" ]; then
    gzip -nf9 "$folder/fine/stackprof.dump"
    rm -f "$folder"/fine/stackprof.json.gz
fi
