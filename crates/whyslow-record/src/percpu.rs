//! Where the kernel counts what a CPU serves: in a variable of each CPU.
//!
//! A program may name such a variable only if the kernel lists its address, which many do not. But BTF
//! tells where the variables of a CPU lie from its first one, and one of them, the queue of those that
//! want to run, is known from the thread at work. So the distance between the two leads there.

use std::ffi::OsStr;

use libbpf_rs::btf::types::{Composite, DataSec, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfType};

/// Of the structure that holds the count on some kernels.
const HOT_BYTES_MAX: u32 = 4096;

/// From the queue of a CPU to its count of interrupts; 0 where the kernel does not tell.
pub(crate) fn preempt_count_distance() -> i64 {
    if !cfg!(target_arch = "x86_64") {
        return 0; // others have it with the thread
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
    // It lies in a structure without a name in a union without one.
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
