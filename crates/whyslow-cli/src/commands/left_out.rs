//! Errors of commands that need a feature which this build lacks.

use whyslow_base::failure::Failure;

/// `fleet`, `record --push` and `serve --lake`.
#[cfg(not(feature = "fleet"))]
pub(super) fn fleet(what: &str) -> Failure {
    Failure::usage(format!(
        "`{what}` unavailable: this build lacks the feature `fleet`"
    ))
    .hint("cargo build --release -p whyslow --features fleet")
}

/// `load URL`; `load diff` and `load check` do not need the feature.
#[cfg(not(feature = "load"))]
pub(super) fn load() -> Failure {
    Failure::usage("`load URL` unavailable: this build lacks the feature `load`")
        .hint("cargo build --release -p whyslow --features load")
}
