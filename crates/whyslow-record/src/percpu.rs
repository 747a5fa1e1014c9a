//! Address of the kernel's per-CPU preempt count.
//!
//! A BPF program can only refer to a per-CPU variable if the kernel exports its address, which many
//! do not. But BTF contains the offsets of per-CPU variables, and the address of one of them, the
//! run queue, is known from the running thread. So the distance between the two leads to the count.

use std::ffi::OsStr;

use libbpf_rs::btf::types::{Composite, DataSec, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfType};

/// Limit of the structure that contains the count on some kernels.
const HOT_BYTES_MAX: u32 = 4096;

/// Distance from a CPU's run queue to its preempt count; 0 if unknown.
pub(crate) fn preempt_count_distance() -> i64 {
    if !cfg!(target_arch = "x86_64") {
        return 0; // other architectures store it with the thread
    }
    let found = Btf::from_vmlinux().ok().and_then(|btf| distance(&btf));
    found.unwrap_or(0)
}

fn distance(btf: &Btf<'_>) -> Option<i64> {
    let section = btf
        .type_by_kind::<DataSec<'_>>()
        .find(|section| section.name().is_some_and(|name| name == ".data..percpu"))?;
    let (mut queue, mut count, mut hot) = (None, None, None);
    for place in section.iter() {
        let variable: Option<Var<'_>> = btf.type_by_id(place.ty);
        let name = variable.and_then(|variable| variable.name());
        let at = i64::from(place.offset);
        match name.and_then(OsStr::to_str) {
            Some("runqueues") => queue = Some(at),
            Some("__preempt_count") => count = Some(at),
            // From Linux 6.2 to 6.14.
            Some("pcpu_hot") => hot = Some(at),
            _ => {}
        }
    }
    let count = match count {
        Some(count) => count,
        None => hot? + count_within(btf)?,
    };
    Some(count - queue?)
}

fn count_within(btf: &Btf<'_>) -> Option<i64> {
    let hot: Struct<'_> = btf.type_by_name("pcpu_hot")?;
    let mut parts: Vec<(BtfType<'_>, u32)> = vec![(*hot, 0)];
    // It is in an unnamed structure in an unnamed union.
    while let Some((part, bits)) = parts.pop() {
        let Ok(part) = Composite::try_from(part) else {
            continue;
        };
        for member in part.iter() {
            let MemberAttr::Normal { offset } = member.attr else {
                continue;
            };
            let at = bits + offset;
            match member.name.map(OsStr::as_encoded_bytes) {
                Some(b"preempt_count") => return Some(i64::from(at / 8)),
                None | Some(b"") if at / 8 < HOT_BYTES_MAX => {
                    parts.extend(btf.type_by_id(member.ty).map(|ty: BtfType<'_>| (ty, at)));
                }
                _ => {}
            }
        }
    }
    None
}
