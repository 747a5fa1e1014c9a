//! Bytes and packets by network interface.

use std::collections::BTreeMap;

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure};
use whyslow_model::row::Row;
use whyslow_model::tables::NetPacketRow;

use super::net;
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
    sent: Packets,
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
        let mut row = Vec::with_capacity(table.columns.len());
        if by_time {
            row.push(parts.begin(part).into());
        }
        row.extend([
            name.into(),
            interface.received.bytes.into(),
            interface.received.count.into(),
            interface.sent.bytes.into(),
            interface.sent.count.into(),
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
    let sends = if net::told(context)?.transmits {
        "transmit"
    } else {
        "queue"
    };
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
                let received = kind.get(row) == Some("receive");
                if !received && kind.get(row) != Some(sends) {
                    continue;
                }
                let name = netif.get(row).unwrap_or_default();
                let place = (parts.of(ts.at(row)), name.to_owned());
                let interface = interfaces.entry(place).or_default();
                let packets = if received {
                    &mut interface.received
                } else {
                    &mut interface.sent
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
                    (&mut interface.sent, other.sent),
                ] {
                    packets.count += more.count;
                    packets.bytes += more.bytes;
                }
            }
        },
    )
}
