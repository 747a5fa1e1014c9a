#!/usr/bin/env bash
# Records the output of live tools while program.py runs: tools.sh OUTPUT-FOLDER
#
# Needs root, Debian's libbpf-tools, sysstat, procps and strace. All tools end after a minute.
set -euo pipefail
# The tools need tracefs, which is mounted in a private mount namespace.
if [[ ${OWN_MOUNTS:-} != 1 ]]; then
    OWN_MOUNTS=1 exec unshare --mount "$0" "$@"
fi
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath "$1")
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

watch() { # NAME COMMAND…
    local name=$1
    shift
    timeout 50 stdbuf -oL "$@" >"$out/$name" 2>/dev/null &
    pids+=($!)
}

cp "$here/program.py" "$work"
cd "$work"
watch opensnoop.txt /usr/sbin/opensnoop -T -n python3
watch execsnoop.txt /usr/sbin/execsnoop -T
watch exitsnoop.txt /usr/sbin/exitsnoop -t
watch gethostlatency.txt /usr/sbin/gethostlatency
watch tcplife.txt /usr/sbin/tcplife -T
watch runqslower.txt /usr/sbin/runqslower 1000
watch sigsnoop.txt /usr/sbin/sigsnoop
watch iostat.txt iostat -t -x 1 5
watch iostat-iso.txt env S_TIME_FORMAT=ISO iostat -t -x -d 1 5
watch iostat.json iostat -t -x -o JSON 1 5
watch mpstat.txt mpstat -P ALL 1 4
watch pidstat.txt pidstat -durw -t -C python3 1 4
watch pidstat-h.txt pidstat -durw -h -C python3 1 4
watch vmstat.txt vmstat -t 1 5
watch top.txt top -b -d 1 -n 4
sar -o "$work/sa" 1 4 >/dev/null 2>&1 &
pids+=($!)
sleep 3
# strace runs on the same program as opensnoop, so both outputs list the same calls.
timeout 40 strace -f -ttt -T -y -e trace=openat,open,execve,newfstatat,stat,connect,exit_group -o "$work/strace" \
    /usr/bin/python3 program.py "$work" >"$out/truth.json"
sleep 3
kill "${pids[@]}" 2>/dev/null || true
wait || true
pids=()
sar -f "$work/sa" -u -d -q >"$out/sar.txt"
sadf -j "$work/sa" -- -u -d -q >"$out/sadf.json"
sadf -d "$work/sa" -- -u -d -q >"$out/sadf.csv"
# Remove lines of other programs.
for file in opensnoop; do
    { head -1 "$out/$file.txt"; grep -F "$work/" "$out/$file.txt"; } >"$work/kept" && cat "$work/kept" >"$out/$file.txt"
done
pid=$(sed -n 's/^"pid": \([0-9]*\),$/\1/p' "$out/truth.json")
for file in execsnoop exitsnoop runqslower sigsnoop tcplife gethostlatency; do
    grep -E "^(TIME|Tracing)|[ ]$pid [ ]" "$out/$file.txt" >"$work/kept" || true
    cat "$work/kept" >"$out/$file.txt"
done
# strace causes a signal for each stop.
sed -i 31,\$d "$out/sigsnoop.txt"
sed -i '/^ *[0-9]* root/{/python3\|top$/!d}' "$out/top.txt"
grep -E "(open|openat|stat|newfstatat)\\(.*$work/|execve\\(\"/bin/sleep" "$work/strace" >"$out/strace.txt"
