//! Readers of foreign formats, one folder or file each.

pub mod ctf;
