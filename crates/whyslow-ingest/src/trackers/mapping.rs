//! Memory mappings, from mmap to the munmap of the last part.
//!
//! A mapping is one row, whatever is removed from it: `munmap` of a part, or a new mapping over a
//! part (the dynamic linker places libraries like this), leaves segments that share the row. It
//! ends with its last segment, with exec or with exit. Only calls create rows; mappings copied by a
//! fork have none.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::stat;
use whyslow_model::tables::{EmitAll, MappingRow};

use super::fd::Owner;
use super::identity::Output;

/// Maximum number of segments of all processes; the rows of further mappings have no end.
const SEGMENTS_MAX: usize = 1_000_000;

#[derive(Debug, Clone, Copy)]
struct Segment {
    bytes: u64,
    mapping: u32,
}

#[derive(Debug)]
struct Mapping {
    row: MappingRow,
    segments: u32,
}

#[derive(Debug, Default)]
pub(super) struct Mappings {
    spaces: FxHashMap<Owner, BTreeMap<u64, Segment>>,
    rows: Vec<Option<Mapping>>,
    free: Vec<u32>,
    segments: usize,
    next_id: i64,
}

impl Mappings {
    /// Adds a mapping, which replaces existing ones in its range. Assigns the id of `row`.
    pub(super) fn map<S: EmitAll>(
        &mut self,
        owner: Owner,
        mut row: MappingRow,
        out: &mut Output<'_, S>,
    ) {
        let (address, bytes) = (row.address as u64, row.bytes.max(0) as u64);
        self.unmap(owner, (address, bytes), row.ts, out);
        row.id = self.next_id;
        self.next_id += 1;
        if self.segments >= SEGMENTS_MAX || bytes == 0 {
            if bytes > 0 {
                out.anomalies.count(&stat::MAP_LIMIT, row.ts);
            }
            out.sink.emit(row);
            return;
        }
        let mapping = Some(Mapping { row, segments: 0 });
        let index = if let Some(index) = self.free.pop() {
            self.rows[index as usize] = mapping;
            index
        } else {
            self.rows.push(mapping);
            (self.rows.len() - 1) as u32 // bounded by SEGMENTS_MAX
        };
        self.put(owner, address, bytes, index);
    }

    /// Removes a range.
    pub(super) fn unmap<S: EmitAll>(
        &mut self,
        owner: Owner,
        (address, bytes): (u64, u64),
        ts: Ns,
        out: &mut Output<'_, S>,
    ) {
        let end = address.saturating_add(bytes);
        while let Some((start, segment)) = self.overlapping(owner, address, end) {
            self.take(owner, start);
            let segment_end = start.saturating_add(segment.bytes);
            if start < address {
                self.put(owner, start, address - start, segment.mapping);
            }
            if segment_end > end {
                self.put(owner, end, segment_end - end, segment.mapping);
            }
            self.release(segment.mapping, ts, out);
        }
    }

    /// `mremap`: moves the mapping at the old address to the new one, with a new length.
    pub(super) fn remap<S: EmitAll>(
        &mut self,
        owner: Owner,
        (old, old_bytes): (u64, u64),
        (new, new_bytes): (u64, u64),
        ts: Ns,
        out: &mut Output<'_, S>,
    ) {
        let found = self.overlapping(owner, old, old.saturating_add(1));
        let mapping = found.map(|(_, segment)| segment.mapping);
        // Keep it alive: its only segment may be the one that moves.
        if let Some(mapping) = mapping {
            self.hold(mapping);
        }
        self.unmap(owner, (old, old_bytes), ts, out);
        self.unmap(owner, (new, new_bytes), ts, out);
        if let Some(mapping) = mapping {
            if new_bytes > 0 {
                self.put(owner, new, new_bytes, mapping);
            }
            self.drop_segment(mapping);
            self.release(mapping, ts, out);
        }
    }

    /// A thread turned out to belong to a process.
    pub(super) fn join(&mut self, from: Owner, to: Owner) {
        for (address, segment) in self.spaces.remove(&from).unwrap_or_default() {
            self.take(to, address);
            self.spaces.entry(to).or_default().insert(address, segment);
        }
    }

    /// Exec or exit: removes all mappings.
    pub(super) fn clear<S: EmitAll>(&mut self, owner: Owner, ts: Ns, out: &mut Output<'_, S>) {
        for segment in self.spaces.remove(&owner).unwrap_or_default().into_values() {
            self.segments -= 1;
            self.drop_segment(segment.mapping);
            self.release(segment.mapping, ts, out);
        }
    }

    pub(super) fn finish<S: EmitAll>(&mut self, out: &mut Output<'_, S>) {
        self.spaces.clear();
        for mapping in std::mem::take(&mut self.rows).into_iter().flatten() {
            out.sink.emit(mapping.row);
        }
    }

    /// The first segment that overlaps the range.
    fn overlapping(&self, owner: Owner, address: u64, end: u64) -> Option<(u64, Segment)> {
        let space = self.spaces.get(&owner)?;
        let before = space.range(..=address).next_back();
        let before =
            before.filter(|(start, segment)| start.saturating_add(segment.bytes) > address);
        let found = before.or_else(|| space.range(address..end).next());
        found
            .filter(|_| address < end)
            .map(|(&start, &segment)| (start, segment))
    }

    fn put(&mut self, owner: Owner, address: u64, bytes: u64, mapping: u32) {
        let segment = Segment { bytes, mapping };
        self.spaces
            .entry(owner)
            .or_default()
            .insert(address, segment);
        self.segments += 1;
        self.hold(mapping);
    }

    fn take(&mut self, owner: Owner, address: u64) {
        if let Some(space) = self.spaces.get_mut(&owner)
            && let Some(segment) = space.remove(&address)
        {
            self.segments -= 1;
            self.drop_segment(segment.mapping);
        }
    }

    fn hold(&mut self, mapping: u32) {
        if let Some(mapping) = &mut self.rows[mapping as usize] {
            mapping.segments += 1;
        }
    }

    fn drop_segment(&mut self, mapping: u32) {
        if let Some(mapping) = &mut self.rows[mapping as usize] {
            mapping.segments -= 1;
        }
    }

    /// Ends the mapping if it has no segments left.
    fn release<S: EmitAll>(&mut self, index: u32, ts: Ns, out: &mut Output<'_, S>) {
        let slot = &mut self.rows[index as usize];
        let Some(mapping) = slot.take_if(|mapping| mapping.segments == 0) else {
            return;
        };
        self.free.push(index);
        let mut row = mapping.row;
        row.ts_end = Some(ts);
        row.dur = Some(ts.saturating_sub(row.ts));
        out.sink.emit(row);
    }
}
