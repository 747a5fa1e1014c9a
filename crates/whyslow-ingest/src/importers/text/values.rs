//! Formatting of values.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use whyslow_model::Ns;
use whyslow_model::event::{NetAddress, PrevState};

pub(super) struct Time(pub(super) Ns);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let ns = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    }
}

pub(super) struct Hex(pub(super) u64);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

pub(super) struct Device(pub(super) i64);

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", (self.0 >> 20) & 0xfff, self.0 & 0xf_ffff)
    }
}

pub(super) struct State(pub(super) PrevState);

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            PrevState::Runnable { preempted: false } => "R",
            PrevState::Runnable { preempted: true } => "R+",
            PrevState::Sleeping => "S",
            PrevState::Uninterruptible => "D",
            PrevState::Stopped => "T",
            PrevState::Traced => "t",
            PrevState::Dead => "X",
            PrevState::Zombie => "Z",
            PrevState::Parked => "P",
            PrevState::Idle => "I",
            PrevState::Unknown(state) => return write!(f, "{state}"),
        })
    }
}

pub(super) struct Endpoint(pub(super) NetAddress, pub(super) Option<u16>);

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (NetAddress::V4(address), Some(port)) => {
                SocketAddrV4::new(Ipv4Addr::from(address), port).fmt(f)
            }
            (NetAddress::V4(address), None) => Ipv4Addr::from(address).fmt(f),
            (NetAddress::V6(address), Some(port)) => {
                SocketAddrV6::new(Ipv6Addr::from(address), port, 0, 0).fmt(f)
            }
            (NetAddress::V6(address), None) => Ipv6Addr::from(address).fmt(f),
        }
    }
}
