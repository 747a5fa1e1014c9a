//! Errors of lakes.

use std::error::Error;

use whyslow_base::failure::Failure;
use whyslow_fleet::lake::LakeError;

/// With the hint of the lake.
pub(super) fn failed(error: LakeError) -> Failure {
    let hint = error.hint();
    let failure = match error {
        LakeError::Interrupted => Failure::interrupted(),
        LakeError::Recording(error) => error.into(),
        LakeError::Url { .. } | LakeError::Name { .. } => Failure::usage(error.to_string()),
        other => {
            let failure = Failure::new(other.to_string());
            // Each error of an object store repeats its sources.
            match innermost(&other) {
                Some(cause) => failure.caused_by(cause),
                None => failure,
            }
        }
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn innermost<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    let mut found = error.source()?;
    while let Some(next) = found.source() {
        found = next;
    }
    Some(found)
}
