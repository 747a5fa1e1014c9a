#!/bin/sh
# Wrapper around rustc for the crates of this workspace (.cargo/config.toml): compiles their tests
# with less or no optimisation, except those that compute for long. The program and the libraries
# are not affected. Why: docs/decisions/build.md.
#
# Cargo passes the compiler, --crate-name and the name first.
case " $* " in
    *" opt-level=2 "*" --test "*)
        case "$3" in
            whyslow_analysis) ;;
            whyslow_explain | whyslow_export | whyslow_store) set -- "$@" -C opt-level=1 ;;
            *) set -- "$@" -C opt-level=0 ;;
        esac
        ;;
esac
exec "$@"
