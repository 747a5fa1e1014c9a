//! Transition between packets: finds the next one, and what was lost before it.

use whyslow_model::stat;

use super::{
    CtfError, Discarded, Domain, Loss, LossKind, PACKET_HEADER_BYTES_MAX, PROBE_BYTES, Packet,
    PacketFault, PacketIndex, Report, Shared, StreamReader, read_packet, resync,
};
use crate::importers::ctf::schema::{Schema, StreamSchema};

/// A part of a file in which no packet was found.
struct Damage {
    begin: u64,
}

impl StreamReader {
    /// Opens the next packet, of the next file if necessary. False at the end of the stream.
    pub(super) fn open_packet(&mut self, shared: &mut Shared<'_>) -> Result<bool, CtfError> {
        let mut damage: Option<Damage> = None;
        while self.file < self.files.len() {
            let file_bytes = self.files[self.file].bytes;
            if self.next == 0 && damage.is_none() {
                self.open_file(shared.report);
            }
            if self.next >= file_bytes {
                self.end_damage(damage.take(), file_bytes, None, shared.report);
                self.close_file(shared.report);
                continue;
            }
            let schema = &shared.plans.schemas[self.files[self.file].trace];
            match self.probe(schema, damage.is_some(), shared)? {
                Ok(packet) if self.is_repeated(&packet) => {
                    let (path, begin) = (self.window.path(), packet.begin);
                    shared.report.tally.add(&stat::PACKET_REPEATED, path, begin);
                    shared.report.bytes_done += packet.total_bytes;
                    self.next = packet.begin + packet.total_bytes;
                }
                Ok(packet) => {
                    self.begin_packet(packet, schema, damage.take(), shared)?;
                    return Ok(true);
                }
                Err(fault) => {
                    if damage.is_none() {
                        if resync::is_all_zeros(self.window.path(), self.next, file_bytes)
                            .map_err(|error| CtfError::read(self.window.path(), error))?
                        {
                            shared.report.bytes_done += file_bytes - self.next;
                            self.next = file_bytes;
                            continue;
                        }
                        self.count_fault(&fault, shared.report);
                        damage = Some(Damage { begin: self.next });
                    }
                    let next = self
                        .find_packet(schema, self.next + 1)?
                        .unwrap_or(file_bytes);
                    shared.report.bytes_done += next - self.next;
                    self.next = next;
                }
            }
        }
        Ok(false)
    }

    /// Leaves the packet; the next one is expected at the offset in its header.
    pub(super) fn close_packet(&mut self, report: &mut Report) {
        self.end_discarded(report);
        let Some(packet) = self.packet.take() else {
            return;
        };
        let declared = self.declared_end(&packet);
        let had_events = self.ts_last > i64::MIN;
        let last = had_events.then_some(self.ts_last);
        self.past.end = declared.max(last).max(self.past.end);
        self.next = packet.begin + packet.total_bytes;
        report.bytes_done += packet.total_bytes;
        report.packets += 1;
        report.is_changed = true;
    }

    /// Reports the events discarded in the packet, at its end.
    fn end_discarded(&mut self, report: &mut Report) {
        let Some(discarded) = self.discarded.take() else {
            return;
        };
        let declared = self.packet.as_ref().and_then(|it| self.declared_end(it));
        let end = declared.unwrap_or(i64::MIN).max(self.ts_last);
        let range = (discarded.since, end.max(discarded.since));
        self.lose(LossKind::Events(discarded.count), range, report);
    }

    /// End of the packet in nanoseconds, if plausible.
    pub(super) fn declared_end(&self, packet: &Packet) -> Option<i64> {
        let clock = self.clock?;
        packet
            .end_cycles
            .filter(|_| self.believed_end != u64::MAX)
            .map(|end| clock.ns(end))
    }

    pub(super) fn lose(&self, what: LossKind, (begin, end): (i64, i64), report: &mut Report) {
        if matches!(what, LossKind::Bytes(0)) {
            return;
        }
        let cpu = self.packet.as_ref().and_then(|packet| packet.cpu);
        let trace = self.files[self.file].trace;
        report.is_changed = true;
        report.losses.push(Loss {
            trace,
            stream: self.index,
            cpu,
            begin,
            end,
            what,
        });
    }

