//! `net usage`: bytes and packets received and sent, by interface, sender or peer.
//!
//! A packet is received in an interrupt, which belongs to no process: by process, the received
//! bytes are those that its system calls read from network sockets, without packets. A peer is the
//! sender of received or dropped packets, and the receiver of sent or retransmitted ones.
//!
//! Sent packets are those that the driver accepted, if recorded; otherwise those that were queued
//! for it. Retransmits by a timer belong to no process. If the whole recording has no retransmits
//! or drops, they were probably not recorded, and the column is left empty.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::{Array as _, RecordBatch};
use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::{Spot, fold};
use crate::grouping::{Grouping, Object, TimeKey};
use crate::keys::{Key, KeyValue};
use crate::kinds::{PACKETS, SYSCALLS};
use crate::pass::{Groups, Pass, Summing};
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints, Projection, per_row, per_word};
use crate::sweep::Parts;

const ROWS: usize = 20;
const KINDS: [&str; 6] = [
    "receive",
    "queue",
    "transmit",
    "retransmit",
    "retransmit_synack",
    "drop",
];

pub(crate) fn table(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    let by = &context.query.by;
    if by == &["peer"] {
        return peers(context);
    }
    let keys = Key::parse_all(&PACKETS, by, &[Key::Netif])?;
    let packets = packets(context, &keys)?;
    if keys.iter().any(|key| key.is_owner()) {
        return owners(context, &keys, packets);
    }
    let types = event_types(context)?;
    let rows = packets
        .into_iter()
        .map(|(group, sum)| (group, sum.traffic(types)));
    Ok(made(context, &keys, types, rows.collect()))
}

/// Packets and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Amount {
    pub(super) bytes: i64,
    pub(super) packets: i64,
}

/// Traffic in both directions, and errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    /// For processes, only what their calls read is known, if calls were recorded.
    pub(super) received: Amount,
    pub(super) sent: Amount,
    retransmits: i64,
    drops: i64,
}

fn peers(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    let types = event_types(context)?;
    let mut found: FxHashMap<Vec<KeyValue>, Traffic> = FxHashMap::default();
    let mut pass = context.pass(&PACKETS, &[])?;
    let groupings = [Key::Source, Key::Destination].map(|key| {
        let mut grouping = Grouping::new(
            &PACKETS,
            (&[key], Object::First),
            &context.names,
            &mut pass.projection,
        );
        if let Some(width) = context.interval {
            let column = pass.projection.need("ts");
            let span = context.span;
            grouping.push_time(TimeKey {
                column,
                span,
                width,
            });
        }
        grouping
    });
    let packets = Packets::new(&mut pass);
    let mut groups = pass
        .run_by(context.tables, &packets, &groupings)?
        .into_iter();
    let (by_source, by_destination) = (groups.next(), groups.next());
    for (group, sum) in by_source.into_iter().flatten() {
        let traffic = found.entry(group).or_default();
        (traffic.received, traffic.drops) = (sum.received(), sum.drops());
    }
    for (group, sum) in by_destination.into_iter().flatten() {
        let traffic = found.entry(group).or_default();
        (traffic.sent, traffic.retransmits) = (sum.sent(types), sum.retransmits());
    }
    found.retain(|_, traffic| *traffic != Traffic::default());
    let is_unknown = |group: &Vec<KeyValue>| group.first() == Some(&KeyValue::Null);
    if found.keys().any(is_unknown) {
        context.note("packets without recorded headers have no peer".into());
    }
    let rows = found.into_iter().collect();
    let mut table = made(context, &[Key::Source], types, rows);
    if let Some(column) = table
        .columns
        .iter_mut()
        .find(|column| column.name == "source")
    {
        (column.name, column.title) = ("peer".into(), "peer".into());
    }
    Ok(table)
}

fn owners(
    context: &Context<'_>,
    keys: &[Key],
    packets: Groups<PacketSum>,
) -> Result<AnswerTable, AnalysisError> {
    let types = event_types(context)?;
    let mut found: BTreeMap<Vec<KeyValue>, Traffic> = BTreeMap::new();
    for (group, sum) in packets {
        let received = Amount::default();
        let traffic = Traffic {
            received,
            ..sum.traffic(types)
        };
        found.insert(group, traffic);
    }
    let filter = &context.query.filter;
    let of_calls = keys.iter().all(|key| key.columns(&SYSCALLS).is_some());
    let reads_known = of_calls && context.has(SYSCALLS.table.name) && filter.ops.is_empty();
    if reads_known {
        for (group, bytes) in read_from_sockets(context, keys)? {
            found.entry(group).or_default().received.bytes = bytes;
        }
    }
    found.retain(|_, traffic| {
        let moves = traffic.received.bytes > 0 || traffic.sent.packets > 0;
        moves || traffic.retransmits > 0 || traffic.drops > 0
    });
    context.note(
        "by process, `received` is what system calls read from network sockets, because packets \
         are received in interrupts, which are not attributed to a process"
            .into(),
    );
    let mut table = made(context, keys, types, found.into_iter().collect());
    let unknown: &[&str] = if reads_known {
        &["received_packets"]
    } else {
        &["received_bytes", "received_packets", "received_bytes_per_s"]
    };
    let is_unknown = |name: &str| unknown.contains(&name);
    for row in &mut table.rows {
        let cells = row.iter_mut().zip(&table.columns);
        for (cell, _) in cells.filter(|(_, column)| is_unknown(&column.name)) {
            *cell = Value::Null;
        }
    }
    Ok(table)
}

