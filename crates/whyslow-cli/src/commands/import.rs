//! `import`: imports traces of other tools into a recording.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::progress::ProgressReporter;
use whyslow_base::{interrupt, talk};
use whyslow_ingest::formats::FORMATS;
use whyslow_ingest::{AnomalyReport, ImportOptions, ImportReport, LeaveOut};
use whyslow_model::Ns;
use whyslow_model::stat::Severity;
use whyslow_model::text::shown;
use whyslow_render::to_pager;
use whyslow_sources::live::RecorderChoice;
use whyslow_sources::recording;
use whyslow_store::{Existing, packed};

use crate::cli::ImportArgs;

/// Archive suffixes that are removed from the name of the recording.
const ARCHIVES: &[&str] = &[
    ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst", ".tzst", ".zip",
];

pub(super) fn run(args: &ImportArgs, talk: &TalkArgs) -> Result<(), Failure> {
    if args.formats {
        return print_formats();
    }
    let mut words = args.sources.iter().filter_map(|source| source.to_str());
    if words.any(|word| RecorderChoice::of(word).is_some()) {
        return Err(Failure::usage("cannot import @live: it is not a trace")
            .hint("record this machine: sudo whyslow record -o NAME.wsl"));
    }
    if let Some(packed) = args.sources.iter().find(|source| packed::is_packed(source)) {
        let name = whyslow_model::text::shown(&packed.display().to_string(), false).into_owned();
        return Err(
            Failure::usage(format!("cannot import `{name}`: it is already a recording"))
                .hint(format!("query it: whyslow info {name}")),
        );
    }
    let output = match &args.output {
        Some(output) => output.clone(),
        None => name_after(&args.sources[0])?,
    };
    let options = ImportOptions {
        existing: if args.force {
            Existing::Replace
        } else {
            Existing::Refuse
        },
        cancel: interrupt::flag()?,
        leave_out: leave_out(args)?,
        shifts_ns: shifts(args)?,
        log_format: args.format.clone(),
        ..ImportOptions::new(&output)
    };
    let mut progress = ProgressReporter::new(talk);
    let result = whyslow_ingest::import(&args.sources, &options, &mut |at| progress.show(at));
    progress.end();
    let report = result?;
    recording::remember(&output);
    if !talk.quiet {
        summarise(&report, &output);
    }
    if args.strict {
        refuse_losses(&report)?;
    }
    Ok(())
}

/// Prints the formats that can be imported.
pub(super) fn print_formats() -> Result<(), Failure> {
    let names = FORMATS.iter().map(|format| format.name.len());
    let name = names.max().unwrap_or_default();
    let mut text = String::new();
    for format in &FORMATS {
        let _ = writeln!(
            text,
            "{:name$}  {} ({})\n{:name$}  {}",
            format.name, format.written_by, format.files, "", format.example
        );
    }
    text.push_str(
        "\nFormats are detected by content. A source may also be an archive of such files.\n",
    );
    to_pager(&text)
}

/// The offset added to the timestamps of each source.
fn shifts(args: &ImportArgs) -> Result<Vec<Ns>, Failure> {
    let mut shifts = vec![0; args.sources.len()];
    for (path, by) in &args.shift {
        let Some(at) = args.sources.iter().position(|source| source == path) else {
            return Err(Failure::usage(format!(
                "cannot shift `{}`: it is not one of the traces",
                shown(&path.display().to_string(), false)
            ))
            .hint("write the path as given on the command line: --shift profile.jfr=+1.5s"));
        };
        shifts[at] = *by;
    }
    Ok(shifts)
}

fn leave_out(args: &ImportArgs) -> Result<LeaveOut, Failure> {
    let mut leave_out = LeaveOut::default();
    for name in &args.leave_out {
        if !leave_out.class(name) {
            let known: Vec<&str> = LeaveOut::classes().collect();
            return Err(Failure::usage(format!("unknown class of events `{name}`"))
                .hint(format!("use one of {}", known.join(", "))));
        }
    }
    leave_out.lose(args.lose.unwrap_or(0.0) / 100.0);
    Ok(leave_out)
}

