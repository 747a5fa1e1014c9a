# ./dev test: runs every suite, in parallel if some wait while others compute.
# Sourced by ./dev. Each suite writes $LOGS/NAME.log, NAME.status, NAME.seconds and NAME.cpu.

LOGS="$CACHE/logs"

# Runs a suite in the background: start NAME COMMAND…
start() {
    local name="$1"
    shift
    rm -f "$LOGS/$name".*
    say "$name: started"
    (
        local began=$SECONDS status=0
        "$@" >"$LOGS/$name.log" 2>&1 || status=$?
        echo "$status" >"$LOGS/$name.status"
        echo "$((SECONDS - began))" >"$LOGS/$name.seconds"
        cpu_seconds "$LOGS/$name.cpu"
        printf '\n== %s: finished after %s s, %s CPU s, exit status %s\n' \
            "$name" "$((SECONDS - began))" "$(cat "$LOGS/$name.cpu")" "$status" >&2
    ) &
    STARTED["$name"]=$!
}

# CPU time of the children of this shell that ended and were waited for, in seconds: cpu_seconds FILE.
# A pipe runs a new shell, which has no children.
cpu_seconds() {
    times >"$1"
    awk 'NR == 2 {
        for (i = 1; i <= 2; i++) { split($i, part, /[ms]/); sum += part[1] * 60 + part[2] }
        printf "%.0f\n", sum
    }' "$1" >"$1.sum"
    mv "$1.sum" "$1"
}

# Waits for suites, and continues if one failed: the report at the end lists the failures.
await() {
    local name
    for name in "$@"; do
        wait "${STARTED[$name]}" || true
    done
}

failed() {
    [ "$(cat "$LOGS/$1.status" 2>/dev/null || echo 1)" -ne 0 ]
}

