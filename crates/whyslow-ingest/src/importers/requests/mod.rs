//! Individual requests as logged by programs: server logs, request lists of load generators, trace
//! spans.
//!
//! Logs are read line by line and may have any size; most are in order of end, so the pipeline
//! holds some requests back to sort them by start. Documents of one value (HAR, Jaeger, Zipkin) are
//! held in memory. Information that a source lacks is null, and the effect is counted.

mod access;
mod document;
mod generators;
mod har;
mod k6;
mod kafka;
mod lines;
mod load;
mod request;
mod since;
mod spans;
mod values;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use whyslow_model::Ns;

use super::stamp::Shift;
use super::streamed::Summary;
use document::Document;
use lines::{Lines, Parse};
pub use request::{Outcome, Phase, Request, Role, Times};
use spans::Spans;
pub(in crate::importers) use values::{fields, timestamp};

/// Formats of files with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Lines of `whyslow load`.
    Load,
    /// Logs of nginx and Apache.
    Access,
    /// Request logs of Kafka brokers.
    Kafka,
    /// k6, `--out json`.
    K6Json,
    /// k6, `--out csv`.
    K6Csv,
    /// vegeta, `encode --to json`.
    VegetaJson,
    /// vegeta, `encode --to csv`.
    VegetaCsv,
    /// hey, `-o csv`.
    Hey,
    /// oha, `--output-format csv`.
    Oha,
    /// ApacheBench, `-g`: tab-separated values for gnuplot.
    Ab,
    /// HTTP Archive of a browser or proxy.
    Har,
    /// OpenTelemetry spans, OTLP in JSON.
    Otlp,
    /// Jaeger's JSON.
    Jaeger,
    /// Zipkin's JSON.
    Zipkin,
}

impl Form {
    /// Whether one file may contain a request twice, as recorded by the client and by the server.
    pub fn has_both_sides(self) -> bool {
        matches!(self, Form::Otlp | Form::Jaeger | Form::Zipkin)
    }

    /// Value of the column `request.source`.
    pub fn name(self) -> &'static str {
        match self {
            Form::Load => "load",
            Form::Access => "access_log",
            Form::Kafka => "kafka_requests",
            Form::K6Json | Form::K6Csv => "k6",
            Form::VegetaJson | Form::VegetaCsv => "vegeta",
            Form::Hey => "hey",
            Form::Oha => "oha",
            Form::Ab => "ab",
            Form::Har => "har",
            Form::Otlp => "otlp",
            Form::Jaeger => "jaeger",
            Form::Zipkin => "zipkin",
        }
    }
}

/// The format of a file starting with `head`.
pub fn form_of(head: &str) -> Option<Form> {
    type Is = fn(&str) -> bool;
    const FORMS: [(Is, Form); 14] = [
        (load::is_load, Form::Load),
        (k6::is_json, Form::K6Json),
        (k6::is_csv, Form::K6Csv),
        (generators::is_vegeta_json, Form::VegetaJson),
        (since::is_hey, Form::Hey),
        (since::is_oha, Form::Oha),
        (generators::is_ab, Form::Ab),
        (generators::is_vegeta_csv, Form::VegetaCsv),
        (har::is_har, Form::Har),
        (spans::is_otlp, Form::Otlp),
        (spans::is_jaeger, Form::Jaeger),
        (spans::is_zipkin, Form::Zipkin),
        (kafka::is_log, Form::Kafka),
        (access::is_log, Form::Access),
    ];
    let known = FORMS.iter().find(|(is, _)| is(head));
    known.map(|(_, form)| *form)
}

/// Summaries of load generators, which contain no individual requests: the tool, and what to use
/// instead.
pub fn summary_of(head: &str) -> Option<&'static str> {
    let begin = head.trim_start();
    let has = |word: &str| head.contains(word);
    let is_oha_json = begin.starts_with('{') && has("\"successRate\"") && has("\"requestsPerSec\"");
    if begin.starts_with("Running ") && has(" test @ ") {
        Some("a summary of wrk without individual requests (use `whyslow load`, vegeta or k6)")
    } else if is_oha_json || begin.starts_with("Summary:") && has("Success rate:") {
        Some("a summary of oha without individual requests (use `oha --output-format csv`)")
    } else if begin.starts_with("Summary:") && has("Requests/sec:") {
        Some("a summary of hey without individual requests (use `hey -o csv`)")
    } else if begin.starts_with("This is ApacheBench,") {
        Some("a summary of ab without individual requests (use `ab -g FILE`)")
    } else {
        None
    }
}

