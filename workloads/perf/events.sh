#!/usr/bin/env bash
# Makes the files of fixtures/perf: ./events.sh FOLDER
#
# Records a small job with several event sets of `perf record`, and writes for each the file and the output of
# `perf script` for it. Needs perf (linux-perf) and permission to use tracepoints.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(mkdir -p "$1" && cd "$1" && pwd)"

# A fixed path, because recordings contain it.
scratch=/tmp/whyslow-perf
rm -rf "$scratch"
mkdir -m 700 "$scratch"
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cat >job.sh <<'JOB'
dd if=/dev/zero of=data bs=256k count=8 conv=fsync 2>/dev/null
cat data | sha256sum >/dev/null
sleep 0.03
JOB

# run NAME OPTIONS… The environment is minimal, because recordings contain it.
run() {
    local name="$1"
    shift
    env -i PATH=/usr/bin:/bin HOME="$scratch" LC_ALL=C perf record -q "$@" -o "$name.data" -- sh job.sh 2>&1 |
        grep -v '^\[' >&2 || true
    printed "$name"
}

# Time in ns, process, thread, event, number of frames, innermost function, and text of the event.
printed() {
    local name="$1"
    perf script -i "$name.data" --ns -F pid,tid,time,event,ip,sym,trace 2>/dev/null |
        python3 "$here/printed.py" >"$name.printed.csv"
    mv "$name.data" "$name.printed.csv" "$folder/"
}

run clock -k CLOCK_MONOTONIC -e cpu-clock -F 999 -g
run named -e 'syscalls:sys_enter_openat,syscalls:sys_exit_openat,syscalls:sys_enter_write,syscalls:sys_exit_write'
run switches -k CLOCK_MONOTONIC -e 'sched:sched_switch,sched:sched_wakeup,sched:sched_process_fork' --call-graph fp,4
run blocks -e 'block:block_rq_issue,block:block_rq_complete,block:block_bio_queue'
run packed -k CLOCK_MONOTONIC -z -e 'raw_syscalls:sys_enter,raw_syscalls:sys_exit'
env -i PATH=/usr/bin:/bin HOME="$scratch" LC_ALL=C perf record -q -k CLOCK_MONOTONIC \
    -e 'sched:sched_switch,raw_syscalls:sys_exit' -o - -- sh job.sh >piped.data 2>/dev/null
printed piped

# The same as text, and the tracefs output for the same job.
for name in blocks named switches; do
    perf script -i "$folder/$name.data" --ns 2>/dev/null >"$folder/$name.script.txt"
done
tracing=/sys/kernel/tracing/instances/whyslow-events
mkdir "$tracing"
trap 'echo 0 >"$tracing/tracing_on"; rmdir "$tracing"; rm -rf "$scratch"' EXIT
echo 1 >"$tracing/options/event-fork"
echo "$$" >"$tracing/set_event_pid"
for event in sched/sched_switch sched/sched_wakeup raw_syscalls block/block_rq_issue block/block_rq_complete \
    block/block_bio_queue irq/irq_handler_entry irq/irq_handler_exit; do
    echo 1 >"$tracing/events/$event/enable"
done
sh job.sh
echo 0 >"$tracing/tracing_on"
head -n 900 "$tracing/trace" >"$folder/tracefs.txt"