cmd_test() {
    declare -gA STARTED=()
    mkdir -p "$LOGS"
    rm -f "$LOGS"/*
    # Tests share data through this folder (whyslow-testkit).
    WHYSLOW_TEST_FOLDER="$(mktemp -d -t whyslow-tests.XXXXXX)"
    export WHYSLOW_TEST_FOLDER
    trap end_suites EXIT
    find_data
    # Before starting suites: apt has a single lock.
    need_rust
    need_node
    start packages install_test_packages
    start program build_program
    await program
    failed program && { tail -n 50 "$LOGS/program.log" >&2; fail "cannot build the program"; }
    start build build_tests
    await packages
    export PATH="$VENV/bin:$PATH"
    start python-packages install_python_packages
    # Record faults while only the compiler runs, at the lowest priority: it is preempted at once, so
    # the machine is almost idle for the recorded programs.
    start faults-record record_faults
    await build python-packages faults-record
    failed build && { tail -n 80 "$LOGS/build.log" >&2; fail "cannot build the tests"; }
    start rust rust_tests gate
    start python python_tests
    start exports export_tests
    start web web_tests
    start faults explain_faults
    await rust python exports web faults
    # Without the other suites, because a recorder records all other activity of the machine.
    start live rust_tests live
    start web-live web_live_tests
    await live web-live
    report
}

# Ends the suites on exit: after Ctrl-C, they would disturb the next run.
end_suites() {
    local pid
    for pid in $(jobs -p); do
        pkill -TERM -P "$pid" 2>/dev/null || true
        kill "$pid" 2>/dev/null || true
    done
    rm -rf "$WHYSLOW_TEST_FOLDER"
}

# Builds the program that all suites test, like ./dev demo.
build_program() {
    build_ui
    cargo_build_program
}

build_tests() {
    renice -n 19 "$BASHPID" >/dev/null
    need_nextest
    cargo nextest run --workspace --features "$FEATURES" --locked --no-run
}

# Installs Debian packages in one transaction, then the Python packages that recording faults needs.
install_test_packages() {
    local missing
    mapfile -t missing < <({ missing_for_tests; missing_for_workloads; missing_for_venv; } | sort -u)
    apt_install_each "${missing[@]}"
    # Older releases of Debian have Chromium only.
    command -v chromium-headless-shell >/dev/null 2>&1 || (need chromium:chromium) || true
    need_duckdb
}

# Beside the recorded faults, so it has the lowest priority, too.
install_python_packages() {
    renice -n 19 "$BASHPID" >/dev/null
    need_python_packages
}

# Runs the tests of a profile of .config/nextest.toml.
rust_tests() {
    local profile="$1" status=0
    rm -f "target/nextest/$profile/junit.xml"
    cargo nextest run --workspace --features "$FEATURES" --locked --profile "$profile" || status=$?
    # cargo-nextest writes its reports to the workspace, independent of the target directory.
    python3 scripts/junit.py "target/nextest/$profile/junit.xml" || status=1
    return "$status"
}

# Tests the same program as the other suites, and the scores of evaluations. One worker per file, so
# that Spark starts once.
python_tests() {
    local status=0
    WHYSLOW_BINARY="$PROGRAM" "$VENV/bin/python" -m pytest -q -rs -n 3 --dist loadfile python || status=1
    # Each folder has a conftest.py, and a run has one module of that name.
    "$VENV/bin/python" -m pytest -q -rs -p no:cacheprovider benches/eval/tests || status=1
    return "$status"
}

# Reads exported files with the tools that they are meant for.
export_tests() {
    WHYSLOW_BINARY="$PROGRAM" "$VENV/bin/python" -m pytest -q -rs \
        -p no:cacheprovider crates/whyslow-export/tests/oracles
}

# Tests the pages' logic in node, and the pages in a browser with their own server.
web_tests() {
    local status=0
    need_node
    (cd web && npx --no-install tsc --noEmit -p . && npm test --silent) || status=$?
    WHYSLOW="$PROGRAM" node --test --test-concurrency=3 $(ls web/tests/e2e/*.test.mjs | grep -v "$WEB_LIVE") || status=$?
    return "$status"
}

# Tests the pages of a live recording.
WEB_LIVE=web/tests/e2e/workflows.test.mjs
web_live_tests() {
    need_node
    mkdir -p "$CARGO_TARGET_DIR/tmp"
    WHYSLOW="$PROGRAM" WHYSLOW_FLOOD_LOCKS="$CARGO_TARGET_DIR/tmp" node --test "$WEB_LIVE"
}

# Prints why faults cannot be injected here, if so.
faults_need() {
    [ "$(id -u)" -eq 0 ] || { echo "recording needs root"; return; }
    [ -e /sys/kernel/btf/vmlinux ] || { echo "this kernel has no BTF"; return; }
    command -v nft >/dev/null 2>&1 && command -v ip >/dev/null 2>&1 || echo "ip and nft are missing"
}

# If live tests are required, the faults are, too, as in the Rust tests.
skip_faults() {
    case ",${WHYSLOW_REQUIRE:-}," in
        *,live,* | *,all,*) echo "required by WHYSLOW_REQUIRE but skipped: faults: $1"; return 1 ;;
    esac
    echo "skipped: faults: $1"
}

# Folder of a few faults of `./dev eval explain`.
FAULTS="$CACHE/few-faults"
record_faults() {
    local why
    why=$(faults_need)
    [ -z "$why" ] || { skip_faults "$why"; return; }
    rm -rf "$FAULTS"
    "$VENV/bin/python" benches/eval/explain.py "$PROGRAM" --subset --record-only --folder "$FAULTS"
}

explain_faults() {
    local why
    why=$(faults_need)
    [ -z "$why" ] || { skip_faults "$why"; return; }
    "$VENV/bin/python" benches/eval/explain.py "$PROGRAM" --subset --check --folder "$FAULTS" || return 1
    rm -rf "$FAULTS"
}

# Prints PASSED FAILED SKIPPED of a suite, from the last lines of its log.
counts_of() {
    local log="$LOGS/$1.log"
    case "$1" in
        rust | live) awk '/^tests: / {print $2, $4, $6}' "$log" ;;
        web | web-live) awk '/^# (pass|fail|skipped) / {n[$2] += $3} END {print n["pass"] + 0, n["fail"] + 0, n["skipped"] + 0}' "$log" ;;
        python | exports)
            awk '/(passed|failed|skipped|error).* in [0-9.]+s/ {
                    for (i = 2; i <= NF; i++) {
                        if ($i ~ /^passed/) p += $(i - 1)
                        if ($i ~ /^(failed|error)/) f += $(i - 1)
                        if ($i ~ /^skipped/) s += $(i - 1)
                    }
                } END {print p + 0, f + 0, s + 0}' "$log"
            ;;
    esac
}

# Prints failures, skips with their reasons, and repeats; then one line per suite, and the sum.
report() {
    local name passed failed skipped sum_passed=0 sum_failed=0 sum_skipped=0 status=0
    for name in rust live python exports web web-live faults-record faults; do
        if failed "$name"; then
            status=1
            printf '\n== %s failed, the end of %s:\n' "$name" "$LOGS/$name.log"
            case "$name" in
                rust | live) grep -A 100000 -m1 '^FAILED' "$LOGS/$name.log" || tail -n 100 "$LOGS/$name.log" ;;
                web | web-live) grep -E -A25 '^\s*not ok' "$LOGS/$name.log" || tail -n 100 "$LOGS/$name.log" ;;
                *) tail -n 100 "$LOGS/$name.log" ;;
            esac | head -n 300
        fi
    done
    say "skipped tests with reasons, and repeated tests"
    grep -hE '^ *[0-9]+ skipped: |^skipped: |^SKIPPED |^flaky: |# SKIP' "$LOGS"/{rust,live,python,exports,web,web-live,faults}.log || true
    echo
    for name in rust live python exports web web-live; do
        read -r passed failed skipped < <(counts_of "$name") || true
        printf '%s: %s passed, %s failed, %s skipped, %s s, %s CPU s\n' "$name" "$passed" "$failed" "$skipped" \
            "$(cat "$LOGS/$name.seconds")" "$(cat "$LOGS/$name.cpu")"
        sum_passed=$((sum_passed + passed)) sum_failed=$((sum_failed + failed)) sum_skipped=$((sum_skipped + skipped))
        [ "$passed" -gt 0 ] || { echo "error: $name ran no tests"; status=1; }
    done
    tail -n 3 "$LOGS/faults.log"
    printf '%s passed, %s failed, %s skipped\n' "$sum_passed" "$sum_failed" "$sum_skipped"
    return "$status"
}
