//! What a command reports in a build without the feature that it needs.

use whyslow_base::failure::Failure;

/// `fleet`, `record --push` and `serve --lake`.
#[cfg(not(feature = "fleet"))]
pub(super) fn fleet(what: &str) -> Failure {
    Failure::usage(format!("this build has no `{what}`")).hint(
        "build it with the feature `fleet`: cargo build --release -p whyslow --features fleet",
    )
}

/// `load URL`; comparing and checking recorded requests needs nothing of it.
#[cfg(not(feature = "load"))]
pub(super) fn load() -> Failure {
    Failure::usage("this build has no `load`, except `load diff` and `load check`")
        .hint("build it with the feature `load`: cargo build --release -p whyslow --features load")
}
