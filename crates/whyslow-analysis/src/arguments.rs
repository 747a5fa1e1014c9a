//! Formats the arguments of a system call in one line, like strace: `3</etc/passwd>, 4096`.
//!
//! Only recorded data is shown: file descriptors and what they refer to, paths as resolved, the
//! requested size, the offset, and flags by name. Buffers, addresses and the like are not recorded.
//! The descriptor that an opening call returns is its result, not an argument.

use std::fmt::Write as _;

use arrow_array::RecordBatch;
use whyslow_model::syscall::Op;

use crate::AnalysisError;
use crate::flags::{self, Machine};
use crate::scan::{ColumnRef, Projection};

pub(crate) struct Arguments {
    machine: Machine,
    texts: [ColumnRef; 4],
    ints: [ColumnRef; 6],
}

impl Arguments {
    pub(crate) fn new(machine: Machine, projection: &mut Projection) -> Self {
        let texts = ["name", "op", "path", "path2"];
        let ints = [
            "fd",
            "fd2",
            "bytes_requested",
            "file_offset",
            "flags",
            "ret",
        ];
        Self {
            machine,
            texts: texts.map(|name| projection.need(name)),
            ints: ints.map(|name| projection.need(name)),
        }
    }

    pub(crate) fn read(
        &self,
        batch: &RecordBatch,
        rows: impl Iterator<Item = u32>,
    ) -> Result<Vec<String>, AnalysisError> {
        let [name, op, path, path2] = self.texts;
        let (name, op) = (name.texts(batch)?, op.texts(batch)?);
        let (path, path2) = (path.texts(batch)?, path2.texts(batch)?);
        let [fd, fd2, size, offset, flags, ret] = self.ints;
        let (fd, fd2) = (fd.ints(batch)?, fd2.ints(batch)?);
        let (size, offset) = (size.ints(batch)?, offset.ints(batch)?);
        let (flags, ret) = (flags.ints(batch)?, ret.ints(batch)?);
        let shown = |row: u32| {
            let call = name.get(row).unwrap_or_default();
            let opens = op.get(row).and_then(Op::by_name) == Some(Op::Open);
            // The descriptor of an opening call is its result; that of dup, connect and bind is an
            // argument.
            let is_result = opens && fd.get(row).is_some() && fd.get(row) == ret.get(row);
            let mut text = String::new();
            object(&mut text, fd.get(row).filter(|_| !is_result), path.get(row));
            object(&mut text, fd2.get(row), path2.get(row));
            if let Some(size) = size.get(row) {
                push(&mut text, &size.to_string());
            }
            if let Some(flags) = flags.get(row) {
                push(&mut text, &flags::shown(call, flags, self.machine));
            }
            if let Some(offset) = offset.get(row) {
                push(&mut text, &format!("offset {offset}"));
            }
            text
        };
        Ok(rows.map(shown).collect())
    }
}

fn push(text: &mut String, argument: &str) {
    if !text.is_empty() {
        text.push_str(", ");
    }
    text.push_str(argument);
}

/// `3</etc/passwd>` for a file descriptor, `"/etc/passwd"` for a path.
fn object(text: &mut String, fd: Option<i64>, path: Option<&str>) {
    let mut argument = String::new();
    match (fd, path) {
        (Some(fd), Some(path)) => {
            let _ = write!(argument, "{fd}<{path}>");
        }
        (Some(fd), None) => argument = fd.to_string(),
        (None, Some(path)) => {
            let _ = write!(argument, "\"{path}\"");
        }
        (None, None) => return,
    }
    push(text, &argument);
}
