#!/usr/bin/env bash
# Makes the files of fixtures/trace-cmd: ./trace_cmd.sh FOLDER
#
# Records a small job with trace-cmd in both versions of its format, with and without compression, and writes the
# output of `trace-cmd report` for each file. Needs trace-cmd and permission to use tracepoints.
set -euo pipefail
tracing=/sys/kernel/tracing

# Runs in its own mount namespace: the list of kernel symbols would be most of each file, and function tracer
# settings that a kernel refuses to change would prevent recording other events.
if [ "${1:-}" = --inside ]; then
    folder="$2"
    cover="$(mktemp -d)"
    trap 'umount -l "$cover"; rmdir "$cover"' EXIT
    mount -t tmpfs none "$cover"
    grep -E ' [Tt] (_stext|schedule|_etext)$' /proc/kallsyms >"$cover/kallsyms" || true
    mount --bind "$cover/kallsyms" /proc/kallsyms
    echo 0 >"$cover/enabled"
    mount --bind "$cover/enabled" /proc/sys/kernel/ftrace_enabled
    mountpoint -q "$tracing" || mount -t tracefs none "$tracing"
    echo nop >"$cover/nop"
    : >"$cover/empty"
    for file in current_tracer:nop printk_formats:empty set_ftrace_filter:empty set_ftrace_notrace:empty \
        set_ftrace_pid:empty set_ftrace_notrace_pid:empty; do
        [ -e "$tracing/${file%:*}" ] && mount --bind "$cover/${file#*:}" "$tracing/${file%:*}"
    done
    scratch=/tmp/whyslow-trace-cmd
    rm -rf "$scratch"
    mkdir -m 700 "$scratch"
    trap 'rm -rf "$scratch"; umount -l "$cover"; rmdir "$cover"' EXIT
    cd "$scratch"
    cat >job.sh <<'JOB'
dd if=/dev/zero of=data bs=16k count=4 conv=fsync 2>/dev/null
sleep 0.01
cat data | wc -c >/dev/null
JOB
    # run NAME OPTIONS… The environment is minimal, because recordings contain it.
    run() {
        local name="$1"
        shift
        # Changing the size clears the kernel's list of names, which is part of each file.
        echo 64 >"$tracing/saved_cmdlines_size"
        echo 128 >"$tracing/saved_cmdlines_size"
        env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME="$scratch" LC_ALL=C \
            trace-cmd record -q "$@" -o "$name.dat" sh job.sh >"$name.log" 2>&1 || cat "$name.log" >&2
        trace-cmd report -t "$name.dat" 2>/dev/null >"$name.report.txt"
        # For the lost events, keep only the gaps.
        [ "$name" != lost ] || sed -i '/DROPPED/!d' "$name.report.txt"
        mv "$name.dat" "$name.report.txt" "$folder/"
    }
    pages="-b 64"
    run packed $pages --file-version 7 --compression zstd --date -F -c -e sched:sched_switch -e sched:sched_wakeup \
        -e sched:sched_process_fork -e sched:sched_process_exec -e block:block_rq_issue -e block:block_rq_complete \
        -e block:block_bio_queue
    run old $pages --file-version 6 --compression none -F -e raw_syscalls
    other="$tracing/instances/other"
    mkdir -p "$other"
    for file in set_ftrace_filter set_ftrace_notrace set_ftrace_pid set_ftrace_notrace_pid; do
        [ -e "$other/$file" ] && mount --bind "$cover/empty" "$other/$file"
    done
    run instances $pages --file-version 7 --compression none -C mono -F -c -e syscalls:sys_enter_write -e syscalls:sys_exit_write \
        -B other -e syscalls:sys_enter_read -e syscalls:sys_exit_read
    for file in set_ftrace_filter set_ftrace_notrace set_ftrace_pid set_ftrace_notrace_pid; do
        umount "$other/$file" 2>/dev/null || true
    done
    rmdir "$other" 2>/dev/null || true
    # A buffer so small that events are lost.
    echo 'dd if=/dev/zero of=/dev/null bs=1 count=5000 2>/dev/null' >job.sh
    run lost -b 1 --file-version 7 --compression zstd -s 2000000 -F -c -e raw_syscalls:sys_exit
    exit
fi

folder="$(mkdir -p "$1" && cd "$1" && pwd)"
exec unshare -m bash "$(realpath "${BASH_SOURCE[0]}")" --inside "$folder"
