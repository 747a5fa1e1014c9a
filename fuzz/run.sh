#!/usr/bin/env bash
# Fuzzes each byte parser for SECONDS of CPU time (default 60): ./dev fuzz [SECONDS] [TARGET…]
# Stops at the first input that crashes, hangs for 10 s (FUZZ_TIMEOUT, for busy machines) or takes
# more than 2 GiB, and prints it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

seconds="${1:-60}"
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | tail -n +2)

if ! command -v cargo-fuzz >/dev/null 2>&1; then
    cargo install -q --locked cargo-fuzz
fi
# libFuzzer's instrumentation needs unstable flags; the pinned stable compiler has them too.
export RUSTC_BOOTSTRAP=1
unset CARGO_TARGET_DIR
target_dir="${FUZZ_TARGET_DIR:-$HOME/.cache/whyslow-dev/fuzz}"
# Unpack archives to memory: the disk would be the slowest part.
[ -d /dev/shm ] && export TMPDIR=/dev/shm
log="$(mktemp)"
trap 'rm -f "$log" "$log.times"' EXIT

# Sets `cpu` to the CPU seconds (user and system) of this shell's finished children.
# `times` reports on the shell that runs it, so it must not run in a substitution.
children_cpu() {
    times >"$log.times"
    cpu="$(awk 'NR == 2 {
        for (i = 1; i <= 2; i++) { split($i, part, "[ms]"); total += part[1] * 60 + part[2] }
        printf "%d", total
    }' "$log.times")"
}

for target in "${targets[@]}"; do
    mkdir -p "corpus/$target" "work/$target"
    cargo fuzz build --sanitizer none -O --target-dir "$target_dir" "$target" >"$log" 2>&1 ||
        { cat "$log" >&2; exit 1; }
    binary="$(find "$target_dir" -path '*/release/*' -maxdepth 3 -name "$target" -type f | head -n 1)"
    options=("-timeout=${FUZZ_TIMEOUT:-10}" -rss_limit_mb=2048 -print_final_stats=1 "-artifact_prefix=artifacts/$target/")
    [ -f "dictionaries/$target.dict" ] && options+=("-dict=dictionaries/$target.dict")
    mkdir -p "artifacts/$target"
    children_cpu
    begin="$cpu" used=0 inputs=0
    # Run in parts, because libFuzzer limits wall time: time without the CPU must not count.
    while [ "$used" -lt "$seconds" ]; do
        part=$((seconds - used < 120 ? seconds - used : 120))
        status=0
        # New inputs go to work/, so that the committed corpus stays small.
        "$binary" "work/$target" "corpus/$target" "${options[@]}" "-max_total_time=$part" >"$log" 2>&1 || status=$?
        inputs=$((inputs + $(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1 | grep . || echo 0)))
        if [ "$status" -ne 0 ]; then
            grep -E 'panicked|ERROR|SUMMARY|artifact' "$log" >&2 || tail -n 20 "$log" >&2
            echo "error: $target failed on: $(ls "artifacts/$target"/* 2>/dev/null)" >&2
            exit 1
        fi
        children_cpu
        used=$((cpu - begin))
        printf '%s: %s of %s CPU s, %s inputs\n' "$target" "$used" "$seconds" "$inputs" >&2
    done
    printf '%s: %s CPU s, %s inputs, %s kept, no failures\n' "$target" "$used" "$inputs" "$(ls "work/$target" | wc -l)"
done
