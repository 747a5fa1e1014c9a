#!/usr/bin/env bash
# Makes the series of thread dumps of fixtures/jstack: ./dumps.sh FOLDER
#
# Runs LockProgram and dumps its threads six times, each to a file with the time in its name. Adds the program's
# own log of waits and holders. Needs a JDK (openjdk-17-jdk-headless).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(mkdir -p "$1" && cd "$1" && pwd)"
scratch=/tmp/whyslow-dumps
rm -rf "$scratch"
mkdir -m 700 "$scratch"
trap 'rm -rf "$scratch"' EXIT
javac -d "$scratch" "$here/LockProgram.java"
cd "$scratch"
env -i PATH=/usr/bin:/bin LC_ALL=C java -Xmx64m -XX:+UseSerialGC -cp . LockProgram . 8 7 &
pid=$!
sleep 1
for _ in $(seq 6); do
    now="$(date +%s%3N)"
    # Without the header line.
    jcmd "$pid" Thread.print -l | sed 1d >"dump-$now.txt"
    sleep 0.1
done
wait "$pid"
# Only entries of the time of the dumps.
first="$(ls dump-*.txt | sed 's/[^0-9]//g' | head -n 1)"
last="$(ls dump-*.txt | sed 's/[^0-9]//g' | tail -n 1)"
awk -F, -v first="$first" -v last="$last" \
    'NR == 1 || ($5 / 1e6 > first && $3 / 1e6 < last + 1000)' truth.csv >"$folder/truth.csv"
mv dump-*.txt "$folder/"
