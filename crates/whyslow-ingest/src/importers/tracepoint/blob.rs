//! Event formats as embedded by perf and trace-cmd: the tracing data of a perf.data file, the
//! header of a trace.dat file.

use super::format::Format;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Maximum length of useful texts.
const TEXT_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
pub(in crate::importers) struct Blob {
    pub(in crate::importers) is_big_endian: bool,
    pub(in crate::importers) formats: Vec<Format>,
}

struct Cursor<'b> {
    bytes: &'b [u8],
    is_big_endian: bool,
}

impl<'b> Cursor<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(if self.is_big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    /// Bytes prefixed with their length.
    fn sized(&mut self) -> Option<&'b [u8]> {
        let bytes = self.take(8)?.try_into().ok()?;
        let size = if self.is_big_endian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        };
        self.take(usize::try_from(size).ok()?)
    }

    fn text(&mut self) -> Option<&'b [u8]> {
        let end = self.bytes.iter().position(|byte| *byte == 0)?;
        let text = &self.bytes[..end];
        self.bytes = &self.bytes[end + 1..];
        Some(text)
    }
}

impl Blob {
    /// Parses up to the end or the first error.
    pub(in crate::importers) fn parse(bytes: &[u8]) -> Self {
        let mut blob = Self::default();
        if let Some(bytes) = bytes.strip_prefix(MAGIC) {
            let _ = blob.read(Cursor {
                bytes,
                is_big_endian: false,
            });
        }
        blob
    }

    fn read(&mut self, mut cursor: Cursor<'_>) -> Option<()> {
        let _version = cursor.text()?;
        self.is_big_endian = cursor.take(1)? == [1];
        cursor.is_big_endian = self.is_big_endian;
        let _long_size = cursor.take(1)?;
        let _page_size = cursor.word()?;
        for name in [&b"header_page"[..], b"header_event"] {
            if cursor.text()? != name {
                return None;
            }
            cursor.sized()?;
        }
        for _ in 0..cursor.word()? {
            self.add("ftrace", cursor.sized()?);
        }
        for _ in 0..cursor.word()? {
            let system = String::from_utf8_lossy(cursor.text()?).into_owned();
            for _ in 0..cursor.word()? {
                self.add(&system, cursor.sized()?);
            }
        }
        Some(())
    }

    fn add(&mut self, system: &str, text: &[u8]) {
        let text = &text[..text.len().min(TEXT_BYTES_MAX)];
        let text = String::from_utf8_lossy(text);
        self.formats.extend(Format::parse(system, &text));
    }
}

#[cfg(test)]
pub(in crate::importers) mod tests {
    use super::*;

    /// A blob with these events, for tests.
    pub(in crate::importers) fn made(formats: &[(&str, &str)]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(b"0.6\0\x00\x08");
        out.extend(4096_u32.to_le_bytes());
        for name in ["header_page", "header_event"] {
            out.extend(name.as_bytes());
            out.push(0);
            out.extend(0_u64.to_le_bytes());
        }
        out.extend(0_u32.to_le_bytes());
        out.extend((formats.len() as u32).to_le_bytes());
        for (system, format) in formats {
            out.extend(system.as_bytes());
            out.push(0);
            out.extend(1_u32.to_le_bytes());
            out.extend((format.len() as u64).to_le_bytes());
            out.extend(format.as_bytes());
        }
        out.extend([0; 16]);
        out
    }

    #[test]
    fn formats_are_found_up_to_where_it_ends() {
        let bytes = made(&[("sched", "name: a\nID: 1\n"), ("block", "name: b\nID: 2\n")]);
        let blob = Blob::parse(&bytes);
        let names: Vec<&str> = blob
            .formats
            .iter()
            .map(|format| format.name.as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
        for end in 0..bytes.len() {
            assert!(Blob::parse(&bytes[..end]).formats.len() <= 2);
        }
    }
}
