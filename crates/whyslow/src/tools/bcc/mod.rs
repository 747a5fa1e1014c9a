//! Tools of bcc and its libbpf-tools, in the columns that both document.

pub(super) mod biolatency;
pub(super) mod biosnoop;
pub(super) mod ext4slower;
pub(super) mod filetop;
pub(super) mod gethostlatency;
pub(super) mod opensnoop;

use super::Tool;

pub(super) static TOOLS: &[&Tool] = &[
    &filetop::TOOL,
    &opensnoop::TOOL,
    &biosnoop::TOOL,
    &biolatency::TOOL,
    &ext4slower::TOOL,
    &gethostlatency::TOOL,
];

/// A name in a column of so many characters: longer ones are cut, as the tools do.
fn fit(name: &str, width: usize) -> String {
    super::front::shown(name).chars().take(width).collect()
}

/// What the path column of a log says; `?` where there is nothing.
fn path(row: &super::asked::Row<'_>, column: &str) -> String {
    row.text(column)
        .map_or_else(|| "?".into(), super::front::shown)
}
