//! Which resources were fine, independent of the findings: CPU, disks, memory and network.

use std::ops::ControlFlow;

use whyslow_analysis::read::{Projection, in_order};
use whyslow_analysis::{AnalysisError, Kind, Query, Verb, evaluate};
use whyslow_model::answer::{AnswerTable, Value};
use whyslow_model::row::Row as _;
use whyslow_model::tables::{
    LostEventsRow, MetadataRow, NetPacketRow, ReclaimRow, TcpConnectionRow,
};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::model::{Resource, ResourceState};
use crate::detectors::counters::has;
use crate::report::{ActorKind, Report};
use crate::sentence::{length, percent};
use crate::window_slice::columns::rows;

/// Utilisation from which a CPU or a disk counts as busy …
const BUSY: f64 = 0.9;
/// … and waiting work from which it counts as saturated.
const WAITING: f64 = 1.0;
/// p99 latency from which a disk counts as slow: a hard disk that is not saturated is faster.
const SLOW_NS: f64 = 50_000_000.0;
/// Share of the window in memory reclaim that counts as short memory.
const RECLAIM: f64 = 0.01;
/// TCP retransmits per second that count as a lossy network.
const RETRANSMITS: f64 = 1.0;
/// Disks that are listed.
const DISKS: usize = 3;

/// Adds the verdicts on resources and the number of lost events in the window.
pub(super) fn fill(
    tables: &dyn Tables,
    window: Option<Window>,
    report: &mut Report,
) -> Result<(), AnalysisError> {
    let info = tables.info();
    let whole = Window::new(info.begin_ns, info.end_ns.saturating_add(1));
    let window = window.map_or(whole, |window| {
        Window::new(window.begin.max(whole.begin), window.end.min(whole.end))
    });
    report.lost_events = lost(tables, window)?;
    report.lost_share = crate::judged::lost_share(tables, Some(window))?;
    let judge = Judge {
        tables,
        window,
        topics: topics(tables)?,
    };
    let mut found = judge.cpu_and_disks(&blamed_devices(report))?;
    found.push(judge.memory()?);
    found.push(judge.network()?);
    report.fine = found;
    Ok(())
}

/// Devices that a finding blames are not fine.
fn blamed_devices(report: &Report) -> Vec<&str> {
    let parts = report.findings.iter().flat_map(|finding| {
        let part = finding.culprit.and_then(|place| finding.parts.get(place));
        part.into_iter().flat_map(|part| {
            let object = part.object.as_ref().filter(|thing| thing.kind == "device");
            let device = Some(&part.culprit).filter(|it| it.kind == ActorKind::Device);
            let device = device.map(|actor| actor.name.as_str());
            object
                .map(|thing| thing.name.as_str())
                .into_iter()
                .chain(device)
        })
    });
    parts.collect()
}

/// Number of events lost in the window; `None` if some losses have no number.
fn lost(tables: &dyn Tables, window: Window) -> Result<Option<u64>, AnalysisError> {
    let columns = (&["ts", "ts_end", "count"][..], &["kind"][..]);
    let mut sum = Some(0);
    rows(
        tables,
        LostEventsRow::TABLE,
        columns,
        Some(window),
        |cells, row| {
            // Packets and bytes have an unknown number of events.
            let count = cells.int(2, row).filter(|_| cells.text(0, row) == "events");
            sum = sum.zip(count).map(|(sum, count)| sum + count.max(0) as u64);
        },
    )?;
    Ok(sum)
}

/// Topics that the recorder recorded; empty for other sources.
fn topics(tables: &dyn Tables) -> Result<Vec<String>, AnalysisError> {
    let columns = (&[][..], &["key", "value"][..]);
    let mut topics = Vec::new();
    rows(tables, MetadataRow::TABLE, columns, None, |cells, row| {
        if cells.text(0, row) == "topics" {
            topics = cells.text(1, row).split(',').map(str::to_owned).collect();
        }
    })?;
    Ok(topics)
}

struct Judge<'t> {
    tables: &'t dyn Tables,
    window: Window,
    topics: Vec<String>,
}

