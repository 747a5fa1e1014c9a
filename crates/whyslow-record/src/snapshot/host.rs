//! Facts about the machine.

use std::fs;

use whyslow_model::recorder::RECORDER_PID;
use whyslow_model::spool::{Encoder, Kind};

use crate::clock;

pub(super) fn facts(encoder: &mut Encoder, topics: &str) {
    let system = rustix::system::uname();
    let mut fact = |name: &str, value: &[u8]| {
        encoder
            .begin(Kind::Fact, clock::monotonic(), (0, 0))
            .text(name.as_bytes())
            .text(value)
            .end();
    };
    fact("hostname", system.nodename().to_bytes());
    fact("kernel_release", system.release().to_bytes());
    fact("architecture", system.machine().to_bytes());
    fact("machine", system.machine().to_bytes());
    fact(
        "tracer_name",
        concat!("whyslow ", env!("CARGO_PKG_VERSION")).as_bytes(),
    );
    fact(RECORDER_PID, std::process::id().to_string().as_bytes());
    fact("topics", topics.as_bytes());
    if let Some(zone) = zone() {
        fact("zone", zone.as_bytes());
    }
    if let Ok(boot_id) = fs::read("/proc/sys/kernel/random/boot_id") {
        fact("boot_id", boot_id.trim_ascii_end());
    }
}

/// Name of the time zone, if `/etc/localtime` is a link to it.
fn zone() -> Option<String> {
    let target = fs::read_link("/etc/localtime").ok()?;
    let name = target.to_str()?.split_once("zoneinfo/")?.1;
    Some(name.trim_start_matches("posix/").to_owned())
}
