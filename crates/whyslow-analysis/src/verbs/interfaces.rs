//! Bytes and packets by network interface.

use std::collections::BTreeMap;

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};
use whyslow_model::row::Row;
use whyslow_model::tables::NetPacketRow;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::fold;
use crate::scan::Projection;
use crate::sweep::Parts;

/// Packets of each kind and their bytes.
#[derive(Debug, Default, Clone, Copy)]
struct Packets {
    count: i64,
    bytes: i64,
}

#[derive(Debug, Default, Clone)]
struct Interface {
    received: Packets,
    queued: Packets,
    transmitted: Packets,
}

/// None if no packet was recorded.
pub(crate) fn table(context: &Context<'_>) -> Result<Option<AnswerTable>, AnalysisError> {
    if !context.has("net_packet") {
        return Ok(None);
    }
    let parts = Parts::of_question(context);
    let interfaces = interfaces(context, parts)?;
    let column = AnswerColumn::new;
    let by_time = context.interval.is_some();
    let mut columns = Vec::new();
    if by_time {
        columns.push(column("ts_ns", "time", Measure::Time));
    }
    columns.extend([
        column("netif", "interface", Measure::Text),
        column("received_bytes", "received", Measure::Bytes),
        column("received_packets", "packets in", Measure::Count),
        column("sent_bytes", "sent", Measure::Bytes),
        column("sent_packets", "packets out", Measure::Count),
    ]);
    let mut table = AnswerTable::new("interfaces", "network interfaces", columns);
    for ((part, name), interface) in interfaces {
        // What the driver took, where a source tells; else what was handed to it.
        let sent = if interface.transmitted.count > 0 {
            interface.transmitted
        } else {
            interface.queued
        };
        let mut row = Vec::with_capacity(table.columns.len());
        if by_time {
            row.push(parts.begin(part).into());
        }
        row.extend([
            name.into(),
            interface.received.bytes.into(),
            interface.received.count.into(),
            sent.bytes.into(),
            sent.count.into(),
        ]);
        table.rows.push(row);
    }
    context.finish_blocks(&mut table, context.limit(0));
    Ok(Some(table))
}

/// By part of time and name.
type Interfaces = BTreeMap<(usize, String), Interface>;

fn interfaces(context: &Context<'_>, parts: Parts) -> Result<Interfaces, AnalysisError> {
    let mut projection = Projection::new(NetPacketRow::TABLE);
    let [ts, bytes] = ["ts", "bytes"].map(|name| projection.need(name));
    let [kind, netif] = ["kind", "netif"].map(|name| projection.need(name));
    let window = context.selected();
    fold(
        context.tables,
        &projection.scan(window),
        BTreeMap::new,
        |interfaces: &mut Interfaces, batch, _| {
            let (ts, bytes) = (ts.ints(batch)?, bytes.ints(batch)?);
            let (kind, netif) = (kind.texts(batch)?, netif.texts(batch)?);
            for row in 0..batch.num_rows() as u32 {
                if window.is_some_and(|window| !window.contains(ts.at(row))) {
                    continue;
                }
                let Some(kind @ ("receive" | "queue" | "transmit")) = kind.get(row) else {
                    continue;
                };
                let name = netif.get(row).unwrap_or_default();
                let place = (parts.of(ts.at(row)), name.to_owned());
                let interface = interfaces.entry(place).or_default();
                let packets = match kind {
                    "receive" => &mut interface.received,
                    "queue" => &mut interface.queued,
                    _ => &mut interface.transmitted,
                };
                packets.count += 1;
                packets.bytes += bytes.or_zero(row);
            }
            Ok(())
        },
        |interfaces, more| {
            for (place, other) in more {
                let interface = interfaces.entry(place).or_default();
                for (packets, more) in [
                    (&mut interface.received, other.received),
                    (&mut interface.queued, other.queued),
                    (&mut interface.transmitted, other.transmitted),
                ] {
                    packets.count += more.count;
                    packets.bytes += more.bytes;
                }
            }
        },
    )
}
