//! Snapshot texts of sockets opened before the recording: `socket:[7] tcp accepted 10.0.0.1:80
//! 10.0.0.9:5000`.

use std::net::SocketAddr;

use whyslow_model::Symbols;
use whyslow_model::event::{Endpoint, NetAddress};

use super::object::{FdClass, Object};
use super::request::plain;

/// A socket, identified by its number in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketText<'t> {
    pub(super) number: u64,
    pub(super) about: About<'t>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About<'t> {
    Listens(SocketAddr),
    /// Local and remote address.
    Accepted(SocketAddr, SocketAddr),
    Connected(SocketAddr, SocketAddr),
    UnixListens(&'t str),
    UnixAccepted(&'t str),
    /// Connected to a socket with this name.
    UnixConnected(&'t str),
}

impl<'t> SocketText<'t> {
    pub(super) fn parse(text: &'t str) -> Option<Self> {
        let (number, about) = text.strip_prefix("socket:[")?.split_once("] ")?;
        let number = number.parse().ok()?;
        let (family, about) = about.split_once(' ')?;
        let (what, name) = about.split_once(' ')?;
        let ends = || {
            let (local, peer) = name.split_once(' ')?;
            Some((local.parse().ok()?, peer.parse().ok()?))
        };
        let about = match (family, what) {
            ("tcp", "listen") => About::Listens(name.parse().ok()?),
            ("tcp", "accepted") => ends().map(|(local, peer)| About::Accepted(local, peer))?,
            ("tcp", "connected") => ends().map(|(local, peer)| About::Connected(local, peer))?,
            ("unix", "listen") => About::UnixListens(name),
            ("unix", "accepted") => About::UnixAccepted(name),
            ("unix", "connected") => About::UnixConnected(name),
            _ => return None,
        };
        Some(Self { number, about })
    }

    /// Named like a socket whose creation was recorded: by its peer, or by the address that it
    /// listens on.
    pub(super) fn object(&self, symbols: &mut Symbols) -> Object {
        match self.about {
            About::Listens(side) | About::Accepted(_, side) | About::Connected(_, side) => {
                let class = if side.is_ipv4() {
                    FdClass::Inet
                } else {
                    FdClass::Inet6
                };
                Object::known(class, symbols.intern(&side.to_string()))
            }
            About::UnixListens(name) | About::UnixAccepted(name) | About::UnixConnected(name) => {
                Object::known(FdClass::Unix, symbols.intern(name))
            }
        }
    }
}

pub(super) fn endpoint(side: SocketAddr) -> Endpoint {
    let address = match side {
        SocketAddr::V4(four) => NetAddress::V4(four.ip().octets()),
        SocketAddr::V6(six) => NetAddress::V6(six.ip().octets()),
    };
    let port = Some(side.port());
    plain(Endpoint { address, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_called_after_their_peers() {
        let check = |text: &str, number, class, name: &str| {
            let mut symbols = Symbols::new();
            let parsed = SocketText::parse(text).unwrap_or_else(|| panic!("{text}"));
            let object = parsed.object(&mut symbols);
            let path = object.path.map(|path| symbols.get(path));
            let found = (parsed.number, object.class, path);
            assert_eq!(found, (number, class, Some(name)), "{text}");
        };
        let accepted = "socket:[7] tcp accepted 1.2.3.4:80 5.6.7.8:5000";
        check(accepted, 7, FdClass::Inet, "5.6.7.8:5000");
        let connected = "socket:[7] tcp connected [::1]:5 [::1]:80";
        check(connected, 7, FdClass::Inet6, "[::1]:80");
        check(
            "socket:[8] tcp listen [::]:80",
            8,
            FdClass::Inet6,
            "[::]:80",
        );
        check("socket:[9] unix accepted /a b", 9, FdClass::Unix, "/a b");
        check("socket:[9] unix connected /a", 9, FdClass::Unix, "/a");
        for bad in [
            "socket:[9]",
            "socket:[9] tcp",
            "socket:[x] unix listen /a",
            "socket:[9] tcp accepted 1.2.3.4:80",
            "socket:[9] udp listen 1.2.3.4:80",
        ] {
            assert_eq!(SocketText::parse(bad), None, "{bad}");
        }
    }
}