fn made(
    context: &Context<'_>,
    keys: &[Key],
    types: EventTypes,
    mut rows: Vec<(Vec<KeyValue>, Traffic)>,
) -> AnswerTable {
    type Of = (Vec<KeyValue>, Traffic);
    let order = |(group_a, a): &Of, (group_b, b): &Of| {
        let by_time = group_a[keys.len()..].cmp(&group_b[keys.len()..]);
        let bytes = |traffic: &Traffic| traffic.received.bytes + traffic.sent.bytes;
        by_time
            .then_with(|| bytes(b).cmp(&bytes(a)))
            .then_with(|| group_a.cmp(group_b))
    };
    let by_time = context.interval.is_some();
    let limit = context.limit(if by_time { 0 } else { ROWS });
    let found = rows.len();
    // Of twenty thousand peers, only twenty are shown.
    if !by_time && context.query.sort.is_none() && limit < found {
        rows.select_nth_unstable_by(limit, order);
        rows.truncate(limit);
    }
    rows.sort_unstable_by(order);
    let column = AnswerColumn::new;
    let mut columns = Vec::new();
    if by_time {
        columns.push(column("ts_ns", "time", Measure::Time));
    }
    columns.extend(keys.iter().flat_map(|key| key.answer_columns()));
    columns.extend([
        column("received_bytes", "received", Measure::Bytes),
        column("received_packets", "packets in", Measure::Count),
        column("received_bytes_per_s", "received per s", Measure::ByteRate).priority(2),
        column("sent_bytes", "sent", Measure::Bytes),
        column("sent_packets", "packets out", Measure::Count),
        column("sent_bytes_per_s", "sent per s", Measure::ByteRate).priority(2),
        column("retransmits", "retransmits", Measure::Count).priority(1),
        column("drops", "dropped", Measure::Count).priority(1),
    ]);
    let parts = Parts::of_query(context);
    let mut table = AnswerTable::new("usage", "network", columns);
    for (group, traffic) in rows {
        let mut row = Vec::with_capacity(table.columns.len());
        let (values, time) = group.split_at(keys.len());
        let begin = match time.first() {
            Some(KeyValue::Int(begin)) => Some(*begin),
            _ => None,
        };
        row.extend(begin.map(Value::Int));
        let seconds = parts.seconds(begin);
        let rate = |amount: Amount| (seconds > 0.0).then(|| amount.bytes as f64 / seconds);
        for (key, value) in keys.iter().zip(values) {
            row.extend(key.cells(value, &context.names));
        }
        for amount in [traffic.received, traffic.sent] {
            row.extend([
                amount.bytes.into(),
                amount.packets.into(),
                rate(amount).into(),
            ]);
        }
        row.push(types.retransmits.then_some(traffic.retransmits).into());
        row.push(types.drops.then_some(traffic.drops).into());
        table.rows.push(row);
    }
    context.finish_blocks(&mut table, limit);
    context.note_cut(&table, found);
    table
}

/// Event types in the whole recording. In a slice of it, a packet that was queued in one second and
/// accepted in the next would count in both.
#[derive(Debug, Clone, Copy)]
struct EventTypes {
    /// The driver accepted packets.
    transmits: bool,
    retransmits: bool,
    drops: bool,
}

fn event_types(context: &Context<'_>) -> Result<EventTypes, AnalysisError> {
    let kinds = match context.tables.words(PACKETS.table, "kind")? {
        Some(kinds) => kinds,
        None => kinds_of_rows(context)?,
    };
    Ok(EventTypes {
        transmits: kinds.contains("transmit"),
        retransmits: kinds.contains("retransmit") || kinds.contains("retransmit_synack"),
        drops: kinds.contains("drop"),
    })
}

fn kinds_of_rows(context: &Context<'_>) -> Result<BTreeSet<String>, AnalysisError> {
    let mut projection = Projection::new(PACKETS.table);
    let kind = projection.need("kind");
    let each = |found: &mut BTreeSet<String>, batch: &RecordBatch, _| {
        let kind = kind.texts(batch)?;
        // A dictionary may contain words that no row of the batch has.
        let mut are_used = vec![false; kind.words.len()];
        for row in 0..batch.num_rows() as u32 {
            if let Some(word) = kind.key(row) {
                are_used[word] = true;
            }
        }
        let words = (0..).zip(are_used).filter(|(_, is_used)| *is_used);
        found.extend(words.map(|(word, _)| kind.words.value(word).to_owned()));
        Ok(())
    };
    let merge = |found: &mut BTreeSet<String>, mut more: BTreeSet<String>| found.append(&mut more);
    let scan = projection.scan(None);
    fold(context.tables, &scan, BTreeSet::new, each, merge)
}

