//! Bytes and packets by network interface.

use whyslow_model::answer::{AnswerColumn, AnswerTable, Measure, Value};

use super::net;
use crate::AnalysisError;
use crate::context::Context;
use crate::kinds::PACKETS;

/// `None` if no packet was recorded.
pub(crate) fn table(context: &Context<'_>) -> Result<Option<AnswerTable>, AnalysisError> {
    if !context.has(PACKETS.table.name) {
        return Ok(None);
    }
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
    for ((begin, name), traffic) in net::by_interface(context)? {
        if traffic.received.packets + traffic.sent.packets == 0 {
            continue;
        }
        let mut row = Vec::with_capacity(table.columns.len());
        row.extend(begin.map(Value::Int));
        row.extend([
            name.into(),
            traffic.received.bytes.into(),
            traffic.received.packets.into(),
            traffic.sent.bytes.into(),
            traffic.sent.packets.into(),
        ]);
        table.rows.push(row);
    }
    context.finish_blocks(&mut table, context.limit(0));
    Ok(Some(table))
}
