//! Block requests.

use whyslow_model::Ns;

use super::super::columns::{Field, Row};
use super::{Emit, quoted, write_event};

impl Emit {
    pub(super) fn request(
        &mut self,
        row: &Row<'_>,
        context: &str,
        (begin, end): (Ns, Ns),
        out: &mut String,
    ) -> Result<(), String> {
        let disk = row.text(Field::Disk).unwrap_or_default();
        let (major, minor) = device(disk);
        if self.named.insert(disk.to_owned()) {
            let name = quoted(disk);
            write_event(
                begin,
                "",
                format_args!("state_block_device dev={major}:{minor} name={name}"),
                out,
            );
        }
        let bytes = row.int(Field::Bytes).filter(|bytes| *bytes >= 0);
        let bytes = bytes.ok_or("invalid request size")?;
        let sector = row.int(Field::Sector).unwrap_or(0);
        let letters = row.text(Field::Letters).unwrap_or("N");
        let range = format!(
            "dev={major}:{minor} sector={sector} sectors={} bytes={bytes} rwbs={letters}",
            bytes / 512
        );
        let queue = row.scaled(Field::QueueMs, 1e6).filter(|queue| *queue > 0);
        if let Some(queue) = queue {
            write_event(
                begin.saturating_sub(queue),
                context,
                format_args!("block_rq_insert {range}"),
                out,
            );
        }
        write_event(begin, context, format_args!("block_rq_issue {range}"), out);
        write_event(end, "", format_args!("block_rq_complete {range}"), out);
        Ok(())
    }
}

/// Device numbers that the kernel derives from the name are used; others are generated from the
/// name, so that two files refer to the same device.
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
