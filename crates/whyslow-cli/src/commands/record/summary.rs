//! What `record` prints at the end.

use std::path::Path;

use whyslow_base::talk;
use whyslow_record::{Progress, Summary};

/// One line: what was recorded, and what that cost.
fn line(progress: &Progress) -> String {
    let lost = match progress.lost {
        0 => "none".to_owned(),
        lost => talk::grouped(lost),
    };
    format!(
        "recorded {:.1} s, {} events, {lost} lost ({:.1} % of a CPU, {:.0} MiB)",
        progress.elapsed.as_secs_f64(),
        talk::grouped(progress.records),
        progress.cpu_share() * 100.0,
        progress.memory as f64 / 1024.0 / 1024.0,
    )
}

/// Prints the summary, and what limits the recording.
pub(super) fn print(summary: &Summary) {
    talk::line(&line(&summary.progress));
    print_memory_short(&summary.progress);
    print_lost(&summary.progress);
    let missed = summary.progress.missed;
    if missed > 0 {
        talk::line(&format!(
            "note: the kernel skipped {} runs of the recorder's BPF programs to prevent recursion; their events are missing",
            talk::grouped(missed)
        ));
    }
    if let Some(unwritten) = summary.unwritten {
        talk::line(&format!(
            "note: stopped because the spool reached --max-size: {} records of the last {:.1} s were not written",
            talk::grouped(unwritten.records),
            unwritten.length.as_secs_f64()
        ));
    }
}

/// Prints what to do next with the recording.
pub(super) fn print_next(output: &Path) {
    talk::line(&format!("Next: whyslow explain {}", quoted(output)));
}

/// Prints the place of a spool that was not imported.
pub(super) fn print_spool(spool: &Path, output: &Path) {
    talk::line(&format!(
        "Next: whyslow import {} -o {}",
        quoted(spool),
        quoted(output)
    ));
}

/// Notes that records did not fit into the buffer.
pub(in crate::commands) fn print_lost(progress: &Progress) {
    if progress.lost > 0 {
        talk::line(&format!(
            "note: {} records were lost because the buffer was full (increase --buffer)",
            talk::grouped(progress.lost)
        ));
    }
}

/// Notes that the memory limit was exceeded.
pub(in crate::commands) fn print_memory_short(progress: &Progress) {
    if progress.memory_short > 0 {
        talk::line(&format!(
            "note: the memory limit of {:.1} MiB was exceeded {} times: cached function names and kept data were dropped (increase --max-memory)",
            progress.memory_max as f64 / 1024.0 / 1024.0,
            progress.memory_short
        ));
    }
}

/// A path as a word of a shell command.
pub(in crate::commands) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let name = if text.starts_with('-') {
        format!("./{text}")
    } else {
        text
    };
    whyslow_render::quoted(&name)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_line_has_the_result_and_its_cost() {
        let mut progress = Progress {
            records: 52_369,
            elapsed: Duration::from_millis(3_900),
            own_cpu: Duration::from_micros(187_200),
            memory: 93 << 20,
            ..Progress::default()
        };
        assert_eq!(
            line(&progress),
            "recorded 3.9 s, 52,369 events, none lost (4.8 % of a CPU, 93 MiB)"
        );
        progress.lost = 7_002;
        assert!(line(&progress).contains("52,369 events, 7,002 lost ("));
    }

    #[test]
    fn paths_are_words_of_a_command() {
        let check = |path: &str, expected: &str| assert_eq!(quoted(Path::new(path)), expected);
        check("/tmp/web-1.wsl", "/tmp/web-1.wsl");
        check("my web.wsl", "'my web.wsl'");
        check("-x.wsl", "./-x.wsl");
        check("it's.wsl", r"'it'\''s.wsl'");
    }
}
