//! `threads flame`: time of threads by stack, as a text tree, a table, an image or a file for other
//! tools, as written by `export`.

use whyslow_analysis::Query;
use whyslow_base::args::{Format, OutputArgs, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_base::time::Calendar;
use whyslow_export::flame::{FlameGraph, NODES_MAX, compare};
use whyslow_export::stacks::{About, Roots, StackQuery, Weight};
use whyslow_export::{Chart, SvgLook, write_chart, write_collapsed, write_speedscope, write_svg};
use whyslow_model::Ns;
use whyslow_model::answer::{Answer, AnswerColumn, AnswerTable, Form as TableForm, Measure, Value};
use whyslow_sources::recording::Opened;
use whyslow_store::Tables;

use super::export::target::{Form, print_notes, write_to};
use crate::cli::{GraphArgs, StackWeight};

/// Lines of text, heaviest first.
const LINES: usize = 60;
/// Threads in a chart.
const THREADS: usize = 20;

/// The arguments and the recording.
type Source<'p> = (&'p GraphArgs, &'p Opened, &'p Calendar);

/// Whether the flags request an image or file instead of a table.
pub(super) fn is_picture(graph: &GraphArgs, output: &OutputArgs) -> bool {
    graph.chart || form(output).is_some()
}

/// The format of the flag, else of the file name.
fn form(output: &OutputArgs) -> Option<Format> {
    let chosen = output.chosen_format();
    if chosen.is_graph() {
        return Some(chosen);
    }
    let name = output.output.as_ref()?.file_name()?.to_str()?;
    let has = |ending: &str| name.ends_with(ending);
    match chosen {
        Format::Text if has(".svg") => Some(Format::Svg),
        Format::Text if has(".txt") || has(".collapsed") || has(".folded") => {
            Some(Format::Collapsed)
        }
        Format::Text if has(".json") => Some(Format::Speedscope),
        _ => None,
    }
}

fn stack_query(
    tables: &dyn Tables,
    query: &Query,
    graph: &GraphArgs,
) -> Result<StackQuery, Failure> {
    let roots = match query.by.as_slice() {
        [] => Roots::Comm,
        [key] if key == "comm" => Roots::Comm,
        [key] if key == "pool" => Roots::Pool,
        [key] if key == "none" => Roots::Nothing,
        keys => {
            return Err(
                Failure::usage(format!("cannot group stacks by `{}`", keys.join(",")))
                    .hint("use --by comm, --by pool or --by none"),
            );
        }
    };
    if query.overlaps.is_some() || query.sort.is_some() {
        return Err(
            Failure::usage("cannot use --overlaps and --sort with a graph")
                .hint("select the time of an operation with -w op:ID"),
        );
    }
    Ok(StackQuery {
        window: query.window,
        filter: query.filter.clone(),
        weight: match graph.weight {
            None => Weight::of(tables),
            Some(StackWeight::Offcpu) => Weight::OffCpu,
            Some(StackWeight::Samples) => Weight::Samples,
            Some(StackWeight::Time) => Weight::Time,
        },
        states: graph.state.clone(),
        roots,
    })
}

/// The graph and notes about it.
fn merged(
    tables: &dyn Tables,
    stacks: &StackQuery,
    (graph, opened, calendar): Source<'_>,
) -> Result<(FlameGraph, Vec<String>), Failure> {
    let baseline = match &graph.versus {
        None => None,
        Some(text) => {
            let text = text.clone();
            Some(StackQuery {
                window: Some(text.resolve(calendar, |operation| opened.window_of(operation))?),
                ..stacks.clone()
            })
        }
    };
    let found = FlameGraph::of(tables, stacks, baseline.as_ref())?;
    let mut notes = Vec::new();
    if stacks.weight == Weight::Time {
        let by_samples = StackQuery {
            weight: Weight::Samples,
            ..stacks.clone()
        };
        let by_samples = FlameGraph::of(tables, &by_samples, None)?;
        notes.extend(compare(&found, &by_samples));
    }
    Ok((found, notes))
}

/// States that no time is lost or counted twice.
fn conserved(about: &About) -> Option<String> {
    let lives = about.lives.filter(|lives| lives.threads > 0)?;
    Some(format!(
        "the time of {} threads adds up to their lifetimes: {:.3} s, residual {} ns",
        lives.threads,
        lives.lived as f64 / 1e9,
        lives.residual
    ))
}

/// The heaviest stacks as a table, which is a tree in text output.
pub(super) fn answer(
    tables: &dyn Tables,
    query: &Query,
    source: Source<'_>,
) -> Result<Answer, Failure> {
    if source.0.chart {
        return Err(
            Failure::usage("cannot draw a --chart in this format: it is SVG")
                .hint("write to a file: -o chart.svg"),
        );
    }
    let stacks = stack_query(tables, query, source.0)?;
    let (mut graph, notes) = merged(tables, &stacks, source)?;
    let limit = match query.limit {
        None => LINES,
        Some(0) => NODES_MAX,
        Some(limit) => limit.min(NODES_MAX),
    };
    let found = graph.nodes.len().saturating_sub(1);
    graph.prune(limit.saturating_add(1));
    let mut caveats = std::mem::take(&mut graph.about.caveats);
    caveats.extend(conserved(&graph.about));
    let has_notes = !notes.is_empty();
    caveats.extend(notes);
    if has_notes {
        caveats.push(
            "samples and time differ where signals did not reach a thread (`--weight samples` counts as other \
             tools do)"
                .into(),
        );
    }
    let shown = graph.nodes.len().saturating_sub(1);
    if shown < found && query.limit.is_none() {
        caveats.push(format!(
            "{} more lines are not shown; their time is attributed to their callers (`-n 0` shows all)",
            found - shown
        ));
    }
    let mut table = lines(&graph);
    let fact = AnswerColumn::new("weight", "weight", Measure::Text);
    let about = stacks.weight.about();
    table.facts.push(("weight".into(), fact, about.into()));
    let fact = AnswerColumn::new("total_ns", "total", Measure::Duration);
    table
        .facts
        .push(("total_ns".into(), fact, graph.total_ns().into()));
    Ok(Answer {
        query: format!("{} {}", query.kind.name(), query.verb.name()),
        window: Some((graph.about.begin, graph.about.end)),
        tables: vec![table],
        losses: graph.about.losses.clone(),
        caveats,
        left_out: None,
        next: Some("whyslow threads flame -o flame.svg".into()),
        state: graph.about.state.clone(),
    })
}

