use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_export::flame::{FlameGraph, NODES_MAX};
use whyslow_export::stacks::{About, StackQuery, Weight};
use whyslow_export::{
    SvgLook, write_collapsed, write_firefox, write_pprof, write_speedscope, write_svg,
};
use whyslow_sources::recording::Opened;
use whyslow_store::Tables;

use super::target::{Form, opened, print_notes, window, write};
use crate::cli::{StackArgs, StackWeight, SvgArgs};
use crate::commands::filter::filter_of;

fn query(args: &StackArgs, opened: &Opened) -> Result<StackQuery, Failure> {
    Ok(StackQuery {
        window: window(&args.export, opened)?,
        filter: filter_of(&args.export.filter)?,
        weight: weight(args, opened),
        states: args.state.clone(),
        ..StackQuery::default()
    })
}

/// The requested weight, else the one that suits the recording.
pub(crate) fn weight(args: &StackArgs, opened: &Opened) -> Weight {
    match args.weight {
        None => Weight::of(&*opened.tables),
        Some(StackWeight::Offcpu) => Weight::OffCpu,
        Some(StackWeight::Samples) => Weight::Samples,
        Some(StackWeight::Time) => Weight::Time,
    }
}

pub(super) fn collapsed(args: &StackArgs, talk: &TalkArgs) -> Result<(), Failure> {
    export(args, Form::Text, talk, |tables, query, _, out| {
        Ok(write_collapsed(tables, query, out)?)
    })
}

pub(super) fn speedscope(args: &StackArgs, talk: &TalkArgs) -> Result<(), Failure> {
    export(args, Form::Text, talk, |tables, query, name, out| {
        Ok(write_speedscope(tables, query, name, out)?)
    })
}

pub(super) fn firefox(args: &StackArgs, talk: &TalkArgs) -> Result<(), Failure> {
    export(args, Form::Text, talk, |tables, query, name, out| {
        Ok(write_firefox(tables, query, name, out)?)
    })
}

pub(super) fn pprof(args: &StackArgs, talk: &TalkArgs) -> Result<(), Failure> {
    export(args, Form::Binary, talk, |tables, query, _, out| {
        Ok(write_pprof(tables, query, out)?)
    })
}

pub(super) fn svg(args: &SvgArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let opened = opened(&args.stacks.export, talk)?;
    let graph = graph(args, &opened, &*opened.tables)?;
    let about = graph.about.clone();
    let calendar = opened.calendar(None);
    let face = |ts| {
        let civil = calendar.zone.civil(ts);
        format!("{} {}", civil.date(), civil.time())
    };
    let counted = query(&args.stacks, &opened)?.weight.about();
    let look = SvgLook {
        title: args
            .title
            .clone()
            .unwrap_or_else(|| opened.name().to_owned()),
        subtitle: format!("{counted}, {} .. {}", face(about.begin), face(about.end)),
        notes: Vec::new(),
    };
    write(&args.stacks.export, Form::Text, |out| {
        Ok(write_svg(&graph, &look, out)?)
    })?;
    print_notes(&about, talk);
    Ok(())
}

/// The requested graph, from these tables of the recording.
pub(crate) fn graph(
    args: &SvgArgs,
    opened: &Opened,
    tables: &dyn Tables,
) -> Result<FlameGraph, Failure> {
    let query = query(&args.stacks, opened)?;
    let calendar = opened.calendar(None);
    let baseline = match &args.versus {
        None => None,
        Some(text) => Some(StackQuery {
            window: Some(text.resolve(&calendar, |operation| opened.window_of(operation))?),
            ..query.clone()
        }),
    };
    let mut graph = FlameGraph::of(tables, &query, baseline.as_ref())?;
    graph.prune(NODES_MAX);
    Ok(graph)
}

fn export(
    args: &StackArgs,
    form: Form,
    talk: &TalkArgs,
    export: impl FnOnce(
        &dyn Tables,
        &StackQuery,
        &str,
        &mut dyn std::io::Write,
    ) -> Result<About, Failure>,
) -> Result<(), Failure> {
    let opened = opened(&args.export, talk)?;
    let query = query(args, &opened)?;
    let about = write(&args.export, form, |out| {
        export(&*opened.tables, &query, opened.name(), out)
    })?;
    print_notes(&about, talk);
    Ok(())
}
