//! What kind of source a path is: told by content, never by name.

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

/// Kinds of sources, each with an importer of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A directory with traces of the Common Trace Format, their `metadata` file, or an archive.
    Ctf,
    /// What the recorder wrote.
    Spool,
    /// Lines of text, see [`crate::importers::text`].
    Text,
    /// A log, see [`crate::importers::strace`].
    Strace,
    /// A recording of the Java Flight Recorder or of async-profiler, see [`crate::importers::jfr`].
    Jfr,
    /// Dumps of the threads of a JVM, see [`crate::importers::jstack`].
    Jstack,
    /// Dumps of the threads of a Python program, see [`crate::importers::pyspy`].
    PySpy,
    /// Stacks in the forms that flame graphs are drawn from, see [`crate::importers::samplers`].
    Samples(samplers::Form),
    /// Tracepoints as text, see [`crate::importers::ftrace`].
    Ftrace,
    /// What `trace-cmd record` wrote, see [`crate::importers::tracedat`].
    TraceDat,
    /// Binary files of blktrace, or a folder with such, see [`crate::importers::blktrace`].
    Blktrace,
    /// What blkparse printed, see [`crate::importers::blkparse`].
    Blkparse,
    /// Counters that sysstat, vmstat, top or JmxTool printed, see [`crate::importers::sysstat`].
    Report(sysstat::Form),
    /// Events that a tool of bcc, libbpf-tools or bpftrace printed, see [`crate::importers::snoops`].
    Snoop,
    /// Requests, one by one, see [`crate::importers::requests`].
    Requests(requests::Form),
    /// Marks of what people did, see [`crate::importers::markers`].
    Markers,
    /// What `perf record` wrote, see [`crate::importers::perf`].
    Perf,
}

impl SourceKind {
    /// As the manifest has it in `sources`.
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

/// What [`detect`] can find, for messages.
pub const SUPPORTED: &str = "an LTTng or other CTF 1.8 or CTF 2 trace (its directory, or a \
                             .tar, .tar.gz, .tar.xz, .tar.zst or .zip of it), a spool of \
                             `whyslow record`, a JFR file of async-profiler or the JDK, \
                             a perf.data file, a trace.dat file of trace-cmd, files of \
                             blktrace (or their folder), the text of \
                             `perf script`, `trace-cmd report`, `blkparse` or a `trace` file of ftrace, thread dumps of a JVM (jstack, jcmd) or of `py-spy dump -j`, \
                             stacks that are collapsed or of speedscope, Chrome, rbspy, stackprof, ruby-prof or pprof \
                             (profiles also .gz), a log of `strace -f -ttt -T -y`, what \
                             iostat -t, mpstat, pidstat, sar, sadf -j and -d, vmstat -t and top -b \
                             or tools of bcc, libbpf-tools and bpftrace with times (opensnoop -T, \
                             biosnoop, ext4slower, …) print, \
                             requests (access logs of nginx and Apache, request logs of Kafka, HAR, \
                             k6 --out json or csv, vegeta encode, hey -o csv, \
                             oha --output-format csv, ab -g, spans as OTLP/JSON, of Jaeger or \
                             Zipkin), markers (CSV or JSON with `time` and \
                             `text`), or a text file \
                             that begins with `whyslow-text 1`";

/// Why a path cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    /// The path does not exist or cannot be read.
    #[error("failed to open `{}`", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A recording, which can be queried as it is.
    #[error("`{}` is a recording already", path.display())]
    Recording {
        /// The path.
        path: PathBuf,
    },
    /// The content is of no kind that can be imported.
    #[error("`{}` is {seen}, which cannot be imported; what can: {SUPPORTED}", path.display())]
    Unsupported {
        /// The path.
        path: PathBuf,
        /// What it looks like: `an empty file`, …
        seen: String,
    },
}

/// Reads the first bytes of a file, or looks for files in a directory.
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
    // Of a CPU that did nothing there is a file all the same, without content that could tell.
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
            "a histogram of latencies, which tells of no event when it was (biosnoop, runqslower \
             and `whyslow record` do)"
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

/// What a tool printed for people.
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
    // refuse early what the directory scan would search in vain
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
        seen: "a directory without a trace (no file called `metadata` in it, none of blktrace)"
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

/// Profiles are often compressed, and few other things that can be read are but archives.
fn compressed(head: &[u8]) -> Option<SourceKind> {
    if !head.starts_with(&[0x1f, 0x8b]) {
        return None;
    }
    let mut begin = Vec::new();
    // What was inflated before the error, as the head is cut, is what is wanted.
    let _ = GzDecoder::new(head)
        .take(HEAD_BYTES)
        .read_to_end(&mut begin);
    if jfr::is_recording(&begin) {
        return Some(SourceKind::Jfr);
    }
    if let Some(form) = samplers::form_of(&begin) {
        return Some(SourceKind::Samples(form));
    }
    // Archives have zeros after the name of their first file.
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

/// Names what people are likely to try, so that they know what they have in hand.
fn describe(head: &[u8]) -> String {
    const MAGICS: [(&[u8], &str); 8] = [
        (b"", "an empty file"),
        (
            b"\x17\x08\x44tracing",
            "a trace.dat file of trace-cmd of a version other than 6 and 7",
        ),
        (b"PAR1", "a Parquet file"),
        (b"\x7fELF", "an ELF file"),
        (
            b"\xc1\x1f\xfc\xc1",
            "a stream of a CTF trace (name its directory instead)",
        ),
        (
            b"\xc1\xfc\x1f\xc1",
            "a stream of a CTF trace (name its directory instead)",
        ),
        (b"\x1f\x8b", "a gzip file that holds no tar archive"),
        (b"{", "a JSON file"),
    ];
    for (magic, what) in MAGICS {
        if head == magic || !magic.is_empty() && head.starts_with(magic) {
            return what.to_owned();
        }
    }
    if let Some(version) = blktrace::strange_version(head) {
        return format!("a file of blktrace of version {version} (7 is read)");
    }
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    match std::str::from_utf8(line) {
        Ok(line) if !line.chars().any(char::is_control) => {
            let line: String = line.chars().take(60).collect();
            format!("a text file that begins with {line:?}")
        }
        _ => "a file of unknown format".to_owned(),
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
            "a trace.dat file of trace-cmd of a version other than 6 and 7",
        );
        check(b"\x07tae", "blktrace");
        check(b"eat\x08", "a file of blktrace of version 8 (7 is read)");
        check(
            b"  7,0    0        1     0.000000000   104  Q  WS 2048 + 8 [dd]\n",
            "blkparse",
        );
        check(
            b"\xc1\x1f\xfc\xc1abc",
            "a stream of a CTF trace (name its directory instead)",
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
        // A text in an archive is none of its own.
        let archived = [&b"main;read"[..], &[0; 91], b"\nmain;read 42\n"].concat();
        check(&packed(&archived), "ctf");
        check(b"hello\nworld", "a text file that begins with \"hello\"");
        check(b"\x01\x02\x03", "a file of unknown format");
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
