#!/usr/bin/env bash
# Makes the profiles of fixtures/samplers: ./profiles.sh FOLDER
#
# Runs shares.py under py-spy in each output format, and adds the measurements of the last run.
# Needs py-spy (pip install py-spy) on the path.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(mkdir -p "$1" && cd "$1" && pwd)"
scratch=/tmp/whyslow-python
rm -rf "$scratch"
mkdir -m 700 "$scratch"
trap 'rm -rf "$scratch"' EXIT
cp "$here/shares.py" "$scratch/"
cd "$scratch"
for form in speedscope chrometrace raw; do
    env -i PATH=/usr/bin:/bin "$(command -v py-spy)" record --idle --threads -r 50 -f "$form" -o "$form.out" -- \
        /usr/bin/python3 shares.py . 3 >&2
done
mv speedscope.out "$folder/pyspy.speedscope.json"
mv chrometrace.out "$folder/pyspy.chrome.json"
mv raw.out "$folder/pyspy.collapsed.txt"
mv truth.json "$folder/"
