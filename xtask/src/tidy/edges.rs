//! Allowed dependencies between crates.

use std::path::Path;

/// Crate, and the workspace crates that it may depend on.
const ALLOWED: [(&str, &[&str]); 20] = [
    ("whyslow-model", &[]),
    ("whyslow-store", &["whyslow-model"]),
    ("whyslow-ingest", &["whyslow-model", "whyslow-store"]),
    ("whyslow-analysis", &["whyslow-model", "whyslow-store"]),
    (
        "whyslow-explain",
        &["whyslow-model", "whyslow-store", "whyslow-analysis"],
    ),
    (
        "whyslow-tiles",
        &["whyslow-model", "whyslow-store", "whyslow-analysis"],
    ),
    (
        "whyslow-export",
        &[
            "whyslow-model",
            "whyslow-store",
            "whyslow-analysis",
            "whyslow-explain",
        ],
    ),
    (
        "whyslow-fleet",
        &[
            "whyslow-model",
            "whyslow-store",
            "whyslow-analysis",
            "whyslow-explain",
        ],
    ),
    ("whyslow-record", &["whyslow-model"]),
    ("whyslow-load", &["whyslow-model"]),
    (
        "whyslow-base",
        &[
            "whyslow-model",
            "whyslow-store",
            "whyslow-ingest",
            "whyslow-analysis",
            "whyslow-export",
            "whyslow-tiles",
            "whyslow-record",
        ],
    ),
    (
        "whyslow-render",
        &[
            "whyslow-base",
            "whyslow-model",
            "whyslow-analysis",
            "whyslow-explain",
        ],
    ),
    (
        "whyslow-sources",
        &[
            "whyslow-base",
            "whyslow-render",
            "whyslow-model",
            "whyslow-store",
            "whyslow-ingest",
            "whyslow-analysis",
            "whyslow-export",
            "whyslow-record",
        ],
    ),
    (
        "whyslow-emulations",
        &[
            "whyslow-base",
            "whyslow-render",
            "whyslow-sources",
            "whyslow-model",
            "whyslow-store",
            "whyslow-analysis",
            "whyslow-record",
        ],
    ),
    (
        "whyslow-serve",
        &[
            "whyslow-base",
            "whyslow-render",
            "whyslow-sources",
            "whyslow-model",
            "whyslow-store",
            "whyslow-ingest",
            "whyslow-analysis",
            "whyslow-explain",
            "whyslow-tiles",
            "whyslow-export",
        ],
    ),
    (
        "whyslow-cli",
        &[
            "whyslow-base",
            "whyslow-render",
            "whyslow-sources",
            "whyslow-emulations",
            "whyslow-serve",
            "whyslow-model",
            "whyslow-store",
            "whyslow-ingest",
            "whyslow-analysis",
            "whyslow-explain",
            "whyslow-export",
            "whyslow-fleet",
            "whyslow-record",
            "whyslow-load",
        ],
    ),
    ("whyslow", &["whyslow-cli"]),
    // Used by tests only.
    ("whyslow-testkit", &[]),
    (
        "whyslow-test-recordings",
        &["whyslow-store", "whyslow-ingest", "whyslow-testkit"],
    ),
    ("fuzz", &["whyslow-ingest", "whyslow-model"]),
];

pub(super) fn check(root: &Path, complaints: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(root.join("crates")) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(manifest) = std::fs::read_to_string(entry.path().join("Cargo.toml")) else {
            continue;
        };
        let Some((_, allowed)) = ALLOWED.iter().find(|(krate, _)| *krate == name) else {
            complaints.push(format!(
                "crates/{name}: add the new crate to xtask's list of edges"
            ));
            continue;
        };
        for dependency in dependencies(&manifest) {
            if dependency.starts_with("whyslow") && !allowed.contains(&dependency) {
                complaints.push(format!("crates/{name}: must not depend on {dependency}"));
            }
        }
    }
}

/// Names in `[dependencies]`; dev-dependencies are not restricted.
pub(super) fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            inside = line.trim() == "[dependencies]";
            return None;
        }
        let name = line.split(['.', ' ', '=']).next()?;
        (inside && !name.is_empty()).then_some(name)
    })
}
