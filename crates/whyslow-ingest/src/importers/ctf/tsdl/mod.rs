//! TSDL, the metadata language of CTF 1.8.
//!
//! It resembles C: type declarations (`typealias integer { size = 8; … } := uint8_t;`) and blocks
//! (`trace`, `env`, `clock`, `callsite`, `stream`, `event`), whose attributes have values
//! (`id = 3;`) or types (`fields := struct { … };`).
//!
//! Type names are resolved while parsing, as in C, so scopes and shadowing need no second pass.
//! Most of the text consists of repeated integers `integer { size = 32; … }`, one per field; an
//! integer with the same bytes as an earlier one is reused. What becomes known only later stays
//! symbolic in the tree: the native byte order, clocks, and the fields that lengths and variants
//! refer to, because a declared structure may be used in many places, where its references mean
//! different fields. The resolver then processes the blocks and copies each type to the places
//! where it is used.

mod attributes;
mod bind;
mod lexer;
mod parser;
mod resolve;
mod roles;
mod statements;
mod syntax;
mod types;

use super::class::TraceClass;
use super::metadata::{Notes, Refusal};

/// Reads the whole text; what is missing at the end of a truncated text, or an invalid event, is
/// noted and left out.
pub(super) fn parse(text: &[u8], notes: &mut Notes) -> Result<TraceClass, Refusal> {
    let words = lexer::text_of_words(text);
    let blocks = statements::parse_text(text, &words, notes).map_err(Refusal::Syntax)?;
    resolve::resolve(&blocks, notes).map_err(Refusal::Meaning)
}