/// Reason why a file of requests cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum RequestsError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The content, or the specified log format, is invalid.
    #[error("{0}")]
    Format(String),
}

/// Reads a file of requests from start to end.
pub trait RequestReader {
    /// The next request in file order.
    fn next(&mut self) -> io::Result<Option<Request>>;

    /// Bytes read, and bytes in total.
    fn progress(&self) -> (u64, u64);

    /// Summary of the contents, once all were read.
    fn summary(&self) -> Summary;
}

/// Options for reading a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Modification time of the file, used where its timestamps are incomplete.
    pub written: Option<Ns>,
    /// Format of an access log, as in the server's configuration.
    pub format: Option<&'a str>,
}

/// Opens a file of that format. Line-based formats are read twice, first to find the zone or the
/// zero of their times.
pub fn open(
    form: Form,
    path: &Path,
    options: ReadOptions<'_>,
) -> Result<Box<dyn RequestReader>, RequestsError> {
    if let Some(document) = document(form, &mut *input(path)?.1)? {
        return Ok(Box::new(document));
    }
    let shift =
        Lines::open(path, parse(form, options, Shift::default())?)?.shift(options.written)?;
    let lines = Lines::open(path, parse(form, options, shift)?)?;
    Ok(Box::new(lines))
}

/// The same for bytes in memory: for tests and fuzzing.
pub fn read_bytes(
    form: Form,
    bytes: &[u8],
    options: ReadOptions<'_>,
) -> Result<(Vec<Request>, Summary), RequestsError> {
    let input = || Box::new(io::Cursor::new(bytes.to_vec()));
    let whole = document(form, &mut *input())?;
    let mut reader: Box<dyn RequestReader> = if let Some(document) = whole {
        Box::new(document)
    } else {
        let before = Lines::new(input(), parse(form, options, Shift::default())?);
        let shift = before.shift(options.written)?;
        Box::new(Lines::new(input(), parse(form, options, shift)?))
    };
    let mut requests = Vec::new();
    while let Some(request) = reader.next()? {
        requests.push(request);
    }
    let summary = reader.summary();
    Ok((requests, summary))
}

/// A file that is read as a whole; none for line-based formats.
fn document(form: Form, input: &mut dyn BufRead) -> Result<Option<Document>, RequestsError> {
    let mut spans = Spans::default();
    let (mut contents, bytes, cut) = match form {
        Form::Har => Document::read(input, &mut har::take)?,
        Form::Otlp => Document::read(input, &mut |value, contents| spans.otlp(value, contents))?,
        Form::Jaeger => {
            Document::read(input, &mut |value, contents| spans.jaeger(value, contents))?
        }
        Form::Zipkin => {
            Document::read(input, &mut |value, contents| spans.zipkin(value, contents))?
        }
        _ => return Ok(None),
    };
    spans.finish(form.name(), &mut contents);
    Ok(Some(Document::new((contents, bytes, cut))))
}

fn parse(
    form: Form,
    options: ReadOptions<'_>,
    shift: Shift,
) -> Result<Box<dyn Parse>, RequestsError> {
    Ok(match form {
        Form::Access => {
            let access = access::Access::new(options.format, shift);
            Box::new(access.map_err(RequestsError::Format)?)
        }
        Form::Kafka => Box::new(kafka::Kafka::new(shift)),
        Form::Hey => Box::new(since::Since::new(since::Generator::Hey, shift)),
        Form::Oha => Box::new(since::Since::new(since::Generator::Oha, shift)),
        Form::Ab => Box::new(generators::Ab::default()),
        Form::K6Json => Box::new(k6::Json::default()),
        Form::K6Csv => Box::new(k6::Csv::default()),
        Form::VegetaJson => Box::new(generators::VegetaJson),
        Form::VegetaCsv => Box::new(generators::VegetaCsv),
        // The others are documents.
        Form::Load | Form::Har | Form::Otlp | Form::Jaeger | Form::Zipkin => {
            Box::new(load::Load::default())
        }
    })
}

/// A file, decompressed if necessary.
fn input(path: &Path) -> io::Result<(lines::Counted, Box<dyn BufRead>)> {
    let mut file = File::open(path)?;
    let mut magic = Vec::new();
    (&mut file).take(2).read_to_end(&mut magic)?;
    let (counted, file) = lines::Counted::of(File::open(path)?)?;
    let input: Box<dyn BufRead> = if magic == [0x1f, 0x8b] {
        Box::new(BufReader::new(MultiGzDecoder::new(BufReader::new(file))))
    } else {
        Box::new(BufReader::with_capacity(1 << 17, file))
    };
    Ok((counted, input))
}