fn lines(graph: &FlameGraph) -> AnswerTable {
    let column = AnswerColumn::new;
    let mut columns = vec![
        column("function", "function and callees", Measure::Text),
        column("total_ns", "total", Measure::Duration),
        column("total_ratio", "%", Measure::Ratio),
        column("self_ns", "self", Measure::Duration).priority(2),
        column("off_ratio", "% off-CPU", Measure::Ratio).priority(3),
        column("frame_kind", "kind", Measure::Text).priority(4),
        column("module", "module", Measure::Path).priority(5),
        column("depth", "depth", Measure::Count),
        column("indent", "indent", Measure::Count),
    ];
    if graph.is_compared {
        columns.extend([
            column("base_total_ns", "baseline total", Measure::Duration).priority(1),
            column("base_total_ratio", "baseline %", Measure::Ratio),
        ]);
    }
    let mut table = AnswerTable::new("flame", "time by stack", columns);
    table.form = TableForm::Tree;
    let share = |part: Ns, whole: Ns| Value::from((whole > 0).then(|| part as f64 / whole as f64));
    for line in graph.lines() {
        let node = line.node;
        let mut row = vec![
            line.frame.name.clone().into(),
            node.total_ns.into(),
            share(node.total_ns, graph.total_ns()),
            node.self_ns.into(),
            share(node.off_ns, node.total_ns),
            line.frame.kind.name().into(),
            line.frame.module.clone().into(),
            (line.depth as i64).into(),
            (line.indent as i64).into(),
        ];
        if graph.is_compared {
            row.push(node.base_total_ns.into());
            row.push(share(node.base_total_ns, graph.base_total_ns()));
        }
        table.rows.push(row);
    }
    table
}

/// Writes the image, or the file for another tool.
pub(super) fn draw(
    tables: &dyn Tables,
    query: &Query,
    source: Source<'_>,
    (output, talk): (&OutputArgs, &TalkArgs),
) -> Result<(), Failure> {
    let (graph, opened, _) = source;
    let stacks = stack_query(tables, query, graph)?;
    let form = form(output).unwrap_or(Format::Svg);
    if graph.chart && form != Format::Svg {
        return Err(
            Failure::usage("cannot draw a --chart in this format: it is SVG")
                .hint("write to a file: -o chart.svg"),
        );
    }
    if graph.versus.is_some() && form != Format::Svg {
        return Err(
            Failure::usage("cannot draw a comparison in this format: it is SVG")
                .hint("write to a file: -o diff.svg"),
        );
    }
    let path = output.output.as_deref();
    let about = match form {
        Format::Collapsed => write_to(path, Form::Text, |out| {
            Ok(write_collapsed(tables, &stacks, out)?)
        })?,
        Format::Speedscope => write_to(path, Form::Text, |out| {
            Ok(write_speedscope(tables, &stacks, opened.name(), out)?)
        })?,
        _ if graph.chart => {
            let threads = match query.limit {
                None => THREADS,
                Some(0) => usize::MAX,
                Some(limit) => limit,
            };
            let chart = Chart::of(tables, &stacks, threads)?;
            let mut look = look(&chart.about, &stacks, source);
            if chart.left_out > 0 {
                let more = chart.left_out;
                look.notes
                    .push(format!("{more} more threads (-n 0 shows all)"));
            }
            if chart.boxes_left_out > 0 {
                let more = chart.boxes_left_out;
                let note = format!(
                    "{more} more boxes, the shortest of each thread (select a shorter window)"
                );
                look.notes.push(note);
            }
            write_to(path, Form::Text, |out| Ok(write_chart(&chart, &look, out)?))?;
            chart.about
        }
        _ => {
            let (mut merged, notes) = merged(tables, &stacks, source)?;
            merged.prune(NODES_MAX);
            let mut look = look(&merged.about, &stacks, source);
            look.notes.extend(notes);
            write_to(path, Form::Text, |out| Ok(write_svg(&merged, &look, out)?))?;
            merged.about
        }
    };
    print_notes(&about, talk);
    if let (Some(note), false) = (conserved(&about), talk.quiet) {
        whyslow_base::talk::line(&format!("note: {note}"));
    }
    Ok(())
}

fn look(about: &About, stacks: &StackQuery, (graph, opened, calendar): Source<'_>) -> SvgLook {
    let face = |ts| {
        let civil = calendar.zone.civil(ts);
        format!("{} {}", civil.date(), civil.time())
    };
    let title = graph.title.clone();
    let counted = stacks.weight.about();
    SvgLook {
        title: title.unwrap_or_else(|| opened.name().to_owned()),
        subtitle: format!(
            "{counted}, {} .. {}; pale: mostly off CPU",
            face(about.begin),
            face(about.end)
        ),
        notes: conserved(about).into_iter().collect(),
    }
}