/// `trace.tar.zst` → `trace.wsl` in the current directory.
fn name_after(source: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(source).map_err(|error| Failure::reading(source, error))?;
    let name = absolute
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name != "..");
    let Some(name) = name else {
        return Err(Failure::usage(format!(
            "cannot name the recording after `{}`",
            source.display()
        ))
        .hint("name it with -o NAME.wsl"));
    };
    let stem = ARCHIVES
        .iter()
        .filter_map(|ending| name.strip_suffix(ending))
        .min_by_key(|stem| stem.len())
        .unwrap_or(&name);
    Ok(PathBuf::from(format!("{stem}.wsl")))
}

/// The final summary on stderr: counts of records, and anomalies by severity.
pub(super) fn summarise(report: &ImportReport, output: &Path) {
    let info = &report.recording;
    let records = report.records;
    let length = (info.end_ns - info.begin_ns) as f64 / 1e9;
    let host = match &info.host {
        Some(host) => format!(", host {}", shown(host, false)),
        None => String::new(),
    };
    talk::line(&format!(
        "{}: {} events, {length:.3} s{host}, imported in {:.1} s",
        talk::path(output),
        talk::grouped(records.read),
        report.elapsed.as_secs_f64(),
    ));
    let sum =
        |severity: Severity| -> u64 { of(report, severity).map(|anomaly| anomaly.count).sum() };
    talk::line(&format!(
        "  {} accepted, {} skipped; {} errors, {} warnings, {} notices",
        talk::grouped(records.accepted),
        talk::grouped(records.skipped),
        talk::grouped(sum(Severity::Error)),
        talk::grouped(sum(Severity::Warning)),
        talk::grouped(sum(Severity::Info)),
    ));
    match lost_ranges(report) {
        0 => {}
        1 => talk::line("  events were lost in 1 time range"),
        ranges => talk::line(&format!("  events were lost in {ranges} time ranges")),
    }
    print_anomalies(report);
}

/// Errors and warnings of the import.
pub(super) fn print_anomalies(report: &ImportReport) {
    for severity in [Severity::Error, Severity::Warning] {
        for anomaly in of(report, severity) {
            talk::line(&format!(
                "  {}: {} × {} ({})",
                severity.name(),
                anomaly.count,
                anomaly.name.to_lowercase(),
                anomaly.doc
            ));
            if !anomaly.text.is_empty() {
                talk::line(&format!("    first: {}", shown(&anomaly.text, false)));
            }
        }
    }
}

fn of(report: &ImportReport, severity: Severity) -> impl Iterator<Item = &AnomalyReport> {
    report
        .anomalies
        .iter()
        .filter(move |anomaly| anomaly.severity == severity && anomaly.count > 0)
}

fn lost_ranges(report: &ImportReport) -> u64 {
    let table = report.recording.tables.get("lost_events");
    table.map_or(0, |table| table.rows)
}

fn refuse_losses(report: &ImportReport) -> Result<(), Failure> {
    if let Some(anomaly) = of(report, Severity::Error).next() {
        return Err(Failure::incomplete(format!(
            "the recording is incomplete: {} × {}",
            anomaly.count,
            anomaly.name.to_lowercase()
        )));
    }
    if lost_ranges(report) > 0 {
        return Err(Failure::incomplete(
            "the recording is incomplete: events were lost",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_named_after_its_first_source() {
        let check = |source: &str, want: &str| {
            let got = name_after(Path::new(source)).expect(source);
            assert_eq!(got, PathBuf::from(want), "{source}");
        };
        check("trace.tar.zst", "trace.wsl");
        check("/data/trace.tar", "trace.wsl");
        check("auto-20150115-120942/", "auto-20150115-120942.wsl");
        check("x.tgz", "x.wsl");
        check("events.txt", "events.txt.wsl");
        assert!(name_after(Path::new("/")).is_err());
        let here = name_after(Path::new(".")).expect("the test directory has a name");
        assert_eq!(here, PathBuf::from("whyslow-cli.wsl"));
    }
}
