//! Tools of bcc and its libbpf-tools, with the columns that both document.

mod biolatency;
mod biosnoop;
mod columns;
mod ext4slower;
mod filetop;
mod gethostlatency;
mod opensnoop;

use crate::tool::Tool;

pub(crate) static TOOLS: &[&Tool] = &[
    &filetop::TOOL,
    &opensnoop::TOOL,
    &biosnoop::TOOL,
    &biolatency::TOOL,
    &ext4slower::TOOL,
    &gethostlatency::TOOL,
];
