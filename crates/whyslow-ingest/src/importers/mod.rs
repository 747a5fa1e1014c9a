//! Readers of foreign formats, one folder or file each.

pub mod ctf;
pub mod rwbs;
pub(crate) mod spool;
pub mod task_state;
pub mod text;
