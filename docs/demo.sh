#!/usr/bin/env bash
# The I/O story of the bundled incident. Called by ./dev demo with WHYSLOW, WORK and FIXTURE set.
set -euo pipefail

rec="$WORK/web.wsl"
run() {
    printf '\n$ whyslow %s\n' "${*//$WORK\//}"
    "$WHYSLOW" "$@"
}

echo "A page that answers in 20 ms took 186 ms once. The kernel was being traced; one import, then questions."
run import "$FIXTURE" -o "$rec"
run info "$rec"
run io usage "$rec" -n 6
run io stats "$rec" --min-size 2
run io hist "$rec" --op open
run io top "$rec" --op open,sync -n 4

# The worst open, by id; a window cut to it shows what else was running.
id=$("$WHYSLOW" io top "$rec" --op open -n 1 --json |
    sed -n 's/.*"id": *"\{0,1\}\(op:\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)
run io top "$rec" -w "op:$id" --op open,sync -n 4
run block stats "$rec" -w "op:$id"

echo
echo "apache2's open of its session file took 158 ms while the sync of another process ran across all of it (*)."
