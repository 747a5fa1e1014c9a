//! Checks that the call frame information of a file terminates.
//!
//! The file is untrusted. Expressions that jump may loop forever, and the evaluator has no limit;
//! the instructions of one function may be as long as the file, and are evaluated for each frame.
//! No compiler emits either, so a file with one of them is not used at all.
//!
//! Checked is what can be reached: with an index, each of its entries, wherever it points;
//! otherwise all consecutive entries.

use std::collections::HashMap;

use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CieOrFde,
    CommonInformationEntry, EhFrame, EhFrameHdr, EhFrameOffset, Encoding, EndianSlice,
    FrameDescriptionEntry, LittleEndian, Operation, UnwindSection as _,
};

use crate::libraries::elf::CallFrames;

type Slice<'b> = EndianSlice<'b, LittleEndian>;
type Cie<'b> = CommonInformationEntry<Slice<'b>>;

/// Maximum bytes of an entry. The longest in a distribution's binaries has 20 KiB, of a compiler's
/// own 33.
const ENTRY_BYTES_MAX: usize = 64 << 10;

/// Whether an index has the only form that linkers emit: four-byte offsets from its start.
pub(super) fn is_usual(header: &[u8]) -> bool {
    const FROM_BEGIN: u8 = 0x30;
    const SIGNED_4: u8 = 0x0b;
    header.get(3) == Some(&(FROM_BEGIN | SIGNED_4))
}

/// Whether everything reachable terminates; `header` is an index that [`is_usual`].
pub(super) fn all(frames: &[u8], header: Option<&[u8]>, at: &CallFrames) -> bool {
    let header_at = at.header.map_or(0, |header| header.address);
    let bases = BaseAddresses::default()
        .set_eh_frame(at.frames.address)
        .set_eh_frame_hdr(if header.is_some() { header_at } else { 0 })
        .set_text(0)
        .set_got(0);
    let mut section = EhFrame::new(frames, LittleEndian);
    section.set_address_size(8);
    let mut check = Check {
        section,
        bases: &bases,
        cies: HashMap::new(),
        left: frames.len(),
    };
    let checked = match header {
        Some(header) => check.by_index(header),
        None => check.one_by_one(),
    };
    checked.is_some()
}

struct Check<'b> {
    section: EhFrame<Slice<'b>>,
    bases: &'b BaseAddresses,
    /// Common information entries, by offset.
    cies: HashMap<usize, Cie<'b>>,
    /// Bytes left: entries that do not overlap have no more in total.
    left: usize,
}

impl<'b> Check<'b> {
    /// `None` if something does not terminate.
    fn by_index(&mut self, header: &'b [u8]) -> Option<()> {
        let index = EhFrameHdr::new(header, LittleEndian).parse(self.bases, 8);
        // Without entries the index finds no function.
        let Ok(index) = index else { return Some(()) };
        let Some(table) = index.table() else {
            return Some(());
        };
        let begin = index.eh_frame_ptr().direct().ok()?;
        let mut offsets = Vec::new();
        let mut rows = table.iter(self.bases);
        while let Ok(Some((_, frame))) = rows.next() {
            let offset = frame.direct().ok()?.checked_sub(begin)?;
            offsets.push(u32::try_from(offset).ok()?);
        }
        offsets.sort_unstable();
        offsets.dedup();
        let section = self.section;
        for offset in offsets {
            let cies = &mut self.cies;
            let found = section.fde_from_offset(
                self.bases,
                EhFrameOffset(offset as usize),
                |section, bases, offset| known(cies, section, bases, offset),
            );
            // An unreadable entry is not evaluated either.
            if let Ok(frame) = found {
                self.frame(&frame)?;
            }
        }
        self.common()
    }

    fn one_by_one(&mut self) -> Option<()> {
        let section = self.section;
        let mut entries = section.entries(self.bases);
        while let Some(entry) = entries.next().ok()? {
            if let CieOrFde::Fde(frame) = entry {
                let cies = &mut self.cies;
                let frame = frame
                    .parse(|section, bases, offset| known(cies, section, bases, offset))
                    .ok()?;
                self.frame(&frame)?;
            }
        }
        self.common()
    }

