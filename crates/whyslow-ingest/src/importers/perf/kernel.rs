//! Whether the recorded kernel is the running one: symbols of another kernel would be wrong.
//!
//! The load address is not enough: without KASLR (`nokaslr`, and many virtual machines) all kernels
//! start at the same address. So the release must be the same, and the build id if the file has
//! one.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};

const KALLSYMS: &str = "/proc/kallsyms";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const NOTES: &str = "/sys/kernel/notes";

/// What a file states about the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recorded<'t> {
    /// A symbol and its address.
    pub(super) begin: (&'t str, u64),
    pub(super) release: Option<&'t str>,
    pub(super) build_id: Option<&'t [u8]>,
}

/// The same of the running kernel.
#[derive(Debug, Clone, Default)]
struct Running {
    /// Address of that symbol.
    begin: Option<u64>,
    release: String,
    build_id: Option<Vec<u8>>,
}

impl Recorded<'_> {
    pub(super) fn runs_here(&self) -> bool {
        let notes = fs::read(NOTES).unwrap_or_default();
        let release = fs::read_to_string(RELEASE).unwrap_or_default();
        self.is(&Running {
            begin: address_of(self.begin.0),
            release: release.trim_end().to_owned(),
            build_id: build_id(&notes).map(<[u8]>::to_vec),
        })
    }

    fn is(&self, running: &Running) -> bool {
        let is_id = match (self.build_id, &running.build_id) {
            (Some(recorded), Some(id)) => Some(recorded == id),
            _ => None,
        };
        let is_release = self.release.map(|release| release == running.release);
        // At least one of them is known, and neither contradicts.
        running.begin == Some(self.begin.1)
            && (is_id.is_some() || is_release.is_some())
            && is_id != Some(false)
            && is_release != Some(false)
    }
}

fn address_of(symbol: &str) -> Option<u64> {
    let file = File::open(KALLSYMS).ok()?;
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        let mut words = line.split(' ');
        if let (Some(at), Some(_), Some(name)) = (words.next(), words.next(), words.next())
            && name == symbol
        {
            // Without the privilege to see addresses, all are zero.
            return u64::from_str_radix(at, 16).ok().filter(|at| *at != 0);
        }
    }
    None
}

/// Finds the build id in ELF notes: sizes of name and text, a type, then name and text, each padded
/// to whole words.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const HEAD: usize = 12;
    const BUILD_ID: u32 = 3;
    loop {
        let (head, rest) = notes.split_at_checked(HEAD)?;
        let mut words = head
            .chunks_exact(4)
            .map(|word| word.try_into().map(u32::from_ne_bytes).unwrap_or_default());
        let (name_len, len, kind) = (words.next()?, words.next()?, words.next()?);
        let (name_len, len) = (name_len as usize, len as usize);
        let (name, rest) = rest.split_at_checked(name_len.next_multiple_of(4))?;
        let id = rest.get(..len)?;
        if kind == BUILD_ID && name.starts_with(b"GNU\0") {
            return Some(id);
        }
        notes = rest.get(len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_at_the_same_place_may_be_another_one() {
        let running = Running {
            begin: Some(0xffff_ffff_8100_0000),
            release: "6.12.1".to_owned(),
            build_id: Some(vec![7; 20]),
        };
        let recorded = |at, release, build_id| Recorded {
            begin: ("_text", at),
            release,
            build_id,
        };
        let at = 0xffff_ffff_8100_0000;
        let (same, other) = ([7; 20], [8; 20]);
        let (same_release, wrong) = (Some("6.12.1"), Some("6.1.0"));
        for (is, of) in [
            (true, recorded(at, same_release, Some(&same[..]))),
            (true, recorded(at, same_release, None)),
            (true, recorded(at, None, Some(&same[..]))),
            (false, recorded(at + 4096, same_release, Some(&same[..]))),
            (false, recorded(at, same_release, Some(&other[..]))),
            (false, recorded(at, wrong, Some(&same[..]))),
            (false, recorded(at, wrong, None)),
            (false, recorded(at, None, None)),
        ] {
            assert_eq!(of.is(&running), is, "{of:?}");
        }
    }

    #[test]
    fn notes_may_be_anything() {
        let note = |name: &[u8], kind: u32, text: &[u8]| {
            let mut note = Vec::new();
            for number in [name.len() as u32, text.len() as u32, kind] {
                note.extend(number.to_ne_bytes());
            }
            for part in [name, text] {
                note.extend(part);
                note.resize(note.len().next_multiple_of(4), 0);
            }
            note
        };
        let notes = [note(b"Linux\0", 257, b"\x01"), note(b"GNU\0", 3, &[7; 20])].concat();
        assert_eq!(build_id(&notes), Some(&[7; 20][..]));
        for end in 0..notes.len() {
            assert_eq!(build_id(&notes[..end]), None, "{end}");
        }
        assert_eq!(build_id(&[0xff; 64]), None);
    }
}
