//! Tools that report a number.

use whyslow_model::Ns;
use whyslow_model::counter::{CounterUnit, push_reported};

use super::super::columns::{Field, Row, Tool};
use super::{KIB, quoted, write_event};

pub(super) fn counters(
    (tool, row): (Tool, &Row<'_>),
    (at, interval): (Ns, Option<Ns>),
    out: &mut String,
) -> Result<(), String> {
    let mut values = String::new();
    let mut push = |name: &str, value: Option<i64>, unit: CounterUnit| {
        if let Some(value) = value {
            push_reported(&mut values, (name, value), unit);
        }
    };
    let subject = match tool {
        Tool::TopFile => {
            push("READS", row.int(Field::Reads), CounterUnit::Count);
            push("WRITES", row.int(Field::Writes), CounterUnit::Count);
            push("R_Kb", row.scaled(Field::ReadKb, KIB), CounterUnit::Bytes);
            push(
                "W_Kb",
                row.scaled(Field::WrittenKb, KIB),
                CounterUnit::Bytes,
            );
            row.text(Field::File)
        }
        Tool::RunQueue => {
            push("run_queue", row.latency(), CounterUnit::Ns);
            None
        }
        _ => {
            push("latency", row.latency(), CounterUnit::Ns);
            row.text(Field::Disk)
        }
    };
    if values.is_empty() {
        return Err("no valid number in the line".to_owned());
    }
    let tid = row.id(Field::Tid).or_else(|| row.id(Field::Pid));
    let comm = quoted(row.text(Field::Comm).unwrap_or_default());
    let context = tid.map_or_else(String::new, |tid| format!(" (tid={tid} comm={comm})"));
    let subject = subject.map_or_else(String::new, |subject| {
        format!(" subject={}", quoted(subject))
    });
    let interval = interval.filter(|interval| *interval > 0);
    let interval = interval.map_or_else(String::new, |interval| format!(" interval={interval}"));
    let (name, values) = (tool.name(), quoted(&values));
    write_event(
        at,
        &context,
        format_args!("counters reported_by={name}{subject}{interval} values={values}"),
        out,
    );
    Ok(())
}
