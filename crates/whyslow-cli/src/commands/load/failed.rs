//! Errors of `load`.

use std::io;

use whyslow_base::failure::Failure;
use whyslow_load::LoadError;

/// A usage error if a different command line would succeed.
pub(super) fn failed(error: LoadError) -> Failure {
    let is_usage = matches!(
        error,
        LoadError::Url { .. }
            | LoadError::Header { .. }
            | LoadError::Method { .. }
            | LoadError::NoTarget
            | LoadError::NoEnd { .. }
            | LoadError::Schedule { .. }
    );
    let failure = if is_usage {
        Failure::usage(error.to_string())
    } else {
        Failure::new(error.to_string()).caused_by_chain(&error)
    };
    match error {
        LoadError::Spool { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
            failure.hint("choose another name with -o")
        }
        _ => failure,
    }
}
