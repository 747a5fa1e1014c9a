//! Loads and attaches the BPF programs for block requests.

use std::mem::MaybeUninit;
use std::path::Path;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, OpenObject, PrintLevel};

use super::OutlierOptions;
use crate::error::RecordError;
use crate::preflight;
use crate::programs::Off;
use crate::skeletons::outliers::{OpenOutliersSkel, OutliersSkel, OutliersSkelBuilder};

/// The loaded programs, detached when this is dropped.
pub(super) struct Loaded<'o> {
    pub(super) skeleton: OutliersSkel<'o>,
    pub(super) off: Vec<Off>,
    _links: Vec<Link>,
}

/// Not supported by older kernels.
const START: &str = "on_start";

pub(super) fn load<'o>(
    options: &OutlierOptions,
    storage: &'o mut MaybeUninit<OpenObject>,
) -> Result<Loaded<'o>, RecordError> {
    if !Path::new(preflight::TYPES).exists() {
        return Err(RecordError::NoTypes);
    }
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, _| {})));
    let mut off = Vec::new();
    let is_refused = {
        let mut trial = MaybeUninit::uninit();
        open(options, true, &mut trial)?.load().err()
    };
    if let Some(error) = &is_refused {
        off.push(Off {
            program: START,
            topic: None,
            provides: "submitters of requests, and their time in queues",
            reason: error.to_string(),
        });
    }
    let failed = |error: libbpf_rs::Error| match error.kind() {
        ErrorKind::PermissionDenied => RecordError::NotPermitted,
        _ => RecordError::Load(error),
    };
    let skeleton = open(options, is_refused.is_none(), storage)?
        .load()
        .map_err(failed)?;
    for dev in &options.devices {
        let wanted = &skeleton.maps.wanted;
        wanted
            .update(&dev.to_ne_bytes(), &[1], MapFlags::ANY)
            .map_err(RecordError::Load)?;
    }
    let programs = &skeleton.progs;
    let mut attached = vec![
        programs.on_complete.attach(),
        programs.on_issue.attach(),
        programs.on_merge.attach(),
        programs.on_requeue.attach(),
    ];
    if is_refused.is_none() {
        attached.push(programs.on_start.attach());
    }
    let links = attached
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    Ok(Loaded {
        skeleton,
        off,
        _links: links,
    })
}

fn open<'o>(
    options: &OutlierOptions,
    with_start: bool,
    storage: &'o mut MaybeUninit<OpenObject>,
) -> Result<OpenOutliersSkel<'o>, RecordError> {
    let mut open = OutliersSkelBuilder::default()
        .open(storage)
        .map_err(RecordError::Load)?;
    open.progs.on_start.set_autoload(with_start);
    let Some(settings) = open.maps.rodata_data.as_mut() else {
        return Err(RecordError::Settings);
    };
    settings.slow_min_ns = u64::try_from(options.slow_min.as_nanos()).unwrap_or(u64::MAX);
    settings.only_wanted = !options.devices.is_empty();
    settings.ops_wanted = options.ops.iter().fold(0, |bits, op| bits | 1 << (op & 31));
    settings.bytes_min = options.bytes_min;
    settings.bytes_max = options.bytes_max.unwrap_or(u32::MAX);
    Ok(open)
}