    fn open_file(&mut self, report: &mut Report) {
        let file = &self.files[self.file];
        self.window.open(&file.path);
        if file.bytes == 0 {
            report.tally.add(&stat::STREAM_EMPTY, &file.path, 0);
        }
        self.packet_index = PacketIndex::of_stream(&file.path).unwrap_or_else(|fault| {
            report
                .tally
                .add_with(&stat::INDEX_DISAGREES, &file.path, 0, || fault.to_owned());
            None
        });
    }

    fn close_file(&mut self, report: &mut Report) {
        if self
            .packet_index
            .take()
            .is_some_and(|index| !index.is_at_end())
        {
            let path = &self.files[self.file].path;
            let text = || "the index has more entries than the stream has packets".to_owned();
            report
                .tally
                .add_with(&stat::INDEX_DISAGREES, path, self.next, text);
        }
        self.file += 1;
        self.next = 0;
        self.past.files_begin = self.past.begin;
        if self.file >= self.files.len() {
            self.window.release();
        }
    }

    /// Snapshots of one session contain the same packets as long as the tracer keeps them.
    fn is_repeated(&self, packet: &Packet) -> bool {
        packet.begin_cycles.is_some() && packet.begin_cycles <= self.past.files_begin
    }

    /// Reads the packet expected at `self.next`.
    fn probe(
        &mut self,
        schema: &Schema,
        is_search: bool,
        shared: &mut Shared<'_>,
    ) -> Result<Result<Packet, PacketFault>, CtfError> {
        let file_bytes = self.files[self.file].bytes;
        let rest = file_bytes - self.next;
        let mut len = if is_search {
            PROBE_BYTES
        } else {
            self.window_bytes
        };
        loop {
            self.fill(self.next, rest.min(len as u64) as usize)?;
            let mut cursor = std::mem::take(&mut self.cursor);
            let found = read_packet(schema, &self.window, file_bytes, &mut cursor, shared.output);
            self.cursor = cursor;
            match found {
                Err(PacketFault::Short) if (len as u64) < rest && len < PACKET_HEADER_BYTES_MAX => {
                    len = PACKET_HEADER_BYTES_MAX;
                }
                found => return Ok(found),
            }
        }
    }

    fn begin_packet(
        &mut self,
        mut packet: Packet,
        schema: &Schema,
        damage: Option<Damage>,
        shared: &mut Shared<'_>,
    ) -> Result<(), CtfError> {
        let trace = &shared.plans.traces[self.files[self.file].trace];
        let report = &mut *shared.report;
        if packet.is_truncated {
            self.shorten(&mut packet, schema, report)?;
        }
        let stream = &schema.streams[packet.stream_class];
        self.clock = stream.clock;
        if let Some(begin) = packet.begin_cycles {
            self.cursor.advance_clock(begin, stream.begin_bits);
        }
        self.believed_end = match packet.end_cycles {
            // A crashed tracer leaves 0.
            Some(end) if stream.begin_bits >= 64 && end >= self.cursor.cycles => end,
            _ => u64::MAX,
        };
        self.cursor.at = packet.header_bits as usize;
        if self.window.len() < self.window_bytes {
            let len = packet
                .content_bits
                .div_ceil(8)
                .min(self.window_bytes as u64);
            self.fill(packet.begin, len as usize)?;
        }
        let begin = packet
            .begin_cycles
            .zip(self.clock)
            .map(|(_, c)| c.ns(self.cursor.cycles));
        self.end_damage(damage, packet.begin, begin, report);
        self.check_index(&packet, report);
        self.packet = Some(packet);
        self.find_losses(stream, begin, (trace.domain != Domain::Unknown, report));
        self.limit_cursor();
        Ok(())
    }

    /// The size in the header exceeds the file: either the file was truncated here, or the size is
    /// wrong and another packet follows.
    fn shorten(
        &mut self,
        packet: &mut Packet,
        schema: &Schema,
        report: &mut Report,
    ) -> Result<(), CtfError> {
        let path = &self.files[self.file].path;
        if let Some(next) = self.find_packet(schema, packet.begin + 1)? {
            report
                .tally
                .add_with(&stat::PACKET_DAMAGED, path, packet.begin, || {
                    format!("the packet size exceeds the next packet at byte {next}")
                });
            packet.total_bytes = next - packet.begin;
            packet.content_bits = packet.content_bits.min(packet.total_bytes * 8);
        } else {
            report
                .tally
                .add(&stat::PACKET_TRUNCATED, path, packet.begin);
        }
        Ok(())
    }

