//! The metadata of CTF 2: a sequence of JSON values, each after a record separator (0x1E).
//!
//! The values are called fragments. The `preamble` comes first; `field-class-alias` names a field
//! class; `trace-class`, `clock-class`, `data-stream-class` and `event-record-class` describe what
//! CTF 1.8 declares as blocks. The meaning of a field for the reader is declared as its role. A
//! length or selector is a `path` through structure members, from an `origin` or from the current
//! structure, where `null` leads to the enclosing structure.
//!
//! Both the final format of 2024 and the candidate of 2023 are read. The candidate has separate
//! types for enumerations, refers to clocks by name where the final format has an `id`, names the
//! offset of a clock `offset`, and assumes the Unix epoch unless `origin-is-unix-epoch` is false.

mod field_classes;
mod fragments;
mod properties;
mod tree;

use whyslow_model::stat::METADATA_DAMAGED;

use super::class::TraceClass;
use super::metadata::{Fault, Notes, RECORD_SEPARATOR, Refusal};
use fragments::TraceBuilder;
use tree::Json;

/// Reads all fragments; the last may be truncated, and an invalid event is left out.
pub(super) fn parse(text: &[u8], notes: &mut Notes) -> Result<TraceClass, Refusal> {
    let mut builder = TraceBuilder::new(notes);
    for (offset, piece) in pieces(text) {
        let is_last = offset + piece.len() >= text.len();
        match parse_json(piece, offset) {
            Ok(json) => builder.fragment(&json, offset).map_err(Refusal::Meaning)?,
            Err((fault, true)) if is_last => {
                let what = format!("the text ends inside a fragment: {}", fault.what);
                builder.note(&METADATA_DAMAGED, Fault::new(offset, what));
            }
            Err((fault, _)) => return Err(Refusal::Syntax(fault)),
        }
    }
    builder.finish().map_err(Refusal::Meaning)
}

/// The non-blank texts between separators, and their offsets.
fn pieces(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut begin = 0;
    text.split(|&byte| byte == RECORD_SEPARATOR)
        .map(move |piece| {
            let offset = begin;
            begin += piece.len() + 1;
            (offset, piece)
        })
        .filter(|(_, piece)| !piece.iter().all(u8::is_ascii_whitespace))
}

/// The fault, and whether the text ended too early.
fn parse_json(piece: &[u8], offset: usize) -> Result<Json, (Fault, bool)> {
    serde_json::from_slice(piece).map_err(|error| {
        let lines = piece.split_inclusive(|&byte| byte == b'\n');
        let before: usize = lines
            .take(error.line().saturating_sub(1))
            .map(<[u8]>::len)
            .sum();
        let at = (before + error.column().saturating_sub(1)).min(piece.len());
        let what = error.to_string();
        // The location is given as a byte offset, not as line and column of the fragment.
        let what = what
            .rsplit_once(" at line ")
            .map_or(&*what, |(what, _)| what);
        (Fault::new(offset + at, what), error.is_eof())
    })
}
