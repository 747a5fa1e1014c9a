#!/usr/bin/env bash
# The I/O story of the bundled incident. Called by ./dev demo with WHYSLOW, WORK and FIXTURE set.
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

tell "apache2's open of its session file took 158 ms while another process's sync ran across all of it (*),"
echo "# and the disk it lives on was busy with the journal and the pages that this sync wrote."
