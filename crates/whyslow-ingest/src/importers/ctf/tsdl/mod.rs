//! TSDL, the metadata language of CTF 1.8.
//!
//! It looks like C: type declarations (`typealias integer { size = 8; … } := uint8_t;`) and blocks
//! (`trace`, `env`, `clock`, `callsite`, `stream`, `event`), whose attributes hold values (`id = 3;`)
//! or types (`fields := struct { … };`).
//!
//! The parser looks type names up as it meets them, like C does, so that scopes and shadowing need
//! no second look. Most of the text are integers `integer { size = 32; … }` written alike, one a
//! field; one that begins with the bytes of an earlier one is taken over from it. What only becomes
//! known later stays symbolic in its tree: the native byte order, clocks, and the fields which
//! lengths and variants refer to, because one declared structure may be used in many places and its
//! references mean another field in each. The resolver then reads the blocks and copies each used
//! type to its places.

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

/// Reads the whole text; what a cut text lacks at its end, or an event that makes no sense, is
/// noted and left out.
pub(super) fn parse(text: &[u8], notes: &mut Notes) -> Result<TraceClass, Refusal> {
    let words = lexer::text_of_words(text);
    let blocks = statements::parse_text(text, &words, notes).map_err(Refusal::Syntax)?;
    resolve::resolve(&blocks, notes).map_err(Refusal::Meaning)
}
