//! Integers and texts of a header, in the byte order of the recording machine. Sizes in the file
//! are checked against what is left of it before memory is allocated.

use std::io::{self, Read};

use super::TraceDatError;

/// Maximum length of NUL-terminated names and texts.
const TEXT_BYTES_MAX: u64 = 1 << 16;

pub(super) struct FieldReader<R> {
    from: R,
    pub(super) is_big_endian: bool,
    /// Offset of the next byte in the file, or in the decompressed section.
    pub(super) at: u64,
    end: u64,
}

type Done<T> = Result<T, TraceDatError>;

impl<R: Read> FieldReader<R> {
    /// `end` is the end of the file, or of the section.
    pub(super) fn new(from: R, is_big_endian: bool, at: u64, end: u64) -> Self {
        Self {
            from,
            is_big_endian,
            at,
            end,
        }
    }

    pub(super) fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    fn cut(&self) -> TraceDatError {
        TraceDatError::Cut { at: self.at }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Done<[u8; N]> {
        let mut bytes = [0; N];
        if self.left() < N as u64 {
            return Err(self.cut());
        }
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Done<()> {
        self.from.read_exact(bytes).map_err(|error| match error {
            error if error.kind() == io::ErrorKind::UnexpectedEof => self.cut(),
            error => TraceDatError::Io(error),
        })?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn u16(&mut self) -> Done<u16> {
        let bytes = self.array()?;
        Ok(if self.is_big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    }

    pub(super) fn u32(&mut self) -> Done<u32> {
        let bytes = self.array()?;
        Ok(if self.is_big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    pub(super) fn u64(&mut self) -> Done<u64> {
        let bytes = self.array()?;
        Ok(if self.is_big_endian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    }

    pub(super) fn bytes(&mut self, count: u64) -> Done<Vec<u8>> {
        if count > self.left() {
            return Err(self.cut());
        }
        let mut bytes = vec![0; usize::try_from(count).map_err(|_| self.cut())?];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// At most `max` bytes of `count`; the rest is skipped.
    pub(super) fn bytes_up_to(&mut self, count: u64, max: u64) -> Done<Vec<u8>> {
        let bytes = self.bytes(count.min(max))?;
        self.skip(count - bytes.len() as u64)?;
        Ok(bytes)
    }

    pub(super) fn skip(&mut self, count: u64) -> Done<()> {
        if count > self.left() {
            return Err(self.cut());
        }
        let skipped = io::copy(&mut self.from.by_ref().take(count), &mut io::sink());
        let skipped = skipped.map_err(TraceDatError::Io)?;
        self.at += skipped;
        if skipped < count {
            return Err(self.cut());
        }
        Ok(())
    }

    /// Characters up to a NUL.
    pub(super) fn text(&mut self) -> Done<String> {
        let mut text = Vec::new();
        let begin = self.at;
        loop {
            match self.array()? {
                [0] => return Ok(String::from_utf8_lossy(&text).into_owned()),
                [byte] => text.push(byte),
            }
            if self.at - begin > TEXT_BYTES_MAX {
                return Err(TraceDatError::Strange {
                    at: begin,
                    what: "unterminated name",
                });
            }
        }
    }

    /// Checks the next bytes.
    pub(super) fn expect(&mut self, wanted: &[u8], what: &'static str) -> Done<()> {
        let at = self.at;
        let found = self.bytes(wanted.len() as u64)?;
        if found == wanted {
            Ok(())
        } else {
            Err(TraceDatError::Strange { at, what })
        }
    }
}
