# Installs the dependencies of ./dev: Debian or Ubuntu packages, Rust, a Python environment, npm
# packages. Sourced by ./dev. Every function can be repeated and does nothing if all is installed.

# Prints the packages of COMMAND:PACKAGE pairs whose command is missing.
missing_of() {
    local pair
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || printf '%s\n' "${pair#*:}"
    done
}

# Installs packages by name in one transaction.
apt_install() {
    [ $# -gt 0 ] || return 0
    command -v apt-get >/dev/null 2>&1 || fail "cannot install packages without apt-get; install them: $*"
    local root=()
    [ "$(id -u)" -eq 0 ] || root=(sudo)
    say "installing $*"
    "${root[@]}" apt-get update -qq || true
    DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -qq --no-install-recommends "$@" >&2
}

# Installs the missing packages of COMMAND:PACKAGE pairs.
need() {
    local missing
    mapfile -t missing < <(missing_of "$@")
    apt_install "${missing[@]}"
}

# cc and make link, clang compiles the BPF programs, libbpf loads them.
missing_for_build() {
    missing_of cc:build-essential make:build-essential clang:clang pkg-config:pkg-config
    pkg-config --exists libelf zlib 2>/dev/null || printf '%s\n' libelf-dev zlib1g-dev
}

# Needed by the workloads. Their tests skip if one is missing.
missing_for_workloads() {
    missing_of python3:python3 losetup:mount mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs fio:fio \
        fusermount3:fuse3 pkg-config:pkg-config strace:strace ruby:ruby
    pkg-config --exists fuse3 2>/dev/null || echo libfuse3-dev
}

missing_for_venv() {
    missing_of python3:python3
    [ -x "$VENV/bin/pip" ] || python3 -c 'import ensurepip' 2>/dev/null || echo python3-venv
}

# Tools that the tests compare with, and other test dependencies. babeltrace 1 is the reference in
# cases in which babeltrace2 is known to be wrong.
missing_for_tests() {
    missing_of babeltrace2:babeltrace2 babeltrace:babeltrace iostat:sysstat trace-cmd:trace-cmd \
        blkparse:blktrace nm:binutils ip:iproute2 nft:nftables setpriv:util-linux \
        iotop:iotop musl-gcc:musl-tools lttng-iousagetop:python3-lttnganalyses opensnoop:libbpf-tools \
        java:openjdk-17-jdk-headless javac:openjdk-17-jdk-headless
    missing_browser
    /usr/bin/python3 -c 'import bt2' 2>/dev/null || echo python3-bt2
}

# Chromium's headless shell needs half of the CPU time of Chromium, but only Debian packages it.
missing_browser() {
    if grep -qx 'ID=debian' /etc/os-release 2>/dev/null; then
        missing_of chromium-headless-shell:chromium-headless-shell
    else
        missing_of chromium:chromium
    fi
}

# Tests skip, and report it, if an optional package is missing. A package that this release of Debian
# does not have must not prevent the others from being installed.
apt_install_each() {
    apt_install "$@" && return
    local package
    for package in "$@"; do
        apt_install "$package" || echo "warning: cannot install $package, tests that need it will be skipped" >&2
    done
}

need_rust() {
    trim_target
    claim_target
    local missing
    mapfile -t missing < <(missing_for_build | sort -u)
    apt_install "${missing[@]}"
    [ -x "$HOME/.cargo/bin/cargo" ] && export PATH="$HOME/.cargo/bin:$PATH"
    command -v cargo >/dev/null 2>&1 && return
    need curl:curl
    say "installing Rust"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
        sh -s -- -y --profile minimal --default-toolchain none --no-modify-path >&2
    export PATH="$HOME/.cargo/bin:$PATH"
}

# The test runner, built from source without its self-update. Its target folder is removed
# afterwards.
need_nextest() {
    cargo nextest --version >/dev/null 2>&1 && return
    say "installing cargo-nextest"
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=false \
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_TARGET_DIR="$CACHE/nextest" \
        cargo install -q --locked --no-default-features --features default-no-update \
        --version "$NEXTEST_VERSION" cargo-nextest >&2
    rm -rf "$CACHE/nextest"
}

need_venv() {
    local missing
    mapfile -t missing < <(missing_for_venv)
    apt_install "${missing[@]}"
    [ -x "$VENV/bin/pip" ] || python3 -m venv "$VENV"
}

# Installs Python packages unless all MODULES can be imported: pip_need "MODULE …" PACKAGE…
pip_need() {
    local modules="$1"
    shift
    "$VENV/bin/python" -c "import ${modules// /, }" 2>/dev/null || "$VENV/bin/pip" install -q "$@" >&2
}

# DuckDB with its command line, and pyarrow: independent readers of our files, also for `whyslow sql`.
need_duckdb() {
    need_venv
    pip_need "duckdb pyarrow" duckdb pyarrow
    [ -x "$VENV/bin/duckdb" ] || "$VENV/bin/pip" install -q duckdb-cli >&2
    export PATH="$VENV/bin:$PATH"
}

need_oracles() {
    need babeltrace2:babeltrace2 babeltrace:babeltrace
    need_duckdb
}

# Dependencies of the Python package and its tests. pandas, polars, Spark and py-spy are optional
# for users, so tests skip without them.
need_python_packages() {
    need_duckdb
    pip_need "fsspec hatchling ipykernel nbclient nbformat numpy pytest tzdata xdist" \
        fsspec hatchling ipykernel nbclient nbformat numpy pytest pytest-xdist tzdata
    pip_need "pandas polars" pandas polars || true
    pip_need "perfetto google.protobuf opentelemetry.proto prometheus_client" \
        perfetto protobuf opentelemetry-proto prometheus-client || true
    [ -x "$VENV/bin/py-spy" ] || "$VENV/bin/pip" install -q py-spy >&2 || true
    need_spark || echo "warning: no Spark, skipping tests of fleet queries on Spark" >&2
}

need_spark() {
    (need java:default-jre-headless) || return 1
    pip_need pyspark 'pyspark>=4.0,<5'
}

# Runs a command while Debian starts no server and creates no database cluster on installation; the
# policy file prevents both.
without_services() {
    local root=() policy=/usr/sbin/policy-rc.d made=
    [ "$(id -u)" -eq 0 ] || root=(sudo)
    [ -e "$policy" ] || { made=1; printf '#!/bin/sh\nexit 101\n' | "${root[@]}" install -m 755 /dev/stdin "$policy"; }
    local status=0
    ("$@") || status=$?
    [ -z "$made" ] || "${root[@]}" rm -f "$policy"
    return "$status"
}

# The servers of workloads/web.
need_web() {
    without_services install_web
}

install_web() {
    need apache2:apache2 php:php-cli gunicorn:gunicorn psql:postgresql-client javac:openjdk-17-jdk-headless \
        go:golang-go
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || apt_install postgresql
    ls /usr/lib/apache2/modules/libphp*.so >/dev/null 2>&1 || apt_install libapache2-mod-php
    ls /etc/php/*/apache2/conf.d/*sqlite3.ini >/dev/null 2>&1 || apt_install php-sqlite3
    [ -e /usr/share/java/postgresql.jar ] || apt_install libpostgresql-jdbc-java
    /usr/bin/python3 -c 'import flask, psycopg2' 2>/dev/null || apt_install python3-flask python3-psycopg2
}

# The programs of workloads/real. A scenario whose packages cannot be installed is skipped.
need_real_programs() {
    need python3:python3
    local missing
    mapfile -t missing < <(/usr/bin/python3 workloads/real_fault.py --packages)
    without_services apt_install_each "${missing[@]}" || true
}

need_workloads() {
    local missing
    mapfile -t missing < <(missing_for_workloads)
    apt_install_each "${missing[@]}"
}

# Node 20 or later. If Debian's version is older, npm installs a newer one.
need_node() {
    need node:nodejs npm:npm
    [ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] && return
    local folder="$CACHE/node"
    if ! [ -x "$folder/node_modules/node/bin/node" ]; then
        say "installing a newer node"
        npm install --no-audit --no-fund --prefix "$folder" node@20 >&2
    fi
    export PATH="$folder/node_modules/node/bin:$PATH"
}

# Real traces with reference results, if the developer has them.
find_data() {
    if [ -z "${WHYSLOW_DATA:-}" ] && [ -d ../shared/data ]; then
        WHYSLOW_DATA="$(cd ../shared/data && pwd)"
    fi
    if [ -n "${WHYSLOW_DATA:-}" ]; then
        export WHYSLOW_DATA
        say "using the traces in WHYSLOW_DATA"
    else
        say "WHYSLOW_DATA is not set, tests on third-party traces will be skipped"
    fi
}
