//! Detects the kind of a source by its content, never by its name.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use crate::archive;
use crate::importers::ctf::layout;
use crate::importers::{
    blkparse, blktrace, ftrace, jfr, jstack, markers, perf, pyspy, requests, samplers, snoops,
    spool, strace, sysstat, text, tracedat,
};

/// Kinds of sources, each with its own importer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A directory with Common Trace Format traces, their `metadata` file, or an archive.
    Ctf,
    /// A spool written by the recorder.
    Spool,
    /// Lines of text, see [`crate::importers::text`].
    Text,
    /// A strace log, see [`crate::importers::strace`].
    Strace,
    /// A recording of the Java Flight Recorder or of async-profiler, see [`crate::importers::jfr`].
    Jfr,
    /// Thread dumps of a JVM, see [`crate::importers::jstack`].
    Jstack,
    /// Thread dumps of a Python program, see [`crate::importers::pyspy`].
    PySpy,
    /// Stack profiles, see [`crate::importers::samplers`].
    Samples(samplers::Form),
    /// Tracepoints as text, see [`crate::importers::ftrace`].
    Ftrace,
    /// A file written by `trace-cmd record`, see [`crate::importers::tracedat`].
    TraceDat,
    /// Binary blktrace files, or a directory of them, see [`crate::importers::blktrace`].
    Blktrace,
    /// Output of blkparse, see [`crate::importers::blkparse`].
    Blkparse,
    /// Counters printed by sysstat, vmstat, top or JmxTool, see [`crate::importers::sysstat`].
    Report(sysstat::Form),
    /// Events printed by a tool of bcc, libbpf-tools or bpftrace, see [`crate::importers::snoops`].
    Snoop,
    /// Individual requests, see [`crate::importers::requests`].
    Requests(requests::Form),
    /// Markers of user actions, see [`crate::importers::markers`].
    Markers,
    /// A file written by `perf record`, see [`crate::importers::perf`].
    Perf,
}

impl SourceKind {
    /// Name in `sources` of the manifest.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Ctf => "ctf",
            SourceKind::Spool => "spool",
            SourceKind::Text => "text",
            SourceKind::Strace => "strace",
            SourceKind::Jfr => "jfr",
            SourceKind::Perf => "perf",
            SourceKind::Ftrace => "ftrace",
            SourceKind::TraceDat => "trace-cmd",
            SourceKind::Blktrace => "blktrace",
            SourceKind::Blkparse => "blkparse",
            SourceKind::Report(_) => "report",
            SourceKind::Snoop => "snoop",
            SourceKind::Jstack => "jstack",
            SourceKind::PySpy => "py-spy",
            SourceKind::Samples(form) => form.name(),
            SourceKind::Requests(form) => form.name(),
            SourceKind::Markers => "markers",
        }
    }
}

/// Why a path cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    /// The path does not exist or cannot be read.
    #[error("cannot open `{}`", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A recording, which can be queried directly.
    #[error("cannot import `{}`: it is already a recording", path.display())]
    Recording {
        /// The path.
        path: PathBuf,
    },
    /// The content is not in a supported format.
    #[error("cannot import `{}`: it is {seen}", path.display())]
    Unsupported {
        /// The path.
        path: PathBuf,
        /// Detected content: `an empty file`, …
        seen: String,
    },
}

