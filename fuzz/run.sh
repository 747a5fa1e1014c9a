#!/usr/bin/env bash
# Fuzzes every byte parser for so many CPU seconds each (default 60): ./dev fuzz [SECONDS] [TARGET…]
# Stops at the first input that crashes, hangs for 10 s or takes more than 2 GiB, and prints it.
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
for target in "${targets[@]}"; do
    echo "== $target: $seconds s" >&2
    mkdir -p "corpus/$target" work/"$target"
    # New finds go to work/; the committed corpus stays small.
    cargo fuzz run --sanitizer none -O --target-dir "${FUZZ_TARGET_DIR:-$HOME/.cache/whyslow-dev/fuzz}" \
        "$target" "work/$target" "corpus/$target" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 2>&1 |
        grep -E 'panicked|ERROR|SUMMARY|stat::|artifact|Done' || true
    if compgen -G "artifacts/$target/*" >/dev/null; then
        echo "error: $target failed on: $(ls "artifacts/$target"/*)" >&2
        exit 1
    fi
done
