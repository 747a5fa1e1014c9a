//! Collapsed stacks: one per line, frames from the outermost to the innermost, and the time in ns.
//!
//! `java 812/831;main;read;[k] vfs_read 158092790`. The last space precedes the weight, so names
//! may contain spaces. Semicolons and line ends in names are replaced, since they would be
//! ambiguous.

use std::collections::BTreeMap;
use std::io::Write;

use whyslow_store::Tables;

use crate::ExportError;
use crate::profile::Profile;
use crate::stacks::{About, Frame, FrameKind, StackQuery};

/// Writes the stacks of a query; returns what the reader must know about them.
pub fn write_collapsed(
    tables: &dyn Tables,
    query: &StackQuery,
    out: &mut dyn Write,
) -> Result<About, ExportError> {
    let profile = Profile::read(tables, query)?;
    let mut lines: BTreeMap<String, i64> = BTreeMap::new();
    for ((thread, _, place), weight) in &profile.weights {
        let mut line = word(&profile.threads[*thread].label());
        let stack = profile.callsites.stack(*place);
        for place in &stack {
            line.push(';');
            line.push_str(&frame_word(&profile.callsites.frames[*place]));
        }
        if stack.is_empty() {
            line.push_str(";[no stack]");
        }
        let time = lines.entry(line).or_default();
        *time = time.saturating_add(weight.time);
    }
    for (line, time) in &lines {
        writeln!(out, "{line} {time}")?;
    }
    Ok(profile.about)
}

/// Marks kernel functions as flame graph tools expect, with the suffix `_[k]`.
fn frame_word(frame: &Frame) -> String {
    let name = word(&frame.name);
    if frame.kind == FrameKind::Kernel {
        format!("{name}_[k]")
    } else {
        name
    }
}

/// A name without separators.
fn word(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            ';' => ':',
            c if c.is_control() => '?',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_taken_for_separators() {
        let check = |name: &str, want: &str| assert_eq!(word(name), want);
        check("std::vector<int>::push_back", "std::vector<int>::push_back");
        check("a;b\nc\0d 12", "a:b?c?d 12");
        let frame = |kind| Frame {
            name: "vfs_read".to_owned(),
            module: None,
            kind,
            address: 0,
        };
        assert_eq!(frame_word(&frame(FrameKind::Kernel)), "vfs_read_[k]");
        assert_eq!(frame_word(&frame(FrameKind::User)), "vfs_read");
    }
}
