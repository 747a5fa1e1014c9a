//! Interpreter stacks as part of wall-clock stacks.
//!
//! The native frames below which the innermost function waits stay on top: kernel, library, and the
//! interpreter's own code for that call. They are followed by the functions that led there, in
//! place of the interpreter's loop and of all its callers.

use super::Runtimes;
use crate::wall::{ManagedFrame, Part, Walker};

impl Walker for Runtimes {
    fn walk(&mut self, pid: i32, tid: i32, native: &[u64]) -> Option<Vec<Part>> {
        let merged = self.thread(pid, tid, native)?;
        let mut parts: Vec<Part> = (0..merged.native).map(Part::Native).collect();
        let stack = match merged.found {
            Ok(stack) => stack,
            Err(why) => {
                parts.push(Part::Managed(ManagedFrame::instead(why)));
                return Some(parts);
            }
        };
        parts.extend(stack.frames.iter().filter_map(|frame| {
            let function = merged.names.get(frame.function)?;
            Some(Part::Managed(ManagedFrame {
                function: function.name.clone().into_bytes(),
                file: function.file.clone().into_bytes(),
                line: i32::try_from(frame.line).ok().filter(|line| *line > 0),
            }))
        }));
        if stack.is_cut {
            parts.push(Part::Managed(ManagedFrame::instead("(cut)")));
        }
        Some(parts)
    }
}
