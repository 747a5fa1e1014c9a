#!/usr/bin/env bash
# One run of the shop under one profiler, in its own namespaces: inside.sh KIND EVERY FOLDER
#
# profiles.sh calls it in the programs' folder. It is PID 1 of its namespace, so all its children end with it.
set -euo pipefail
kind="$1" every="$2" folder="$3"
seconds="${SECONDS_EACH:-12}" rate=25 port=8080

ip link set lo up
# The default timeout of the C library is five seconds.
printf 'nameserver 127.0.0.1\n' >"$folder/resolv.conf"
mount --bind "$folder/resolv.conf" /etc/resolv.conf
/usr/bin/python3 resolver.py "$every" "$folder/lost.txt" &
log="$folder/$kind.truth.jsonl"

python_shop() { /usr/bin/python3 web.py "$port" "$log" & shop=$!; }
ruby_shop() { ruby web.rb "$port" "$log" "$@" & shop=$!; }
load() { sleep 1; /usr/bin/python3 load.py "$port" "$seconds" & load=$!; }

case "$kind" in
speedscope | chrometrace | raw)
    python_shop; load
    py-spy record -p "$shop" --idle --threads -r "$rate" -d "$((seconds - 1))" -f "$kind" -o "$folder/pyspy.$kind" >&2
    ;;
dumps)
    python_shop; load
    mkdir -p "$folder/dumps"
    for _ in $(seq "$((seconds - 2))"); do
        py-spy dump -j -p "$shop" >"$folder/dumps/pyspy-$(date +%s%3N).json"
        sleep 0.8
    done
    ;;
rbspy)
    ruby_shop; load
    rbspy record -p "$shop" -r "$rate" -d "$((seconds - 1))" --format speedscope -f "$folder/rbspy.speedscope.json" \
        --raw-file "$folder/rbspy.raw.gz" --silent >&2
    ;;
stackprof)
    PROFILE="stackprof:$folder/stackprof.dump" ruby_shop "$((seconds + 1))"; load
    wait "$shop"
    stackprof --json "$folder/stackprof.dump" >"$folder/stackprof.json"
    ;;
ruby-prof)
    PROFILE="ruby-prof:$folder" ruby_shop "$((seconds + 1))"; load
    wait "$shop"
    ;;
esac
kill "$load" 2>/dev/null || true
