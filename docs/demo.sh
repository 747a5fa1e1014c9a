#!/usr/bin/env bash
# Explains the bundled incident, and one that is caused now if LIVE is set; writes a report of the last one,
# and serves it if SERVE is set. Called by ./dev demo with WHYSLOW, WORK and FIXTURE set.
set -euo pipefail

rec="$WORK/web.wsl"
title() { printf '\n# %s\n' "$*"; }
run() {
    printf '$ whyslow %s\n' "${*//$WORK\//}"
    "$WHYSLOW" "$@"
}

title "A page that usually takes 20 ms once took 186 ms, while the kernel was traced. Import the trace, then query it."
run import "$FIXTURE" -o "$rec"

title "Which processes moved data, through system calls and on the disks?"
run io usage "$rec" --no-tracer -n 6

title "How long do operations take? open and sync have outliers."
run io stats "$rec" --no-tracer --min-size 2
run io hist "$rec" --op openat

title "The slowest of them, with file names."
run io top "$rec" --op openat,sync --no-tracer -n 4

# The id of the slowest open limits the window to it.
id=$("$WHYSLOW" io top "$rec" --op openat -n 1 --csv --cols id 2>/dev/null | sed -n '2s/,.*//p')
title "Cut the window to that open ($id): what else was in progress, and what did the disks do?"
run io top "$rec" -w "$id" --op openat,sync --no-tracer -n 4
run block top "$rec" -w "$id" -n 4

title "All of that in one query."
run explain "$rec" -n 1

# Writes the report and ends the demo.
finish() {
    title "A report to share: one file that opens in any browser, without a network."
    run export html "$1" -o "$WORK/incident.html"
    printf '\n  report     %s\n  recording  %s\n' "$WORK/incident.html" "$1"
    if [ -n "${SERVE:-}" ]; then
        title "Serving it for the browser; press Ctrl-C to stop."
        exec "$WHYSLOW" serve "$1"
    fi
    printf '  browser    whyslow serve, or ./dev demo --serve\n'
    exit 0
}

if [ -z "${LIVE:-}" ]; then
    finish "$rec"
elif [ "$(id -u)" -ne 0 ]; then
    title "A live incident on a slow disk needs root: sudo ./dev demo"
    finish "$rec"
fi
title "A live incident: a service on a slow disk, and another process that calls sync."
storm="$WORK/storm.wsl"
status=0
python3 workloads/run.py sync_storm --record "$storm" --whyslow "$WHYSLOW" >"$WORK/truth.json" 2>"$WORK/errors.log" || status=$?
if [ ! -d "$storm" ] || grep -q '"skipped"' "$WORK/truth.json"; then
    title "This machine cannot run it (exit status $status):"
    tail -n 5 "$WORK/errors.log"
    finish "$rec"
fi
run explain "$storm" -n 1
title "Ground truth of the incident: the culprit is $(python3 -c 'import json, sys
guilty = json.load(open(sys.argv[1]))["guilty"]
print(guilty["comm"], guilty["pid"])' "$WORK/truth.json")."
finish "$storm"
