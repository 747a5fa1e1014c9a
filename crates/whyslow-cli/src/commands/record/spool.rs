//! Turns the spool of a finished recording into the recording.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::progress::ProgressReporter;
use whyslow_base::talk;
use whyslow_ingest::{ImportError, ImportOptions};
use whyslow_model::text::shown;
use whyslow_sources::recording;
use whyslow_store::Existing;

use super::quoted;
use crate::cli::RecordArgs;

/// Imports the spool, with other files recorded meanwhile. `cancel` stops it; the spool remains.
pub(super) fn import(
    (spool, output): (&Path, &Path),
    profiles: &[PathBuf],
    args: &RecordArgs,
    cancel: Arc<AtomicBool>,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let options = ImportOptions {
        existing: if args.force {
            Existing::Replace
        } else {
            Existing::Refuse
        },
        cancel,
        ..ImportOptions::new(output)
    };
    let mut progress = ProgressReporter::new(talk);
    let (with, missing) = other_sources(args);
    for path in missing {
        talk::line(&format!(
            "note: `{}` (--with) does not exist and was not imported",
            shown(&path.display().to_string(), false)
        ));
    }
    let sources: Vec<PathBuf> = std::iter::once(spool.to_owned())
        .chain(with)
        .chain(profiles.iter().cloned())
        .collect();
    let result = whyslow_ingest::import(&sources, &options, &mut |at| progress.show(at));
    progress.end();
    let report = result.map_err(|error| {
        let command = import_command(&sources, output);
        if matches!(error, ImportError::Cancelled) {
            // Also with --quiet: otherwise nothing would show where the records are.
            talk::line(&format!(
                "import stopped; the spool was kept, import it: {command}"
            ));
        }
        Failure::from(error).hint(format!("import the spool, which was kept: {command}"))
    })?;
    recording::remember(output);
    if !talk.quiet {
        crate::commands::import::print_anomalies(&report);
    }
    if !args.keep_spool
        && let Err(error) = fs::remove_dir_all(spool)
    {
        talk::line(&format!(
            "note: cannot delete the spool `{}`: {error}",
            spool.display()
        ));
    }
    Ok(())
}

/// The command that imports what was recorded.
fn import_command(sources: &[PathBuf], output: &Path) -> String {
    let sources: Vec<String> = sources.iter().map(|path| quoted(path)).collect();
    format!("whyslow import {} -o {}", sources.join(" "), quoted(output))
}

/// Files of `--with`: those that exist, and those that do not.
fn other_sources(args: &RecordArgs) -> (Vec<PathBuf>, Vec<PathBuf>) {
    args.with.iter().cloned().partition(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn an_import_that_is_stopped_keeps_the_spool() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let (spool, output) = (
            folder.path().join("web.wsl.spool"),
            folder.path().join("web.wsl"),
        );
        let text = "whyslow-text 1\n1.0 [0] (tid=1 pid=1 comm=a) syscall_enter name=sync\n";
        fs::write(&spool, text).expect("a disk");
        let words: Vec<OsString> = ["whyslow", "record"].map(OsString::from).into();
        let cli = Cli::read(&words).expect("a valid command line");
        let Command::Record(args) = cli.command else {
            panic!("another command");
        };
        let run = |is_cancelled| {
            let cancel = Arc::new(AtomicBool::new(is_cancelled));
            import((&spool, &output), &[], &args, cancel, &TalkArgs::silent())
        };
        assert!(run(true).is_err_and(|failure| failure.is_interrupted()));
        assert!(spool.exists() && !output.exists());
        assert_eq!(
            import_command(
                &[spool.clone(), "my profile.jfr".into()],
                Path::new("web.wsl")
            ),
            format!(
                "whyslow import {} 'my profile.jfr' -o web.wsl",
                spool.display()
            )
        );
    }
}