    fn find_packet(&self, schema: &Schema, from: u64) -> Result<Option<u64>, CtfError> {
        let to = self.files[self.file].bytes;
        resync::find_signature(self.window.path(), &schema.signature, from, to)
            .map_err(|error| CtfError::read(self.window.path(), error))
    }

    fn count_fault(&self, fault: &PacketFault, report: &mut Report) {
        let stat = match fault {
            PacketFault::Foreign(_) => &stat::PACKET_FOREIGN,
            PacketFault::Short => &stat::PACKET_TRUNCATED,
            _ => &stat::PACKET_DAMAGED,
        };
        report
            .tally
            .add_with(stat, self.window.path(), self.next, || fault.to_string());
    }

    /// Reports the bytes up to `end` as lost, located before the packet found there.
    fn end_damage(
        &self,
        damage: Option<Damage>,
        end: u64,
        found: Option<i64>,
        report: &mut Report,
    ) {
        let Some(damage) = damage else { return };
        let begin = self.past.end.or(found).unwrap_or(0);
        let found = found.unwrap_or(begin).max(begin);
        self.lose(LossKind::Bytes(end - damage.begin), (begin, found), report);
    }

    fn check_index(&mut self, packet: &Packet, report: &mut Report) {
        if self
            .packet_index
            .as_mut()
            .is_some_and(|index| !index.agrees(packet))
        {
            self.packet_index = None;
            report
                .tally
                .add(&stat::INDEX_DISAGREES, self.window.path(), packet.begin);
        }
    }

    /// Compares the counters of this packet with those of the previous one.
    fn find_losses(
        &mut self,
        stream: &StreamSchema,
        begin: Option<i64>,
        (is_lttng, report): (bool, &mut Report),
    ) {
        let Some(packet) = &self.packet else { return };
        let place = (self.window.path(), packet.begin);
        let begin = begin.or(self.past.end).unwrap_or(0);
        let end = self.declared_end(packet).unwrap_or(begin);
        let before = self.past.end.unwrap_or(begin);
        if let Some(discarded) = packet.discarded {
            let what = match self.past.discarded {
                // Nothing comes before the first packet of a buffer.
                None if is_lttng && packet.sequence == Some(0) => LossKind::Events(discarded),
                None => LossKind::EventsBefore(discarded),
                Some(past) => {
                    LossKind::Events(counter_difference(past, discarded, stream.discarded_bits))
                }
            };
            if let LossKind::EventsBefore(count @ 1..) | LossKind::Events(count @ 1..) = what {
                report
                    .tally
                    .add_many(&stat::EVENTS_DISCARDED, count, place, String::new);
                match what {
                    LossKind::Events(count) if is_lttng => {
                        self.discarded = Some(Discarded::new(count, packet, begin));
                    }
                    LossKind::Events(_) => self.lose(what, (before.min(end), end), report),
                    _ => self.lose(what, (begin, end), report),
                }
            }
        }
        if let (Some(sequence), Some(past)) = (packet.sequence, self.past.sequence)
            && sequence > past
            && sequence - past > 1
        {
            let missing = sequence - past - 1;
            report
                .tally
                .add_many(&stat::PACKETS_LOST, missing, place, String::new);
            self.lose(
                LossKind::Packets(missing),
                (before.min(begin), begin),
                report,
            );
        }
        self.past.discarded = packet.discarded.or(self.past.discarded);
        self.past.sequence = packet.sequence.or(self.past.sequence);
        self.past.begin = self.past.begin.max(packet.begin_cycles);
    }
}

/// Increase of a counter of `bits` bits. A decrease larger than explained by a wrap-around means
/// that the counter was restarted from zero.
fn counter_difference(past: u64, present: u64, bits: u32) -> u64 {
    if present >= past {
        return present - past;
    }
    let mask = if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    };
    let difference = present.wrapping_sub(past) & mask;
    if difference > mask / 2 {
        present
    } else {
        difference
    }
}

#[cfg(test)]
mod tests {
    use super::counter_difference;

    #[test]
    fn counters_wrap_or_start_again() {
        assert_eq!(counter_difference(3, 10, 64), 7);
        assert_eq!(counter_difference(u64::from(u32::MAX), 4, 32), 5);
        assert_eq!(counter_difference(u64::MAX, 4, 64), 5);
        assert_eq!(counter_difference(1000, 4, 32), 4);
    }
}