/// Detects a source by the first bytes of a file, or by the files in a directory.
pub fn detect(path: &Path) -> Result<SourceKind, DetectError> {
    let open = |source| DetectError::Open {
        path: path.to_owned(),
        source,
    };
    let unsupported = |seen: String| DetectError::Unsupported {
        path: path.to_owned(),
        seen,
    };
    let about = fs::metadata(path).map_err(open)?;
    if about.is_dir() {
        return detect_folder(path);
    }
    if !about.is_file() {
        return Err(unsupported("not a file".to_owned()));
    }
    let head = read_head(path).map_err(open)?;
    if is_text(&head) {
        return Ok(SourceKind::Text);
    }
    if spool::is_spool(path) {
        return Ok(SourceKind::Spool);
    }
    if let Some(kind) = compressed(&head) {
        return Ok(kind);
    }
    if jfr::is_recording(&head) {
        return Ok(SourceKind::Jfr);
    }
    if perf::is_perf(&head) {
        return Ok(SourceKind::Perf);
    }
    if tracedat::is_trace_dat(&head) {
        return Ok(SourceKind::TraceDat);
    }
    // An idle CPU has a file, too, which is empty and so cannot be detected by content.
    if blktrace::is_blktrace(&head) || head.is_empty() && blktrace::is_empty_part(path) {
        return Ok(SourceKind::Blktrace);
    }
    let text = String::from_utf8_lossy(&head);
    if let Some(form) = requests::form_of(&text) {
        return Ok(SourceKind::Requests(form));
    }
    if markers::is_list(&text) {
        return Ok(SourceKind::Markers);
    }
    if let Some(whose) = requests::summary_of(&text) {
        return Err(unsupported(whose.to_owned()));
    }
    if let Some(kind) = printed(&text) {
        return Ok(kind);
    }
    if snoops::is_histogram(&text) {
        return Err(unsupported(
            "a latency histogram without individual events (use biosnoop, runqslower \
             or `whyslow record` instead)"
                .to_owned(),
        ));
    }
    if let Some(form) = samplers::form_of(&head) {
        return Ok(SourceKind::Samples(form));
    }
    if path.file_name().is_some_and(|name| name == "metadata") || archive::is_archive(path) {
        return Ok(SourceKind::Ctf);
    }
    Err(unsupported(describe(&head)))
}

/// Output that a tool printed as text.
fn printed(text: &str) -> Option<SourceKind> {
    if strace::is_log(text) {
        Some(SourceKind::Strace)
    } else if jstack::is_dump(text) {
        Some(SourceKind::Jstack)
    } else if blkparse::is_log(text) {
        Some(SourceKind::Blkparse)
    } else if pyspy::is_dump(text) {
        Some(SourceKind::PySpy)
    } else if ftrace::is_trace(text) {
        Some(SourceKind::Ftrace)
    } else if let Some(form) = sysstat::form_of(text) {
        Some(SourceKind::Report(form))
    } else {
        snoops::is_log(text).then_some(SourceKind::Snoop)
    }
}

fn detect_folder(path: &Path) -> Result<SourceKind, DetectError> {
    let open = |source| DetectError::Open {
        path: path.to_owned(),
        source,
    };
    // fail early if the directory cannot be read
    fs::read_dir(path).map_err(open)?;
    if spool::is_spool(path) {
        return Ok(SourceKind::Spool);
    }
    if path.join("manifest.json").is_file() && !path.join("metadata").exists() {
        return Err(DetectError::Recording {
            path: path.to_owned(),
        });
    }
    if layout::has_trace(path) {
        return Ok(SourceKind::Ctf);
    }
    let parts = blktrace::BlktraceSource::files_of(path).map_err(open)?;
    if !parts.is_empty() {
        return Ok(SourceKind::Blktrace);
    }
    Err(DetectError::Unsupported {
        path: path.to_owned(),
        seen: "a directory without a trace (neither a `metadata` file nor blktrace files)"
            .to_owned(),
    })
}

/// Enough for any magic number and a first line.
const HEAD_BYTES: u64 = 8 << 10;

fn read_head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Profiles are often compressed; other supported files rarely are, except archives.
fn compressed(head: &[u8]) -> Option<SourceKind> {
    if !head.starts_with(&[0x1f, 0x8b]) {
        return None;
    }
    let mut begin = Vec::new();
    // The head is truncated, so decompression fails at its end; the data before that is enough.
    let _ = GzDecoder::new(head)
        .take(HEAD_BYTES)
        .read_to_end(&mut begin);
    if jfr::is_recording(&begin) {
        return Some(SourceKind::Jfr);
    }
    if let Some(form) = samplers::form_of(&begin) {
        return Some(SourceKind::Samples(form));
    }
    // Archives contain zeros after the name of their first file.
    let text = String::from_utf8_lossy(&begin);
    let is_text = !begin.contains(&0);
    if is_text && let Some(form) = requests::form_of(&text) {
        return Some(SourceKind::Requests(form));
    }
    if is_text && jstack::is_dump(&text) {
        return Some(SourceKind::Jstack);
    }
    (is_text && pyspy::is_dump(&text)).then_some(SourceKind::PySpy)
}

