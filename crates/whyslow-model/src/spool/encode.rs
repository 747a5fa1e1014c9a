//! Encoding of records, for those that the recorder itself creates and for tests.

use super::record::{HEAD_BYTES, Kind};

/// Maximum size of a record: its length is stored in two bytes.
const RECORD_MAX: usize = 0xff00;

/// Appends records to a payload.
#[derive(Debug, Default)]
pub struct Encoder {
    payload: Vec<u8>,
    begin: usize,
    records: u32,
}

impl Encoder {
    /// Starts a record of a thread with a timestamp.
    pub fn begin(&mut self, kind: Kind, ts: u64, (pid, tid): (i32, i32)) -> &mut Self {
        self.begin_on(kind, ts, (pid, tid), (0, 0))
    }

    /// Starts a record on a CPU, with flags.
    pub fn begin_on(
        &mut self,
        kind: Kind,
        ts: u64,
        (pid, tid): (i32, i32),
        (cpu, flags): (u16, u16),
    ) -> &mut Self {
        self.begin = self.payload.len();
        self.u16(kind as u16).u16(0).u16(cpu).u16(flags);
        self.u64(ts).u32(tid as u32).u32(pid as u32)
    }

    /// Appends two bytes, little-endian.
    pub fn u16(&mut self, number: u16) -> &mut Self {
        self.payload.extend(number.to_le_bytes());
        self
    }

    /// Appends four bytes, little-endian.
    pub fn u32(&mut self, number: u32) -> &mut Self {
        self.payload.extend(number.to_le_bytes());
        self
    }

    /// Appends eight bytes, little-endian.
    pub fn u64(&mut self, number: u64) -> &mut Self {
        self.payload.extend(number.to_le_bytes());
        self
    }

    /// Appends a text, truncated to the space in the record.
    pub fn text(&mut self, text: &[u8]) -> &mut Self {
        let room = RECORD_MAX.saturating_sub(self.payload.len() - self.begin + 4);
        let text = &text[..text.len().min(room)];
        self.u32(text.len() as u32);
        self.payload.extend(text);
        self
    }

    /// Appends sixteen bytes, the size of the kernel's thread names.
    pub fn comm(&mut self, comm: &[u8]) -> &mut Self {
        let mut name = [0; 16];
        let length = comm.len().min(15);
        name[..length].copy_from_slice(&comm[..length]);
        self.payload.extend(name);
        self
    }

    /// Completes the record: pads it to a multiple of 8 bytes and writes its length into its head.
    pub fn end(&mut self) {
        let length = self.payload.len() - self.begin;
        self.payload
            .resize(self.begin + length.next_multiple_of(8), 0);
        let length = (self.payload.len() - self.begin) as u16;
        debug_assert!(usize::from(length) >= HEAD_BYTES);
        self.payload[self.begin + 2..self.begin + 4].copy_from_slice(&length.to_le_bytes());
        self.records += 1;
    }

    /// Appends a record from the kernel unchanged.
    pub fn copy(&mut self, record: &[u8]) {
        self.payload.extend(record);
        self.records += 1;
    }

    /// Appends all records of another encoder.
    pub fn append(&mut self, other: &Encoder) {
        self.payload.extend(&other.payload);
        self.records += other.records;
    }

    /// The bytes of all records; complete only if [`Encoder::end`] was called last.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Number of complete records.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Removes all records and keeps the memory.
    pub fn clear(&mut self) {
        self.payload.clear();
        self.records = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Record, RecordError, records};
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_and_damage_ends_them() {
        let mut encoder = Encoder::default();
        encoder
            .begin(Kind::Fd, 5, (10, 11))
            .u32(3)
            .u64(0o2)
            .text(b"/var/log/a\xff")
            .end();
        encoder
            .begin_on(Kind::Comm, 6, (10, 12), (2, 1))
            .u32(12)
            .u32(10)
            .comm(b"worker")
            .end();
        let found: Vec<_> = records(encoder.payload()).collect();
        let [
            (0, Ok((fd, Record::Fd { fd: 3, path, .. }))),
            (_, Ok((head, Record::Comm(task)))),
        ] = found.as_slice()
        else {
            panic!("{found:?}");
        };
        assert_eq!(
            (fd.ts, fd.pid, fd.tid, *path),
            (5, 10, 11, &b"/var/log/a\xff"[..])
        );
        assert_eq!((head.cpu, head.flags, task.comm), (2, 1, &b"worker"[..]));
        for end in 1..encoder.payload().len() {
            let damaged = records(&encoder.payload()[..end]).last();
            if end != usize::from(fd.len) {
                assert!(
                    matches!(damaged, Some((_, Err(RecordError::Length(_))))),
                    "{end}"
                );
            }
        }
    }

    #[test]
    fn a_text_is_cut_to_the_room_there_is() {
        let mut encoder = Encoder::default();
        let long = vec![b'x'; 100_000];
        let mut record = encoder.begin(Kind::Process, 0, (1, 1));
        record = record.u32(0).u32(0).u64(0).u32(0);
        record.text(&long).text(b"a").text(b"b").end();
        let found: Vec<_> = records(encoder.payload()).collect();
        let [(0, Ok((_, Record::Process { executable, .. })))] = found.as_slice() else {
            panic!("{:?}", found.len());
        };
        assert!(executable.len() > 65_000);
    }
}
