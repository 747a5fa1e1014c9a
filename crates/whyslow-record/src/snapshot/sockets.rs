//! Open sockets, from `/proc/PID/net`: a descriptor only shows their inode number.
//!
//! Recorded is the link, followed by a description of the socket: `socket:[7] tcp listen
//! 10.0.0.1:80`, `socket:[8] tcp accepted 10.0.0.1:80 10.0.0.9:5000` (local and remote address),
//! `socket:[9] tcp connected 10.0.0.1:40000 10.0.0.9:80`, `socket:[10] unix listen /run/a`,
//! `socket:[11] unix accepted /run/a`, `socket:[12] unix connected /run/a`. The kernel does not show
//! which side opened a TCP connection. It was accepted if there is a listener on its local port, and
//! opened from here if its local port is ephemeral.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::unix_peers;

/// Maximum number of sockets per network namespace.
const SOCKETS_MAX: usize = 1 << 17;
/// Maximum number of network namespaces.
const NAMESPACES_MAX: usize = 1 << 10;
/// Ephemeral ports, if the kernel does not show them.
const ANY_PORTS: RangeInclusive<u16> = 32768..=60999;
/// States in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";
const LISTEN: &str = "0A";
/// Flag of listening sockets, type and state in `/proc/net/unix`.
const ACCEPTS: u32 = 0x10000;
const STREAM: &str = "0001";
const CONNECTED: &str = "03";

/// Sockets of each network namespace.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    namespaces: HashMap<u64, HashMap<u64, String>>,
    /// Peers of Unix sockets, once read.
    unix_peers: Option<HashMap<u64, u64>>,
}

impl Sockets {
    /// Description of a process's descriptor that refers to a socket.
    pub(super) fn describe(&mut self, process: &Path, link: &[u8]) -> Option<Vec<u8>> {
        let number = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
        let number: u64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        let namespace = std::fs::metadata(process.join("ns/net")).ok()?.ino();
        if !self.namespaces.contains_key(&namespace) && self.namespaces.len() >= NAMESPACES_MAX {
            return None;
        }
        let peers = self.unix_peers.get_or_insert_with(unix_peers::read);
        let sockets = self
            .namespaces
            .entry(namespace)
            .or_insert_with(|| of_namespace(process, peers));
        let about = sockets.get(&number)?;
        Some([link, b" ", about.as_bytes()].concat())
    }
}

fn of_namespace(process: &Path, peers: &HashMap<u64, u64>) -> HashMap<u64, String> {
    let net = process.join("net");
    let tcp = ["tcp", "tcp6"].into_iter();
    let tcp: Vec<Tcp> = tcp
        .flat_map(|name| lines(&net.join(name)))
        .filter_map(|line| Tcp::parse(&line))
        .collect();
    let mut unix: HashMap<u64, String> = lines(&net.join("unix"))
        .filter_map(|line| unix(&line))
        .collect();
    let connected = connected(&unix, peers);
    unix.extend(connected);
    // From the reader's namespace, which nearly always has the same.
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let range = range.ok().and_then(|text| ports(&text));
    let mut all = describe_tcp(&tcp, &range.unwrap_or(ANY_PORTS));
    all.extend(unix);
    all
}

fn lines(path: &Path) -> impl Iterator<Item = String> + use<> {
    let file = File::open(path).ok().map(BufReader::new);
    let lines = file.into_iter().flat_map(BufRead::lines);
    lines.skip(1).take(SOCKETS_MAX).map_while(Result::ok)
}

fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.trim().split_once(char::is_whitespace)?;
    Some(first.parse().ok()?..=last.trim().parse().ok()?)
}

/// A line of `/proc/net/tcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tcp {
    number: u64,
    local: SocketAddr,
    peer: SocketAddr,
    is_listening: bool,
}

impl Tcp {
    fn parse(line: &str) -> Option<Tcp> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let state = *fields.get(3)?;
        let is_known = state == ESTABLISHED || state == LISTEN;
        let tcp = Tcp {
            number: fields.get(9)?.parse().ok()?,
            local: side(fields.get(1)?)?,
            peer: side(fields.get(2)?)?,
            is_listening: state == LISTEN,
        };
        // A socket without a number is in no descriptor table any more.
        (is_known && tcp.number != 0).then_some(tcp)
    }
}

