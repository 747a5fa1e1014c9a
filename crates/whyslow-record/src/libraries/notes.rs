//! ELF notes of a program: its USDT probes, and whether it is written in Go.
//!
//! The note of a USDT probe holds its address, that of a reference section (unused), that of a
//! semaphore that counts its users, and three strings: provider, name, arguments.

use std::io;

use super::elf::{Program, u32_at, u64_at};

const NOTE: u32 = 7;
/// Maximum bytes of notes read from a section.
const NOTES_MAX: u64 = 4 << 20;

struct Note<'n> {
    name: &'n [u8],
    kind: u32,
    content: &'n [u8],
}

/// A USDT probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usdt<'n> {
    pub(super) provider: &'n str,
    pub(super) name: &'n str,
    pub(super) args: &'n str,
    /// File offset.
    pub(super) offset: u64,
    /// File offset of the semaphore that counts its users; 0 if there is none.
    pub(super) semaphore: u64,
}

impl Program<'_> {
    fn each_note(&self, each: &mut dyn FnMut(Note<'_>)) -> io::Result<()> {
        for section in self.sections.iter().filter(|section| section.kind == NOTE) {
            let bytes = self.bytes(section, NOTES_MAX)?;
            let mut rest = &bytes[..];
            while let Some((note, after)) = Note::first(rest) {
                each(note);
                rest = after;
            }
        }
        Ok(())
    }

    /// Go moves stacks, and with them the return address of a return probe: the program would
    /// crash.
    pub(super) fn moves_stacks(&self) -> io::Result<bool> {
        let mut is_go = false;
        self.each_note(&mut |note| is_go |= note.name == b"Go")?;
        Ok(is_go)
    }

    /// Calls `each` with every USDT probe.
    pub(super) fn each_usdt(&self, each: &mut dyn FnMut(Usdt<'_>)) -> io::Result<()> {
        const PROBE: u32 = 3;
        self.each_note(&mut |note| {
            if note.name == b"stapsdt"
                && note.kind == PROBE
                && let Some(usdt) = self.usdt(note.content)
            {
                each(usdt);
            }
        })
    }

    fn usdt<'n>(&self, content: &'n [u8]) -> Option<Usdt<'n>> {
        const ADDRESSES: usize = 24;
        let (addresses, texts) = content.split_at_checked(ADDRESSES)?;
        let mut texts = texts.split(|byte| *byte == 0);
        let mut text = || std::str::from_utf8(texts.next()?).ok();
        let mut segments = self.segments.iter();
        let offset = segments.find_map(|segment| segment.offset_of(u64_at(addresses, 0)))?;
        let mut segments = self.segments.iter();
        let semaphore = match u64_at(addresses, 16) {
            0 => 0,
            // A probe whose semaphore stays 0 never fires.
            address => segments.find_map(|segment| segment.place_of(address))?,
        };
        Some(Usdt {
            provider: text()?,
            name: text()?,
            args: text()?,
            offset,
            semaphore,
        })
    }
}

impl<'n> Note<'n> {
    /// The first note, and the bytes after it.
    fn first(bytes: &'n [u8]) -> Option<(Self, &'n [u8])> {
        const HEAD: usize = 12;
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        let (name_size, size) = (u32_at(head, 0) as usize, u32_at(head, 4) as usize);
        let padded = |size: usize| size.checked_next_multiple_of(4);
        let (name, rest) = rest.split_at_checked(padded(name_size)?)?;
        let after = rest.get(padded(size)?..).unwrap_or(&[]);
        let note = Self {
            name: name[..name_size].split(|byte| *byte == 0).next()?,
            kind: u32_at(head, 8),
            content: rest.get(..size)?,
        };
        Some((note, after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_follow_each_other() {
        let mut bytes = Vec::new();
        for (name, content) in [(&b"Go\0"[..], &b"abcde"[..]), (b"stapsdt\0", b"x")] {
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend((content.len() as u32).to_le_bytes());
            bytes.extend(3u32.to_le_bytes());
            for part in [name, content] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
        }
        let (note, rest) = Note::first(&bytes).expect("a note");
        assert_eq!(
            (note.name, note.kind, note.content),
            (&b"Go"[..], 3, &b"abcde"[..])
        );
        let (note, rest) = Note::first(rest).expect("another one");
        assert_eq!(
            (note.name, note.content, rest),
            (&b"stapsdt"[..], &b"x"[..], &b""[..])
        );
        for end in 0..bytes.len() {
            let _ = Note::first(&bytes[..end]);
        }
        assert!(Note::first(&[0xff; 64]).is_none());
    }
}
