//! `doctor`: checks what can be recorded on this machine.

use whyslow_analysis::Weight;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::time::Zone;
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Measure, Value};
use whyslow_record::{Check, Instead, State};
use whyslow_render::Subject;

use crate::cli::DoctorArgs;

pub(super) fn run(args: &DoctorArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let checks = whyslow_record::checks();
    let is_possible = checks.iter().all(|check| check.state != State::Bad);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let subject = Subject {
        name: "this machine".into(),
        host: host.map(|name| name.trim_end().to_owned()),
        ..Subject::default()
    };
    let mut tables = vec![table(&checks)];
    let mut caveats = Vec::new();
    if !is_possible {
        tables.push(instead(whyslow_record::instead()));
        caveats.push(ALSO_READ.to_owned());
    }
    let answer = Answer {
        query: "doctor".into(),
        tables,
        caveats,
        next: is_possible.then(|| "whyslow record --for 10s".into()),
        ..Answer::default()
    };
    whyslow_render::write(
        answer,
        &subject,
        Zone::utc(),
        Weight::Count,
        &args.output,
        talk,
    )?;
    if is_possible {
        Ok(())
    } else {
        Err(Failure::new(
            "cannot record on this machine: see the failed checks",
        ))
    }
}

/// The tools that users without eBPF try next.
const ALSO_READ: &str =
    "`import` also reads files of perf record, trace-cmd and blktrace (see docs/imports.md)";

fn instead(steps: &[Instead]) -> AnswerTable {
    let column = AnswerColumn::new;
    let columns = vec![
        column("command", "command", Measure::Text),
        column("shows", "shows", Measure::Text).priority(1),
        column("answers", "for queries", Measure::Text),
    ];
    let mut table = AnswerTable::new("instead", "with LTTng instead", columns);
    for step in steps {
        let answers = Some(step.answers).filter(|answers| !answers.is_empty());
        table.rows.push(vec![
            Value::Text(step.command.into()),
            Value::Text(step.provides.into()),
            answers.into(),
        ]);
    }
    table
}

fn table(checks: &[Check]) -> AnswerTable {
    let column = AnswerColumn::new;
    let columns = vec![
        column("check", "check", Measure::Text),
        column("state", "state", Measure::Text),
        column("found", "found", Measure::Text),
        column("fix", "fix", Measure::Text).priority(1),
    ];
    let mut table = AnswerTable::new("checks", "recording", columns);
    for check in checks {
        let fix = Some(check.fix.clone()).filter(|fix| !fix.is_empty());
        table.rows.push(vec![
            Value::Text(check.name.into()),
            Value::Text(check.state.name().into()),
            Value::Text(check.found.clone()),
            fix.into(),
        ]);
    }
    table
}
