//! Memory mappings of a process, from `/proc/PID/maps`: the file of an address without a symbol.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

/// An address range and what is mapped there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    begin: u64,
    end: u64,
    is_code: bool,
    /// File offset of `begin`.
    offset: u64,
    /// Inode of the file, 0 if there is none.
    inode: u64,
    /// Path, or a name like `[vdso]`.
    what: Vec<u8>,
}

impl Mapping {
    fn code(&self) -> Option<Code<'_>> {
        self.is_code.then(|| Code {
            range: self.begin..self.end,
            offset: self.offset,
            inode: self.inode,
            path: &self.what,
        })
    }
}

/// Mappings in address order. Further mappings and text beyond the limit are ignored.
const MAPPINGS_MAX: usize = 1 << 16;
const TEXT_MAX: u64 = 8 << 20;

/// An executable address range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Code<'m> {
    pub(crate) range: Range<u64>,
    /// File offset of its start.
    pub(crate) offset: u64,
    /// 0 if it is not a file.
    pub(crate) inode: u64,
    pub(crate) path: &'m [u8],
}

#[derive(Debug, Default)]
pub(crate) struct Maps(Vec<Mapping>);

impl Maps {
    pub(crate) fn of(pid: i32) -> Self {
        let path = Path::new("/proc").join(pid.to_string()).join("maps");
        let mut text = Vec::new();
        let read = File::open(path).and_then(|maps| maps.take(TEXT_MAX).read_to_end(&mut text));
        // What was read before an error is valid.
        let _ = read;
        Self::parse(&text)
    }

    fn parse(text: &[u8]) -> Self {
        let lines = text.split(|byte| *byte == b'\n');
        let mut mappings: Vec<Mapping> = lines.filter_map(line).take(MAPPINGS_MAX).collect();
        mappings.sort_unstable_by_key(|mapping| mapping.begin);
        Self(mappings)
    }

    fn at(&self, address: u64) -> Option<&Mapping> {
        let after = self.0.partition_point(|mapping| mapping.begin <= address);
        let mapping = self.0.get(after.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }

    /// All executable mappings, in address order.
    pub(crate) fn code(&self) -> impl Iterator<Item = Code<'_>> {
        self.0.iter().filter_map(Mapping::code)
    }

    pub(crate) fn code_at(&self, address: u64) -> Option<Code<'_>> {
        self.at(address)?.code()
    }

    /// The file at the address: its identity, and its name in `map_files`.
    pub(crate) fn file(&self, address: u64) -> Option<((u64, &[u8]), String)> {
        let mapping = self.at(address).filter(|mapping| mapping.inode != 0)?;
        let range = format!("{:x}-{:x}", mapping.begin, mapping.end);
        Some(((mapping.inode, &mapping.what), range))
    }

    /// Path and offset of what is mapped at the address; `None` if it has no name.
    pub(crate) fn find(&self, address: u64) -> Option<(&[u8], u64)> {
        let mapping = self
            .at(address)
            .filter(|mapping| !mapping.what.is_empty())?;
        let place = (address - mapping.begin).checked_add(mapping.offset)?;
        Some((&mapping.what, place))
    }
}

/// `7f0c-7f0d r-xp 00001000 08:01 42     /usr/lib/libc.so.6`
fn line(line: &[u8]) -> Option<Mapping> {
    let mut words = line.splitn(6, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let (begin, end) = word()?.split_once('-')?;
    let (rights, offset) = (word()?, word()?);
    let (_, inode) = (word()?, word()?);
    let what = words.next().unwrap_or_default();
    Some(Mapping {
        begin: u64::from_str_radix(begin, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        is_code: rights.contains('x'),
        offset: u64::from_str_radix(offset, 16).ok()?,
        inode: inode.parse().ok()?,
        what: what.trim_ascii_start().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_its_file() {
        let maps = Maps::parse(
            b"7f0c00001000-7f0c00003000 r-xp 00004000 08:01 42      /usr/lib/a b.so\n\
              7f0c00003000-7f0c00004000 rw-p 00000000 00:00 0 \n\
              nonsense\nff-\n-1-zz r 0 0 0 x\n\
              7f0c00005000-7f0c00006000 r-xp 00000000 00:00 0      [vdso]\n",
        );
        assert_eq!(
            maps.find(0x7f0c_0000_1010),
            Some((&b"/usr/lib/a b.so"[..], 0x4010))
        );
        assert_eq!(maps.find(0x7f0c_0000_5001), Some((&b"[vdso]"[..], 1)));
        let file = maps.file(0x7f0c_0000_2fff).expect("one");
        assert_eq!(file.0, (42, &b"/usr/lib/a b.so"[..]));
        assert_eq!(file.1, "7f0c00001000-7f0c00003000");
        assert_eq!(maps.file(0x7f0c_0000_5001), None);
        for address in [0, 0x7f0c_0000_3000, 0x7f0c_0000_4fff, u64::MAX] {
            assert_eq!(maps.find(address), None, "{address:x}");
        }
    }

    #[test]
    fn this_process_has_mappings() {
        let maps = Maps::of(std::process::id() as i32);
        let here = Maps::of as *const () as usize as u64;
        assert!(maps.find(here).is_some());
    }
}
