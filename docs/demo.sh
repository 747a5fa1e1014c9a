#!/usr/bin/env bash
# The story of the bundled incident, and of one that is made now if LIVE is set; a report of the last of
# them, and with SERVE it is served. Called by ./dev demo with WHYSLOW, WORK and FIXTURE set.
set -euo pipefail

rec="$WORK/web.wsl"
tell() { printf '\n# %s\n' "$*"; }
run() {
    printf '$ whyslow %s\n' "${*//$WORK\//}"
    "$WHYSLOW" "$@"
}

tell "A page that answers in 20 ms took 186 ms once. The kernel was being traced: one import, then questions."
run import "$FIXTURE" -o "$rec"

tell "Who moved bytes, through system calls and on the disks?"
run io usage "$rec" --no-tracer -n 6

tell "How long do operations take? Something in open and sync does not fit."
run io stats "$rec" --no-tracer --min-size 2
run io hist "$rec" --op openat

tell "The worst of them, with file names."
run io top "$rec" --op openat,sync --no-tracer -n 4

# The id of the worst open leads to a window cut to it.
id=$("$WHYSLOW" io top "$rec" --op openat -n 1 --csv --cols id 2>/dev/null | sed -n '2s/,.*//p')
tell "Cut the window to that one open ($id): what else was running, and what did the disks do?"
run io top "$rec" -w "$id" --op openat,sync --no-tracer -n 4
run block top "$rec" -w "$id" -n 4

tell "All of that in one question."
run explain "$rec" -n 1

# What is left to look at; the end of everything.
finish() {
    tell "To send to a colleague: one file, which opens in any browser, without a network."
    run export html "$1" -o "$WORK/incident.html"
    printf '\n  report     %s\n  recording  %s\n' "$WORK/incident.html" "$1"
    if [ -n "${SERVE:-}" ]; then
        tell "In the browser, until Ctrl-C."
        exec "$WHYSLOW" serve "$1"
    fi
    printf '  browser    whyslow serve, or ./dev demo --serve\n'
    exit 0
}

if [ -z "${LIVE:-}" ]; then
    finish "$rec"
elif [ "$(id -u)" -ne 0 ]; then
    tell "The same for real, on a slow disk of its own, needs root: sudo ./dev demo"
    finish "$rec"
fi
tell "The same for real: a service on a slow disk of its own, and somebody's sync."
storm="$WORK/storm.wsl"
status=0
python3 workloads/run.py sync_storm --record "$storm" --whyslow "$WHYSLOW" >"$WORK/truth.json" 2>"$WORK/errors.log" || status=$?
if [ ! -d "$storm" ] || grep -q '"skipped"' "$WORK/truth.json"; then
    tell "This machine cannot make it (exit $status):"
    tail -n 5 "$WORK/errors.log"
    finish "$rec"
fi
run explain "$storm" -n 1
tell "What the incident itself says: guilty is $(python3 -c 'import json, sys
guilty = json.load(open(sys.argv[1]))["guilty"]
print(guilty["comm"], guilty["pid"])' "$WORK/truth.json")."
finish "$storm"
