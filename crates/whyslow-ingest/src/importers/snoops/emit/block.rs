//! Requests of block devices.

use whyslow_model::Ns;

use super::super::columns::{Field, Row};
use super::{Emit, quoted, say};

impl Emit {
    pub(super) fn request(
        &mut self,
        row: &Row<'_>,
        who: &str,
        (begin, end): (Ns, Ns),
        out: &mut String,
    ) -> Result<(), String> {
        let disk = row.text(Field::Disk).unwrap_or_default();
        let (major, minor) = device(disk);
        if self.named.insert(disk.to_owned()) {
            let name = quoted(disk);
            say(
                begin,
                "",
                format_args!("state_block_device dev={major}:{minor} name={name}"),
                out,
            );
        }
        let bytes = row.int(Field::Bytes).filter(|bytes| *bytes >= 0);
        let bytes = bytes.ok_or("no bytes that a request can have")?;
        let sector = row.int(Field::Sector).unwrap_or(0);
        let letters = row.text(Field::Letters).unwrap_or("N");
        let range = format!(
            "dev={major}:{minor} sector={sector} sectors={} bytes={bytes} rwbs={letters}",
            bytes / 512
        );
        let queue = row.scaled(Field::QueueMs, 1e6).filter(|queue| *queue > 0);
        if let Some(queue) = queue {
            say(
                begin.saturating_sub(queue),
                who,
                format_args!("block_rq_insert {range}"),
                out,
            );
        }
        say(begin, who, format_args!("block_rq_issue {range}"), out);
        say(end, "", format_args!("block_rq_complete {range}"), out);
        Ok(())
    }
}

/// Numbers that the kernel gives where they are fixed by the name; others are made from the name, so
/// that two files mean the same device.
fn device(name: &str) -> (u32, u32) {
    if let Some(letter) = name.strip_prefix("sd").filter(|rest| rest.len() == 1) {
        let letter = letter.as_bytes()[0];
        if (b'a'..=b'p').contains(&letter) {
            return (8, u32::from(letter - b'a') * 16);
        }
    }
    for (before, major) in [("loop", 7), ("md", 9)] {
        let number = name
            .strip_prefix(before)
            .and_then(|rest| rest.parse::<u32>().ok());
        if let Some(number) = number.filter(|number| *number < 1 << 20) {
            return (major, number);
        }
    }
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    (4095, hash >> 12)
}