    fn frame(&mut self, frame: &FrameDescriptionEntry<Slice<'b>>) -> Option<()> {
        self.count(frame.entry_len())?;
        let instructions = frame.instructions(&self.section, self.bases);
        self.instructions(instructions, frame.cie().encoding())
    }

    /// Checks the common information entries.
    fn common(&mut self) -> Option<()> {
        let cies = std::mem::take(&mut self.cies);
        cies.values().try_for_each(|cie| {
            self.count(cie.entry_len())?;
            self.instructions(cie.instructions(&self.section, self.bases), cie.encoding())
        })
    }

    fn count(&mut self, bytes: usize) -> Option<()> {
        self.left = self.left.checked_sub(bytes)?;
        (bytes <= ENTRY_BYTES_MAX).then_some(())
    }

    fn instructions(
        &self,
        mut instructions: CallFrameInstructionIter<'_, Slice<'b>>,
        encoding: Encoding,
    ) -> Option<()> {
        // An invalid instruction ends this loop and the evaluation alike.
        while let Ok(Some(instruction)) = instructions.next() {
            let (CallFrameInstruction::DefCfaExpression { expression }
            | CallFrameInstruction::Expression { expression, .. }
            | CallFrameInstruction::ValExpression { expression, .. }) = instruction
            else {
                continue;
            };
            let mut operations = expression.get(&self.section).ok()?.operations(encoding);
            while let Ok(Some(operation)) = operations.next() {
                if matches!(operation, Operation::Skip { .. } | Operation::Bra { .. }) {
                    return None;
                }
            }
        }
        Some(())
    }
}