impl Judge<'_> {
    fn is_topic(&self, name: &str) -> bool {
        self.topics.iter().any(|topic| topic == name)
    }

    fn cpu_and_disks(&self, blamed: &[&str]) -> Result<Vec<Resource>, AnalysisError> {
        let mut query = Query::new(Kind::Use, Verb::Usage);
        query.window = Some(self.window);
        let answer = evaluate(self.tables, &query)?;
        let used = answer.tables.first();
        let lines = used.map_or_else(Vec::new, |table| {
            let row = |cells| Line { table, cells };
            table
                .rows
                .iter()
                .map(|cells| row(cells))
                .collect::<Vec<_>>()
        });
        let cpus = lines
            .iter()
            .find(|line| line.text("waiting_what") == Some("threads"));
        let mut found = vec![cpus.map_or_else(|| not_recorded("cpu", "CPU", "--what +sched"), cpu)];
        let mut disks: Vec<&Line<'_>> = lines
            .iter()
            .filter(|line| line.text("waiting_what") == Some("requests"))
            .filter(|line| line.number("wait_p99_ns").is_some())
            .collect();
        // Those with the most I/O; the sort is stable.
        disks.sort_by(|a, b| {
            let rate = |line: &Line<'_>| line.number("bytes_per_s").unwrap_or(0.0);
            rate(b).total_cmp(&rate(a))
        });
        let is_blamed = |line: &Line<'_>| {
            line.text("resource")
                .is_some_and(|name| blamed.contains(&name))
        };
        found.extend(
            disks
                .iter()
                .filter(|line| !is_blamed(line))
                .take(DISKS)
                .map(|line| disk(line)),
        );
        if disks.is_empty() {
            found.push(if self.is_topic("block") || has(self.tables, "block_io") {
                none("disk", "no disk requests")
            } else {
                not_recorded("disk", "disks", "--what +block")
            });
        }
        Ok(found)
    }

    fn memory(&self) -> Result<Resource, AnalysisError> {
        if !self.is_topic("mem") && !has(self.tables, "reclaim") {
            return Ok(not_recorded("memory", "memory", "--what +mem"));
        }
        let columns = (&["ts", "ts_end"][..], &["kind"][..]);
        let (mut sum, window): (Ns, Window) = (0, self.window);
        rows(
            self.tables,
            ReclaimRow::TABLE,
            columns,
            Some(window),
            |cells, row| {
                // kswapd reclaims ahead of need.
                let end = cells.int(1, row).unwrap_or(window.end).min(window.end);
                if cells.text(0, row) != "kswapd" {
                    sum += (end - cells.int(0, row).unwrap_or(end).max(window.begin)).max(0);
                }
            },
        )?;
        let share = sum as f64 / (window.end - window.begin).max(1) as f64;
        Ok(if share >= RECLAIM {
            resource(
                "memory",
                ResourceState::High,
                format!("memory reclaim {}", length(sum)),
            )
        } else {
            resource("memory", ResourceState::Fine, "memory".to_owned())
        })
    }

    fn network(&self) -> Result<Resource, AnalysisError> {
        let (has_tcp, has_packets) = (
            has(self.tables, "tcp_connection"),
            has(self.tables, "net_packet"),
        );
        if has_packets {
            return self.packets();
        }
        if !has_tcp {
            return Ok(if self.is_topic("tcp") || self.is_topic("net") {
                none("network", "no network traffic")
            } else {
                not_recorded("network", "network", "--what +tcp")
            });
        }
        let columns = (&["ts", "ts_end", "retransmits"][..], &[][..]);
        let mut lost = 0_u64;
        rows(
            self.tables,
            TcpConnectionRow::TABLE,
            columns,
            Some(self.window),
            |cells, row| lost += cells.int(2, row).unwrap_or(0).max(0) as u64,
        )?;
        Ok(self.lossy(lost))
    }

    fn lossy(&self, lost: u64) -> Resource {
        let seconds = (self.window.end - self.window.begin).max(1) as f64 / 1e9;
        let summary = match lost {
            0 => "network".to_owned(),
            1 => "network (1 TCP retransmit)".to_owned(),
            _ => format!("network ({} TCP retransmits)", super::names::count(lost)),
        };
        let state = if lost as f64 / seconds < RETRANSMITS {
            ResourceState::Fine
        } else {
            ResourceState::High
        };
        resource("network", state, summary)
    }

    fn packets(&self) -> Result<Resource, AnalysisError> {
        let mut projection = Projection::new(NetPacketRow::TABLE);
        let (ts, kind) = (projection.need("ts"), projection.need("kind"));
        let mut lost = 0_u64;
        in_order(self.tables, &projection.scan(Some(self.window)), |batch| {
            let (ts, kind) = (ts.ints(batch)?, kind.texts(batch)?);
            for row in 0..batch.num_rows() as u32 {
                let is_lost = matches!(kind.get(row), Some("retransmit" | "retransmit_synack"));
                lost += u64::from(is_lost && self.window.contains(ts.at(row)));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(self.lossy(lost))
    }
}

/// A row of `use`.
#[derive(Clone, Copy)]
struct Line<'t> {
    table: &'t AnswerTable,
    cells: &'t [Value],
}

impl Line<'_> {
    fn cell(&self, name: &str) -> Option<&Value> {
        let mut columns = self.table.columns.iter();
        self.cells
            .get(columns.position(|column| column.name == name)?)
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.cell(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.cell(name)? {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    fn is_saturated(&self) -> bool {
        let is = |name, min| self.number(name).is_some_and(|value| value >= min);
        is("util_ratio", BUSY) && is("waiting", WAITING)
    }
}

fn cpu(line: &Line<'_>) -> Resource {
    let used = percent(line.number("util_ratio").unwrap_or(0.0));
    if line.is_saturated() {
        let waiting = line.number("waiting").unwrap_or(0.0);
        let summary = format!("CPU {used}, {waiting:.1} threads waiting for a CPU");
        return resource("cpu", ResourceState::High, summary);
    }
    resource("cpu", ResourceState::Fine, format!("CPU {used}"))
}

fn disk(line: &Line<'_>) -> Resource {
    let name = line.text("resource").unwrap_or("");
    let p99 = line.number("wait_p99_ns").unwrap_or(0.0);
    let summary = format!("{name} p99 {}", length(p99 as Ns));
    let state = if line.is_saturated() || p99 >= SLOW_NS {
        ResourceState::High
    } else {
        ResourceState::Fine
    };
    resource("disk", state, summary)
}

fn resource(topic: &'static str, state: ResourceState, summary: String) -> Resource {
    Resource {
        topic,
        state,
        summary,
        record_with: None,
    }
}

fn none(topic: &'static str, summary: &str) -> Resource {
    resource(topic, ResourceState::NoneHappened, summary.to_owned())
}

fn not_recorded(topic: &'static str, summary: &str, record_with: &'static str) -> Resource {
    Resource {
        record_with: Some(record_with),
        ..resource(topic, ResourceState::NotRecorded, summary.to_owned())
    }
}