/// `0100007F:1F90`: address words in native byte order, port in hexadecimal.
fn side(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = address.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

fn describe_tcp(sockets: &[Tcp], any: &RangeInclusive<u16>) -> HashMap<u64, String> {
    let listening = sockets.iter().filter(|tcp| tcp.is_listening);
    let listening: HashSet<SocketAddr> = listening.map(|tcp| tcp.local).collect();
    let is_accepted = |local: SocketAddr| {
        let wide = [
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        ];
        let wide = wide.map(|address| SocketAddr::new(address, local.port()));
        listening.contains(&local) || wide.iter().any(|wide| listening.contains(wide))
    };
    let sockets = sockets.iter().filter_map(|tcp| {
        let Tcp { local, peer, .. } = tcp;
        let text = if tcp.is_listening {
            format!("tcp listen {local}")
        } else if is_accepted(*local) {
            format!("tcp accepted {local} {peer}")
        } else if any.contains(&local.port()) {
            format!("tcp connected {local} {peer}")
        } else {
            return None;
        };
        Some((tcp.number, text))
    });
    sockets.collect()
}

/// Unix sockets without a name of their own that are connected to accepted ones.
fn connected(unix: &HashMap<u64, String>, peers: &HashMap<u64, u64>) -> Vec<(u64, String)> {
    let unnamed = peers
        .iter()
        .filter(|(number, _)| !unix.contains_key(number));
    let found = unnamed.filter_map(|(number, peer)| {
        let name = unix.get(peer)?.strip_prefix("unix accepted ")?;
        Some((*number, format!("unix connected {name}")))
    });
    found.collect()
}

/// A line of `/proc/net/unix`. Accepted sockets have the name of the listener; connecting ones
/// rarely have a name.
fn unix(line: &str) -> Option<(u64, String)> {
    let mut rest = line;
    let mut field = || {
        let begin = rest.trim_start();
        let end = begin.find(' ').unwrap_or(begin.len());
        let (field, after) = begin.split_at(end);
        rest = after;
        field
    };
    let (_, _, _) = (field(), field(), field());
    let (flags, kind, state, number) = (field(), field(), field(), field());
    let name = rest.strip_prefix(' ').filter(|name| !name.is_empty())?;
    let accepts = u32::from_str_radix(flags, 16).ok()? & ACCEPTS != 0;
    let what = match (kind, state) {
        (STREAM, _) if accepts => "listen",
        (STREAM, CONNECTED) => "accepted",
        _ => return None,
    };
    Some((number.parse().ok()?, format!("unix {what} {name}")))
}

#[cfg(test)]
mod tests {
    use whyslow_testkit::{Need, skip};

    use super::*;

    #[test]
    fn sockets_are_told_by_what_they_are_for() {
        let table = "
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 11 1 0 100
            1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000 0 0 12 1 0 20
            2: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 0 0 13 1 0 20
            3: 0100007F:9C41 0100007F:1F90 06 00000000:00000000 00:00000000 00000000 0 0 0 1 0 20
            4: 0100007F:0050 0100007F:9C42 01 00000000:00000000 00:00000000 00000000 0 0 14 1 0 20
            5: 0000000000000000FFFF00000100007F:9C43 0000000000000000FFFF00000100007F:0051 01 0:0 0:0 0 0 0 15 1
            6: 00000000000000000000000000000000:0052 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 16 1
            7: 0100007F:0052 0100007F:9C44 01 00000000:00000000 00:00000000 00000000 0 0 17 1 0 20
            cut: 0100007F";
        if cfg!(target_endian = "big") {
            return skip(Need::Machine, "the table is one of a little-endian machine");
        }
        let sockets: Vec<Tcp> = table.lines().filter_map(Tcp::parse).collect();
        let mut found: Vec<_> = describe_tcp(&sockets, &ANY_PORTS).into_iter().collect();
        found.sort();
        let expected = [
            (11, "tcp listen 127.0.0.1:8080"),
            (12, "tcp accepted 127.0.0.1:8080 127.0.0.1:40000"),
            (13, "tcp connected 127.0.0.1:40000 127.0.0.1:8080"),
            (15, "tcp connected 127.0.0.1:40003 127.0.0.1:81"),
            (16, "tcp listen [::]:82"),
            (17, "tcp accepted 127.0.0.1:82 127.0.0.1:40004"),
        ];
        assert_eq!(found, expected.map(|(number, text)| (number, text.into())));
    }

    #[test]
    fn names_of_unix_sockets_may_have_spaces() {
        let check = |line: &str, expected: Option<(u64, &str)>| {
            let expected = expected.map(|(number, text)| (number, text.to_owned()));
            assert_eq!(unix(line), expected, "{line}");
        };
        let line = "ffff8881: 00000002 00000000 00010000 0001 01 12 /run/a b";
        check(line, Some((12, "unix listen /run/a b")));
        let line = "ffff8881: 00000003 00000000 00000000 0001 03 13 @abstract";
        check(line, Some((13, "unix accepted @abstract")));
        check("ffff8881: 00000003 00000000 00000000 0001 03 14", None);
        check("ffff8881: 3 0 00000000 0002 03 15 /dev/log", None);
        check("", None);
    }

    #[test]
    fn a_client_is_named_by_the_socket_that_it_is_connected_to() {
        let unix = HashMap::from([
            (13, "unix accepted /run/a".to_owned()),
            (14, "unix listen /run/a".to_owned()),
            (15, "unix accepted /run/b".to_owned()),
        ]);
        let peers = HashMap::from([(21, 13), (22, 14), (15, 13), (23, 99)]);
        let expected = [(21, "unix connected /run/a".to_owned())];
        assert_eq!(connected(&unix, &peers), expected);
    }

    #[test]
    fn ports_for_those_who_want_any() {
        assert_eq!(ports("32768\t60999\n"), Some(ANY_PORTS));
        assert_eq!(ports("7"), None);
    }

    #[test]
    fn a_socket_of_this_process_is_told() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&listener);
        let process = Path::new("/proc/self");
        let link = std::fs::read_link(process.join(format!("fd/{fd}"))).unwrap();
        let link = link.to_str().unwrap();
        let described = Sockets::default().describe(process, link.as_bytes());
        let local = listener.local_addr().unwrap();
        let expected = format!("{link} tcp listen {local}");
        assert_eq!(described, Some(expected.into_bytes()));
    }
}
