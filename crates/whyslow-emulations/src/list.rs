use crate::tool::Tool;
use crate::{bcc, df, iotop, lttng, sysstat, top};

/// All tools, in the order of the help.
pub(crate) fn tools() -> impl Iterator<Item = &'static Tool> {
    let live: [&Tool; 5] = [
        &sysstat::iostat::TOOL,
        &sysstat::pidstat::TOOL,
        &iotop::TOOL,
        &top::TOOL,
        &df::TOOL,
    ];
    let live = live.into_iter().chain(bcc::TOOLS.iter().copied());
    live.chain(lttng::TOOLS.iter().copied())
}

/// The tool with this name, or with this name of its machine-readable form.
pub(crate) fn named(name: &str) -> Option<&'static Tool> {
    tools().find(|tool| tool.name == name || tool.machine_name == Some(name))
}