fn is_text(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.trim_ascii_end() == text::MAGIC.as_bytes()
}

/// Describes files that users are likely to try, so that the error shows what the file is.
fn describe(head: &[u8]) -> String {
    const MAGICS: [(&[u8], &str); 8] = [
        (b"", "an empty file"),
        (
            b"\x17\x08\x44tracing",
            "a trace.dat file of an unsupported version (6 and 7 are supported)",
        ),
        (b"PAR1", "a Parquet file"),
        (b"\x7fELF", "an ELF file"),
        (
            b"\xc1\x1f\xfc\xc1",
            "a stream of a CTF trace (import its directory instead)",
        ),
        (
            b"\xc1\xfc\x1f\xc1",
            "a stream of a CTF trace (import its directory instead)",
        ),
        (b"\x1f\x8b", "a gzip file without a tar archive"),
        (b"{", "a JSON file"),
    ];
    for (magic, what) in MAGICS {
        if head == magic || !magic.is_empty() && head.starts_with(magic) {
            return what.to_owned();
        }
    }
    if let Some(version) = blktrace::strange_version(head) {
        return format!("a blktrace file of version {version} (7 is supported)");
    }
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    match std::str::from_utf8(line) {
        Ok(line) if !line.chars().any(char::is_control) => {
            let line: String = line.chars().take(60).collect();
            format!("a text file that starts with {line:?}")
        }
        _ => "a file in an unknown format".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn sources_are_known_by_content() {
        let folder = tempfile::tempdir().expect("a test");
        let file = folder.path().join("x");
        let check = |content: &[u8], expected: &str| {
            fs::write(&file, content).expect("a test");
            let seen = match detect(&file) {
                Ok(kind) => kind.name().to_owned(),
                Err(DetectError::Unsupported { seen, .. }) => seen,
                Err(error) => error.to_string(),
            };
            assert_eq!(seen, expected);
        };
        check(b"whyslow-text 1\n1 [0] other\n", "text");
        check(b"whyslow-text 1", "text");
        check(
            b"7 1795485216.1 getpid() = 7 <0.000007>\n7 17954852",
            "strace",
        );
        check(b"", "an empty file");
        check(b"PERFILE2\x68", "perf");
        check(b"\x17\x08\x44tracing6\0", "trace-cmd");
        check(
            b"\x17\x08\x44tracing0.6\0",
            "a trace.dat file of an unsupported version (6 and 7 are supported)",
        );
        check(b"\x07tae", "blktrace");
        check(b"eat\x08", "a blktrace file of version 8 (7 is supported)");
        check(
            b"  7,0    0        1     0.000000000   104  Q  WS 2048 + 8 [dd]\n",
            "blkparse",
        );
        check(
            b"\xc1\x1f\xfc\xc1abc",
            "a stream of a CTF trace (import its directory instead)",
        );
        let packed = |content: &[u8]| {
            let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
            packer.write_all(content).expect("a test");
            packer.finish().expect("a test")
        };
        check(b"rbspy02\n{}\n", "rbspy");
        check(
            b"[{\"thread_id\":1,\"active\":true,\"owns_gil\":true}]",
            "py-spy",
        );
        check(&packed(b"main;read 42\nmain 1\n"), "collapsed");
        check(&packed(b"rbspy02\n{}\n"), "rbspy");
        check(&packed(b"\nFull thread dump X\n"), "jstack");
        // A text in an archive is not detected as a text.
        let archived = [&b"main;read"[..], &[0; 91], b"\nmain;read 42\n"].concat();
        check(&packed(&archived), "ctf");
        check(b"hello\nworld", "a text file that starts with \"hello\"");
        check(b"\x01\x02\x03", "a file in an unknown format");
        let directory = detect(folder.path()).err().map(|error| error.to_string());
        assert!(directory.is_some_and(|error| error.contains("without a trace")));
        fs::write(folder.path().join("manifest.json"), "{}").expect("a test");
        assert!(matches!(
            detect(folder.path()),
            Err(DetectError::Recording { .. })
        ));
        assert!(matches!(
            detect(&folder.path().join("absent")),
            Err(DetectError::Open { .. })
        ));
    }
}