fn known<'b>(
    cies: &mut HashMap<usize, Cie<'b>>,
    section: &EhFrame<Slice<'b>>,
    bases: &BaseAddresses,
    offset: EhFrameOffset,
) -> gimli::Result<Cie<'b>> {
    let place = offset.0;
    if let Some(cie) = cies.get(&place) {
        return Ok(cie.clone());
    }
    let cie = section.cie_from_offset(bases, offset)?;
    cies.insert(place, cie.clone());
    Ok(cie)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Instant;

    use whyslow_testkit::{Need, skip};

    use super::*;
    use crate::libraries::elf::{self, Placed, read_up_to};

    /// DW_CFA_def_cfa_expression.
    const BY_EXPRESSION: u8 = 0x0f;
    const SKIP_BACK: [u8; 3] = [0x2f, 0xfd, 0xff];
    const FRAMES_AT: u64 = 0x1000;
    const HEADER_AT: u64 = 0x8000;

    fn entry(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.resize(bytes.len().next_multiple_of(8) + 4, 0);
        let mut entry = (bytes.len() as u32).to_le_bytes().to_vec();
        entry.append(&mut bytes);
        entry
    }

    fn cie(instructions: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b];
        bytes.extend([0x0c, 7, 8, 0x90, 1]);
        bytes.extend(instructions);
        entry(bytes)
    }

    /// An entry of a function, at this offset from the start.
    fn fde(place: usize, instructions: &[u8]) -> Vec<u8> {
        let mut bytes = (place as u32 + 4).to_le_bytes().to_vec();
        bytes.extend((-16_i32).to_le_bytes());
        bytes.extend([16, 0, 0, 0, 0]);
        bytes.extend(instructions);
        entry(bytes)
    }

    fn by_expression(expression: &[u8]) -> Vec<u8> {
        [&[BY_EXPRESSION, expression.len() as u8], expression].concat()
    }

    fn frames(common: &[u8], instructions: &[u8]) -> (Vec<u8>, usize) {
        let cie = cie(common);
        let place = cie.len();
        let fde = fde(place, instructions);
        ([cie, fde, vec![0; 4]].concat(), place)
    }

    fn index(places: &[usize]) -> Vec<u8> {
        let offset = |at: u64| (at as i64 - HEADER_AT as i64) as i32;
        let mut bytes = vec![1, 0x3b, 0x03, 0x3b];
        bytes.extend(offset(FRAMES_AT).to_le_bytes());
        bytes.extend((places.len() as u32).to_le_bytes());
        for place in places {
            bytes.extend(0_i32.to_le_bytes());
            bytes.extend(offset(FRAMES_AT + *place as u64).to_le_bytes());
        }
        bytes
    }

    fn check(frames: &[u8], index: Option<&[u8]>) -> bool {
        let placed = |address, bytes: &[u8]| Placed {
            address,
            offset: 0,
            size: bytes.len() as u64,
        };
        let at = CallFrames::of(
            placed(FRAMES_AT, frames),
            index.map(|index| placed(HEADER_AT, index)),
        );
        all(frames, index, &at)
    }

    #[test]
    fn an_expression_that_jumps_is_of_no_compiler() {
        // The expression of a procedure linkage table, as linkers emit it.
        let plt = by_expression(&[0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22]);
        let jumps = by_expression(&SKIP_BACK);
        let branches = by_expression(&[0x31, 0x28, 0xfc, 0xff]);
        for (common, own, is_right) in [
            (&[][..], &plt[..], true),
            (&[], &jumps, false),
            (&[], &branches, false),
            (&jumps, &[], false),
        ] {
            let (frames, place) = frames(common, own);
            assert_eq!(check(&frames, None), is_right);
            assert_eq!(check(&frames, Some(&index(&[place]))), is_right);
        }
    }

    #[test]
    fn what_only_the_index_leads_to_counts() {
        // Within the instructions of another function, after it.
        let cie = cie(&[]);
        let at = cie.len() + 4 + 13 + 3;
        let hidden = fde(at, &by_expression(&SKIP_BACK));
        let around = [&[0x16, 0, hidden.len() as u8][..], &hidden].concat();
        let frames = [cie.clone(), fde(cie.len(), &around), vec![0; 4]].concat();
        assert_eq!(frames[at..at + hidden.len()], hidden);
        assert!(check(&frames, None));
        assert!(check(&frames, Some(&index(&[cie.len()]))));
        assert!(!check(&frames, Some(&index(&[cie.len(), at]))));
    }

    #[test]
    fn entries_are_as_long_as_functions_have_them() {
        for (bytes, is_right) in [(40 << 10, true), (65 << 10, false)] {
            let (frames, place) = frames(&[], &vec![0x41; bytes]);
            assert_eq!(check(&frames, None), is_right);
            assert_eq!(check(&frames, Some(&index(&[place]))), is_right);
        }
        // Overlapping entries could be any number.
        let (mut frames, place) = frames(&[], &[0; 4000]);
        let mut places = vec![place];
        for at in (place + 100..).step_by(100).take(3) {
            frames[at..at + 4].copy_from_slice(&2000_u32.to_le_bytes());
            frames[at + 4..at + 8].copy_from_slice(&(at as u32 + 4).to_le_bytes());
            places.push(at);
        }
        assert!(check(&frames, Some(&index(&[place, place]))));
        assert!(!check(&frames, Some(&index(&places))));
    }

    #[test]
    fn any_bytes_are_looked_at_to_an_end() {
        let (frames, place) = frames(&by_expression(&[0x77, 8]), &by_expression(&[0x77, 8]));
        let index = index(&[place]);
        for at in 0..frames.len() * 8 {
            let mut bytes = frames.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            check(&bytes, None);
            check(&bytes, Some(&index));
        }
        for at in 0..index.len() * 8 {
            let mut bytes = index.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            if is_usual(&bytes) {
                check(&frames, Some(&bytes));
            }
        }
    }

    #[test]
    fn this_program_is_followed() {
        let file = File::open("/proc/self/exe").expect("it runs");
        let Ok(Some(at)) = elf::call_frames(&file) else {
            return skip(Need::Machine, "this program has no call-frame information");
        };
        let bytes = |placed: Placed| {
            let mut bytes = vec![0; placed.size as usize];
            read_up_to(&file, placed.offset, &mut bytes).expect("it can be read");
            bytes
        };
        let (frames, header) = (bytes(at.frames), at.header.map(bytes));
        let begun = Instant::now();
        assert!(header.as_deref().is_none_or(is_usual));
        assert!(all(&frames, header.as_deref(), &at));
        println!("{} bytes took {:?}", frames.len(), begun.elapsed());
    }
}
