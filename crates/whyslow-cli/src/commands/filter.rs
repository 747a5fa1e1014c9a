//! Filters from the flags of queries and exports.

use whyslow_analysis::{DeviceRef, Filter};
use whyslow_base::failure::Failure;

use crate::cli::FilterArgs;

/// The filter of the flags.
pub(super) fn filter_of(filter: &FilterArgs) -> Result<Filter, Failure> {
    if let (Some(min), Some(max)) = (filter.min, filter.max)
        && min > max
    {
        return Err(Failure::usage(
            "cannot match any row: --min is longer than --max",
        ));
    }
    if let (Some(min), Some(max)) = (filter.min_size, filter.max_size)
        && min > max
    {
        return Err(Failure::usage(
            "cannot match any row: --min-size is greater than --max-size",
        ));
    }
    Ok(Filter {
        stage: None,
        ended_in: None,
        values: Vec::new(),
        pids: filter.pid.clone(),
        tids: filter.tid.clone(),
        comms: filter.comm.clone(),
        threads: filter.threads.clone(),
        frames: filter.frames.clone(),
        frames_not: filter.frames_not.clone(),
        cgroups: filter.cgroup.clone(),
        devices: filter.dev.iter().map(|text| device(text)).collect(),
        files: filter.file.clone(),
        ops: filter.op.clone(),
        names: filter.name.clone(),
        size: filter.size,
        size_min: filter.min_size,
        size_max: filter.max_size,
        dur_min: filter.min,
        dur_max: filter.max,
        errors_only: filter.errors,
        cpus: filter.cpu.clone(),
        no_tracer: filter.no_tracer,
    })
}

/// `sda`, `/dev/sda`, `8:0`.
pub(super) fn device(text: &str) -> DeviceRef {
    if let Some((major, minor)) = text.split_once(':')
        && let (Ok(major), Ok(minor)) = (major.parse(), minor.parse())
    {
        return DeviceRef::Number { major, minor };
    }
    DeviceRef::Name(text.strip_prefix("/dev/").unwrap_or(text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_names_or_numbers() {
        let name = |name: &str| DeviceRef::Name(name.into());
        assert_eq!(device("sda1"), name("sda1"));
        assert_eq!(device("/dev/sda"), name("sda"));
        assert_eq!(
            device("8:17"),
            DeviceRef::Number {
                major: 8,
                minor: 17
            }
        );
        assert_eq!(device("8:x"), name("8:x"));
    }
}
