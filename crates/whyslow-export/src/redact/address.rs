//! Addresses, one by one: family, scope and class of the port are preserved.
//!
//! Loopback, multicast and unspecified addresses stay. Private addresses become others of the same
//! range. Public addresses become addresses of unassigned ranges (240.0.0.0/4, 2001:db8::/32), so
//! that none refers to an uninvolved host. Ports of well-known services stay; others become ports
//! of the same class (registered, ephemeral).

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Redactor;
use super::words::Lexicon;

/// Ports below are those of well-known services …
const WELL_KNOWN: u16 = 1024;
/// … and the purpose of these is generally known.
const KNOWN_PORTS: [u16; 36] = [
    1433, 1521, 1883, 2049, 2181, 2379, 2380, 3000, 3128, 3260, 3306, 4317, 4318, 5000, 5044, 5432,
    5601, 5672, 5984, 6379, 6443, 7000, 8000, 8080, 8081, 8086, 8443, 8500, 9000, 9042, 9090, 9092,
    9100, 9200, 11211, 27017,
];
/// Start of Linux's default range of ephemeral ports.
const EPHEMERAL: u16 = 32768;

impl Redactor {
    /// `None` if it is not an address.
    pub(super) fn address(&self, text: &str) -> Option<String> {
        if self.keep.name(text) {
            return Some(text.to_owned());
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']')?;
            let host = self.ipv6_scoped(host)?;
            return match rest.strip_prefix(':') {
                Some(port) => Some(format!("[{host}]:{}", self.port_text(port)?)),
                None => rest.is_empty().then(|| format!("[{host}]")),
            };
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(self.ipv4(address).to_string());
        }
        if let Some((host, port)) = text.rsplit_once(':')
            && let Ok(address) = host.parse::<Ipv4Addr>()
        {
            return Some(format!("{}:{}", self.ipv4(address), self.port_text(port)?));
        }
        if let Some((host, bits)) = text.split_once('/')
            && bits.parse::<u8>().is_ok_and(|bits| bits <= 128)
            && !host.contains('/')
        {
            return Some(format!("{}/{bits}", self.address(host)?));
        }
        self.ipv6_scoped(text).or_else(|| self.hardware(text))
    }

    /// Replaces all addresses in a text.
    pub(super) fn addresses(&self, text: &str) -> String {
        let one = |text: &str| {
            let address = self.address(text);
            address.unwrap_or_else(|| self.words(text, Lexicon::Common))
        };
        let side = |text: &str| text.split(' ').map(one).collect::<Vec<_>>().join(" ");
        text.split("->").map(side).collect::<Vec<_>>().join("->")
    }

    fn port_text(&self, port: &str) -> Option<u16> {
        Some(self.port(port.parse().ok()?))
    }

    fn port(&self, port: u16) -> u16 {
        if port < WELL_KNOWN || KNOWN_PORTS.contains(&port) {
            return port;
        }
        let (first, end) = if port < EPHEMERAL {
            (u64::from(WELL_KNOWN), u64::from(EPHEMERAL))
        } else {
            (u64::from(EPHEMERAL), 1 << 16)
        };
        let is_wanted = |at: u64| !KNOWN_PORTS.contains(&((first + at) as u16));
        let at = (u64::from(port) - first, end - first);
        (first + self.cipher().number("port", at, is_wanted)) as u16
    }

    pub(super) fn ipv4(&self, address: Ipv4Addr) -> Ipv4Addr {
        if address.is_loopback()
            || address.is_unspecified()
            || address.is_multicast()
            || address.is_broadcast()
        {
            return address;
        }
        let number = u32::from(address);
        let keep = |bits: u32| {
            let host = number & ((1 << bits) - 1);
            let size = (u64::from(host), 1 << bits);
            let new = self.cipher().number("private address", size, |_| true);
            Ipv4Addr::from(number & !((1 << bits) - 1) | new as u32)
        };
        match address.octets() {
            [10, ..] => keep(24),
            [172, second, ..] if second & 0xf0 == 16 => keep(20),
            [192, 168, ..] | [169, 254, ..] => keep(16),
            _ => {
                let hash = self.cipher().random("address", &address.octets());
                Ipv4Addr::from(0xf000_0000 | (hash as u32) >> 4)
            }
        }
    }

    /// `fe80::1%eth0`.
    fn ipv6_scoped(&self, text: &str) -> Option<String> {
        let (address, scope) = match text.split_once('%') {
            Some((address, scope)) => (address, Some(scope)),
            None => (text, None),
        };
        let address = self.ipv6(address.parse().ok()?);
        Some(match scope {
            Some(scope) => format!("{address}%{}", self.words(scope, Lexicon::Common)),
            None => address.to_string(),
        })
    }

    fn ipv6(&self, address: Ipv6Addr) -> Ipv6Addr {
        if address.is_loopback() || address.is_unspecified() || address.is_multicast() {
            return address;
        }
        if let Some(mapped) = address.to_ipv4_mapped() {
            return self.ipv4(mapped).to_ipv6_mapped();
        }
        let mut octets = [0; 16];
        self.cipher()
            .bytes("address", &address.octets())
            .fill(&mut octets);
        match address.octets() {
            [0xfe, 0x80..=0xbf, ..] => octets[..8].copy_from_slice(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0]),
            [first @ (0xfc | 0xfd), ..] => octets[0] = first,
            _ => octets[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]),
        }
        Ipv6Addr::from(octets)
    }

    /// `02:42:ac:11:00:02`; the replacement is locally administered, never one of a vendor.
    fn hardware(&self, text: &str) -> Option<String> {
        let mut octets = Vec::with_capacity(6);
        for part in text.split(':') {
            let is_hex = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
            octets.push(u8::from_str_radix(part, 16).ok().filter(|_| is_hex)?);
        }
        if octets.len() != 6 {
            return None;
        }
        if octets.iter().all(|octet| *octet == 0) || octets.iter().all(|octet| *octet == 0xff) {
            return Some(text.to_owned());
        }
        let mut new = [0; 6];
        self.cipher()
            .bytes("hardware address", &octets)
            .fill(&mut new);
        new[0] = 0x02;
        let parts: Vec<String> = new.iter().map(|octet| format!("{octet:02x}")).collect();
        Some(parts.join(":"))
    }
}
