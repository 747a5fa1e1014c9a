//! Which file is mapped where in the address space of a process.

use std::collections::HashMap;
use std::sync::Arc;

use super::record::Mapped;

/// Maximum number of ranges of all processes; later ones are unknown.
const RANGES_MAX: usize = 4 << 20;
/// The kernel's own mappings, under the pid that perf gives them.
pub(super) const KERNEL: i32 = -1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    begin: u64,
    end: u64,
    /// File offset of the start.
    offset: u64,
    module: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) path: Vec<u8>,
    pub(super) inode: Option<u64>,
    pub(super) build_id: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(super) struct Maps {
    /// Children share the ranges of their parent until one of them changes.
    of: HashMap<i32, Arc<Vec<Range>>>,
    pub(super) modules: Vec<Module>,
    known: HashMap<(Vec<u8>, Option<u64>), u32>,
    ranges: usize,
}

impl Maps {
    pub(super) fn add(&mut self, mapped: &Mapped<'_>) {
        let end = mapped.begin.saturating_add(mapped.len);
        if self.ranges >= RANGES_MAX || end <= mapped.begin {
            return;
        }
        let module = self.module(mapped);
        let ranges = Arc::make_mut(self.of.entry(mapped.pid).or_default());
        let before = ranges.len();
        insert(
            ranges,
            Range {
                begin: mapped.begin,
                end,
                offset: mapped.offset,
                module,
            },
        );
        self.ranges = (self.ranges + ranges.len()).saturating_sub(before);
    }

    fn module(&mut self, mapped: &Mapped<'_>) -> u32 {
        let key = (mapped.path.to_vec(), mapped.inode);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let number = self.modules.len() as u32;
        self.modules.push(Module {
            path: mapped.path.to_vec(),
            inode: mapped.inode,
            build_id: mapped.build_id.map(<[u8]>::to_vec),
        });
        self.known.insert(key, number);
        number
    }

    /// A child starts with the mappings of its parent.
    pub(super) fn fork(&mut self, parent: i32, child: i32) {
        if let Some(ranges) = self.of.get(&parent).cloned() {
            self.ranges += ranges.len();
            if self.ranges < RANGES_MAX {
                self.of.insert(child, ranges);
            }
        }
    }

    /// The process executed another program, or exited.
    pub(super) fn clear(&mut self, pid: i32) {
        if let Some(ranges) = self.of.remove(&pid) {
            self.ranges = self.ranges.saturating_sub(ranges.len());
        }
    }

    /// File, and offset in it.
    pub(super) fn find(&self, pid: i32, address: u64) -> Option<(u32, u64)> {
        let ranges = self.of.get(&pid)?;
        let next = ranges.partition_point(|range| range.begin <= address);
        let range = ranges[..next].last()?;
        (address < range.end).then(|| {
            let offset = (address - range.begin).wrapping_add(range.offset);
            (range.module, offset)
        })
    }
}

/// Replaces the previous mappings of the range.
fn insert(ranges: &mut Vec<Range>, new: Range) {
    let first = ranges.partition_point(|range| range.end <= new.begin);
    let last = first + ranges[first..].partition_point(|range| range.begin < new.end);
    let mut left = Vec::with_capacity(3);
    if let Some(range) = ranges[first..last].first()
        && range.begin < new.begin
    {
        left.push(Range {
            end: new.begin,
            ..*range
        });
    }
    left.push(new);
    if let Some(range) = ranges[first..last].last()
        && range.end > new.end
    {
        left.push(Range {
            begin: new.end,
            offset: range.offset.wrapping_add(new.end - range.begin),
            ..*range
        });
    }
    ranges.splice(first..last, left);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(begin: u64, len: u64, path: &'static str) -> Mapped<'static> {
        Mapped {
            pid: 1,
            begin,
            len,
            offset: 0x1000,
            inode: None,
            build_id: None,
            path: path.as_bytes(),
        }
    }

    #[test]
    fn the_last_one_covers_what_was_there() {
        let mut maps = Maps::default();
        maps.add(&mapped(100, 100, "a"));
        maps.add(&mapped(140, 20, "b"));
        maps.fork(1, 2);
        maps.add(&mapped(0, 120, "c"));
        let of = |pid, address| {
            let (module, offset) = maps.find(pid, address)?;
            Some((maps.modules[module as usize].path.clone(), offset))
        };
        let is = |path: &str, offset| Some((path.as_bytes().to_vec(), offset));
        assert_eq!(of(1, 110), is("c", 0x1000 + 110));
        assert_eq!(of(1, 130), is("a", 0x1000 + 30));
        assert_eq!(of(1, 140), is("b", 0x1000));
        assert_eq!(of(1, 160), is("a", 0x1000 + 60));
        assert_eq!(of(1, 200), None);
        assert_eq!(of(2, 110), is("a", 0x1000 + 10));
        assert_eq!(of(3, 110), None);
    }

    #[test]
    fn ranges_never_overlap() {
        let mut maps = Maps::default();
        for number in 0..500_u64 {
            let begin = number * 7919 % 1000;
            maps.add(&mapped(begin, 1 + number * 31 % 90, "x"));
            let ranges = &maps.of[&1];
            assert!(ranges.is_sorted_by(|one, next| one.end <= next.begin));
            assert!(ranges.iter().all(|range| range.begin < range.end));
        }
    }
}