fn place_of(kind: &str) -> usize {
    let place = KINDS.iter().position(|known| *known == kind);
    place.unwrap_or(KINDS.len())
}

/// Received and sent traffic in the window, regardless of the rest of the query, by interval and
/// interface.
pub(super) fn by_interface(
    context: &Context<'_>,
) -> Result<BTreeMap<(Option<Ns>, String), Traffic>, AnalysisError> {
    let types = event_types(context)?;
    let all = Filter::default();
    let pass = context.pass_in(&PACKETS, &[Key::Netif], &all, context.selected())?;
    let of = |(group, sum): (Vec<KeyValue>, PacketSum)| {
        let begin = match group.get(1) {
            Some(KeyValue::Int(begin)) => Some(*begin),
            _ => None,
        };
        let name = match group.first() {
            Some(KeyValue::Text(name)) => name.to_string(),
            _ => String::new(),
        };
        ((begin, name), sum.traffic(types))
    };
    Ok(sums(context, pass)?.into_iter().map(of).collect())
}

fn packets(context: &Context<'_>, keys: &[Key]) -> Result<Groups<PacketSum>, AnalysisError> {
    sums(context, context.pass(&PACKETS, keys)?)
}

/// By interval, if the query has one.
fn sums(context: &Context<'_>, mut pass: Pass) -> Result<Groups<PacketSum>, AnalysisError> {
    if let Some(width) = context.interval {
        pass.group_by_time(context.span, width);
    }
    let packets = Packets::new(&mut pass);
    pass.run(context.tables, &packets)
}

struct Packets {
    bytes: ColumnRef,
    kind: ColumnRef,
}

impl Packets {
    fn new(pass: &mut Pass) -> Self {
        Self {
            bytes: pass.projection.need("bytes"),
            kind: pass.projection.need("kind"),
        }
    }
}

/// In the order of [`KINDS`], and other kinds.
#[derive(Default)]
struct PacketSum([Amount; KINDS.len() + 1]);

impl PacketSum {
    fn received(&self) -> Amount {
        self.0[0]
    }

    /// What the driver accepted, if known; otherwise what was queued for it.
    fn sent(&self, types: EventTypes) -> Amount {
        self.0[if types.transmits { 2 } else { 1 }]
    }

    fn retransmits(&self) -> i64 {
        self.0[3].packets + self.0[4].packets
    }

    fn drops(&self) -> i64 {
        self.0[5].packets
    }

    fn traffic(&self, types: EventTypes) -> Traffic {
        Traffic {
            received: self.received(),
            sent: self.sent(types),
            retransmits: self.retransmits(),
            drops: self.drops(),
        }
    }
}

impl Summing for Packets {
    type Columns<'b> = (Ints<'b>, Vec<u8>);
    type Sum = PacketSum;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let kind = self.kind.texts(batch)?;
        let places = per_word(&kind, |kind| place_of(kind) as u8);
        let places = per_row(&kind, &places, KINDS.len() as u8);
        Ok((self.bytes.ints(batch)?, places))
    }

    #[inline]
    fn add(&self, sum: &mut PacketSum, (bytes, places): &Self::Columns<'_>, row: u32) {
        let place = usize::from(places[row as usize]).min(KINDS.len());
        sum.0[place].bytes += bytes.or_zero(row);
        sum.0[place].packets += 1;
    }

    fn merge(&self, sum: &mut PacketSum, other: PacketSum) {
        for (amount, more) in sum.0.iter_mut().zip(other.0) {
            amount.bytes += more.bytes;
            amount.packets += more.packets;
        }
    }
}

/// Bytes that calls read from IP sockets.
fn read_from_sockets(
    context: &Context<'_>,
    keys: &[Key],
) -> Result<BTreeMap<Vec<KeyValue>, i64>, AnalysisError> {
    let reads = Filter {
        ops: vec!["read".into()],
        ..context.query.filter.clone()
    };
    let mut by = keys.to_vec();
    by.push(Key::FdClass);
    let mut pass = context.pass_of(&SYSCALLS, &by, &reads)?;
    if let Some(width) = context.interval {
        pass.group_by_time(context.span, width);
    }
    let bytes = Bytes(pass.projection.need("bytes"));
    let mut found: BTreeMap<Vec<KeyValue>, i64> = BTreeMap::new();
    for (mut group, bytes) in pass.run(context.tables, &bytes)? {
        if let KeyValue::Text(class) = group.remove(keys.len())
            && (&*class == "inet" || &*class == "inet6")
        {
            *found.entry(group).or_default() += bytes;
        }
    }
    Ok(found)
}

struct Bytes(ColumnRef);

impl Summing for Bytes {
    type Columns<'b> = Ints<'b>;
    type Sum = i64;

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<Ints<'b>, AnalysisError> {
        self.0.ints(batch)
    }

    fn add(&self, sum: &mut i64, bytes: &Ints<'_>, row: u32) {
        *sum += bytes.or_zero(row);
    }

    fn merge(&self, sum: &mut i64, other: i64) {
        *sum += other;
    }
}
