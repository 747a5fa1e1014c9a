//! Files of one or several consecutive JSON values, which are held in memory.

use std::io::{self, BufRead, Read};

use serde_json::Value;
use whyslow_model::stat;

use super::{Request, RequestReader, RequestsError};
use crate::importers::streamed::{Note, Summary};
use crate::limits;

/// Contents of the values of a file.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) requests: Vec<Request>,
    /// Invalid parts, and the error in the first one.
    pub(super) bad: u64,
    pub(super) what: String,
    /// Byte offset of the value with the first invalid part.
    offset: u64,
    /// Spans that belong to no request.
    pub(super) alone: u64,
    /// Phases of requests.
    pub(super) phases: u64,
}

impl Contents {
    pub(super) fn add_bad(&mut self, what: &str) {
        self.bad += 1;
        if self.what.is_empty() {
            what.clone_into(&mut self.what);
        }
    }
}

pub(super) struct Document {
    requests: std::vec::IntoIter<Request>,
    bytes: u64,
    summary: Summary,
}

/// Processes the values of a file in order.
type Take<'t> = dyn FnMut(&Value, &mut Contents) + 't;

impl Document {
    pub(super) fn read(
        input: &mut dyn BufRead,
        take: &mut Take<'_>,
    ) -> Result<(Contents, u64, Option<Note>), RequestsError> {
        let limit = limits::TEXT_BYTES_MAX;
        let mut bytes = Vec::new();
        input.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(RequestsError::Format(format!(
                "the document exceeds {limit} bytes"
            )));
        }
        if weight(&bytes) > limits::REQUEST_DOCUMENT_WEIGHT_MAX {
            return Err(RequestsError::Format(
                "the document needs too much memory: export fewer traces at once".to_owned(),
            ));
        }
        let mut contents = Contents::default();
        let mut values = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
        let mut cut = None;
        let mut is_first = true;
        loop {
            let offset = values.byte_offset() as u64;
            let Some(value) = values.next() else {
                break;
            };
            match value {
                Ok(value) => {
                    let bad = contents.bad;
                    take(&value, &mut contents);
                    if bad == 0 {
                        contents.offset = offset;
                    }
                }
                Err(error) if is_first => {
                    return Err(RequestsError::Format(format!("invalid JSON: {error}")));
                }
                Err(error) => {
                    let offset = Some(values.byte_offset() as u64);
                    cut = Some(Note::new(&stat::REQUESTS_CUT, 1).at(offset, error.to_string()));
                    break;
                }
            }
            is_first = false;
        }
        Ok((contents, bytes.len() as u64, cut))
    }

    pub(super) fn new((contents, bytes, cut): (Contents, u64, Option<Note>)) -> Self {
        let requests = contents.requests.len() as u64;
        let bad = Note::new(&stat::REQUEST_LINE_BAD, contents.bad)
            .at(Some(contents.offset), contents.what);
        let alone = Note::new(&stat::REQUEST_SPAN_ALONE, contents.alone);
        let notes = [Some(bad).filter(|bad| bad.count > 0), Some(alone), cut];
        let counts = [("request", requests), ("phase", contents.phases)];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        Self {
            requests: contents.requests.into_iter(),
            bytes,
            summary: Summary {
                facts: Vec::new(),
                counts: counts
                    .map(|(name, count)| (name.to_owned(), count))
                    .collect(),
                records: requests + contents.phases + contents.alone + contents.bad,
                skipped: contents.bad,
                notes: notes.into_iter().flatten().collect(),
            },
        }
    }
}

impl RequestReader for Document {
    fn next(&mut self) -> io::Result<Option<Request>> {
        Ok(self.requests.next())
    }

    fn progress(&self) -> (u64, u64) {
        (self.bytes, self.bytes)
    }

    fn summary(&self) -> Summary {
        let summary = &self.summary;
        Summary {
            facts: summary.facts.clone(),
            counts: summary.counts.clone(),
            records: summary.records,
            skipped: summary.skipped,
            notes: summary.notes.clone(),
        }
    }
}

/// Memory use of the largest value, in units of a small one: a short text may become very many
/// values, of which maps are the largest.
fn weight(bytes: &[u8]) -> u64 {
    const MAP: u64 = 10;
    let (mut depth, mut weight, mut most) = (0_u64, 0_u64, 0_u64);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in bytes {
        if is_text {
            is_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => is_text = true,
            b'{' => (depth, weight) = (depth + 1, weight + MAP),
            b'[' => (depth, weight) = (depth + 1, weight + 1),
            b',' => weight += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(weight);
        if depth == 0 {
            weight = 0;
        }
    }
    most
}

/// The text of a key, or an empty text.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The list of a key, or an empty list.
pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_value_counts() {
        let check = |text: &str, expected: u64| assert_eq!(weight(text.as_bytes()), expected);
        check("", 0);
        check("[1,2,3]", 3);
        check("[1,2,3]\n[1]", 3);
        check("{\"a\":\"{[,\\\"{\"}", 10);
        check("[{},{}]", 22);
        check("]]{", 10);
    }

    #[test]
    fn a_document_of_too_many_parts_is_refused() {
        let text = format!("[{}1]", "{},".repeat(1_700_000));
        let read = Document::read(&mut text.as_bytes(), &mut |_, _| {});
        let error = read.err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("too many parts")));
    }
}
