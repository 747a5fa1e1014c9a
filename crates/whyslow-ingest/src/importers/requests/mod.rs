//! Requests that programs wrote down one by one: logs of servers, lists of load generators, spans of traces.
//!
//! Logs are read line by line and may have any size; most are in order of end, so who imports them holds some back
//! to put them in order of begin. Documents that are one value (HAR, Jaeger, Zipkin) are held in memory.
//! What a source does not tell is null, and what that costs is counted.

mod access;
mod lines;
mod load;
mod request;
mod values;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use whyslow_model::Ns;

use super::stamp::Shift;
use super::streamed::Summary;
use lines::{Lines, Parse};
pub use request::{Outcome, Phase, Request, Role, Times};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Lines of `whyslow load`.
    Load,
    /// Logs of nginx and Apache.
    Access,
}

impl Form {
    pub fn name(self) -> &'static str {
        match self {
            Form::Load => "load",
            Form::Access => "access_log",
        }
    }
}

/// What these first bytes are of.
pub fn form_of(head: &str) -> Option<Form> {
    if load::is_load(head) {
        Some(Form::Load)
    } else {
        access::is_log(head).then_some(Form::Access)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RequestsError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0}")]
    Format(String),
}

/// A file of requests, from its begin to its end.
pub trait RequestReader {
    /// The next one in the order of the file.
    fn next(&mut self) -> io::Result<Option<Request>>;

    /// Bytes read, and all there are.
    fn progress(&self) -> (u64, u64);

    /// What there was, once all was read.
    fn summary(&self) -> Summary;
}

/// How a file is to be read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// When the file was last written, for what its times do not say.
    pub written: Option<Ns>,
    /// Of an access log, as the configuration of its server has it.
    pub format: Option<&'a str>,
}

pub fn open(
    form: Form,
    path: &Path,
    asked: Asked<'_>,
) -> Result<Box<dyn RequestReader>, RequestsError> {
    let shift = Lines::open(path, parse(form, asked, Shift::default())?)?.shift(asked.written)?;
    let lines = Lines::open(path, parse(form, asked, shift)?)?;
    Ok(Box::new(lines))
}

/// The same of bytes in memory: for tests and fuzzing.
pub fn read_bytes(
    form: Form,
    bytes: &[u8],
    asked: Asked<'_>,
) -> Result<(Vec<Request>, Summary), RequestsError> {
    let input = || Box::new(io::Cursor::new(bytes.to_vec()));
    let before = Lines::new(input(), parse(form, asked, Shift::default())?);
    let shift = before.shift(asked.written)?;
    let mut reader = Lines::new(input(), parse(form, asked, shift)?);
    let mut requests = Vec::new();
    while let Some(request) = reader.next()? {
        requests.push(request);
    }
    let summary = reader.summary();
    Ok((requests, summary))
}

fn parse(form: Form, asked: Asked<'_>, shift: Shift) -> Result<Box<dyn Parse>, RequestsError> {
    Ok(match form {
        Form::Load => Box::new(load::Load::default()),
        Form::Access => {
            let access = access::Access::new(asked.format, shift);
            Box::new(access.map_err(RequestsError::Format)?)
        }
    })
}

/// A file, inflated if it is compressed.
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
