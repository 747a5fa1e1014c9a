//! Addresses of connections, and which of them are this host's own.

use std::borrow::Cow;

use rustc_hash::FxHashSet;
use whyslow_analysis::AnalysisError;
use whyslow_model::tables::{NetInterfaceRow, RequestRow, TcpConnectionRow};
use whyslow_model::{Row, Symbols};
use whyslow_store::{Tables, each_row, rows};

/// Prefix of IPv4 addresses of sockets that also accept IPv6.
const MAPPED: &str = "::ffff:";

/// Address and port in one form for both ends: `127.0.0.1:80` for `[::ffff:127.0.0.1]:80`.
pub(crate) fn plain(address: &str) -> Cow<'_, str> {
    let Some((host, port)) = split(address) else {
        return Cow::Borrowed(address.strip_prefix(MAPPED).unwrap_or(address));
    };
    match host.strip_prefix(MAPPED) {
        Some(mapped) => Cow::Owned(format!("{mapped}:{port}")),
        None => Cow::Borrowed(address),
    }
}

/// Host, without brackets, and port; `None` without a port.
pub(crate) fn split(address: &str) -> Option<(&str, &str)> {
    let (host, port) = address.rsplit_once(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|one| one.is_ascii_digit());
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = bare.is_some() || !host.contains(':');
    (is_port && is_host).then_some((bare.unwrap_or(host), port))
}

/// The host of an address with or without a port, in the form of [`plain`].
pub(crate) fn host(address: &str) -> &str {
    let host = split(address).map_or(address, |(host, _)| host);
    host.strip_prefix(MAPPED).unwrap_or(host)
}

/// The addresses of the recorded host.
#[derive(Debug, Default)]
pub(crate) struct OwnAddresses(FxHashSet<String>);

impl OwnAddresses {
    pub(crate) fn read(tables: &dyn Tables) -> Result<Self, AnalysisError> {
        let mut own = FxHashSet::default();
        let mut symbols = Symbols::new();
        for interface in rows::<NetInterfaceRow>(tables, &mut symbols)? {
            if let Some(address) = interface.address {
                let address = symbols.get(address);
                let address = address.split('/').next().unwrap_or_default();
                own.insert(host(address).to_owned());
            }
        }
        let locals = tables.words(TcpConnectionRow::TABLE, "local")?;
        own.extend(locals.iter().flatten().map(|local| host(local).to_owned()));
        // A log may be of another host.
        each_row::<RequestRow>(tables, None, &mut symbols, |row, symbols| {
            if symbols.get(row.source) == "socket"
                && let Some(local) = row.local
            {
                let host = host(symbols.get(local));
                if !own.contains(host) {
                    own.insert(host.to_owned());
                }
            }
            Ok(())
        })?;
        own.retain(|host| !is_any(host));
        Ok(Self(own))
    }

    /// Whether an address, with or without a port, is one of this host.
    pub(crate) fn contains(&self, address: &str) -> bool {
        let host = host(address);
        is_loopback(host) || self.0.contains(host)
    }
}

/// Whether it is an address of this host on every host.
pub(crate) fn is_loopback(host: &str) -> bool {
    host == "::1" || host == "localhost" || host.starts_with("127.") || host.starts_with('/')
}

pub(crate) fn is_any(host: &str) -> bool {
    matches!(host, "" | "0.0.0.0" | "::" | "*")
}

#[cfg(test)]
mod tests {
    use super::{OwnAddresses, host, plain};

    #[test]
    fn both_ends_of_a_connection_are_written_alike() {
        for (address, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
            ("::ffff:10.0.0.7", "10.0.0.7"),
            ("[fe80::1]:80", "[fe80::1]:80"),
            ("fe80::1", "fe80::1"),
            ("db.internal:5432", "db.internal:5432"),
        ] {
            assert_eq!(plain(address), expected);
        }
        assert_eq!(host("[fe80::1]:80"), "fe80::1");
        assert_eq!(host("[::ffff:127.0.0.1]:80"), "127.0.0.1");
    }

    #[test]
    fn loopback_and_recorded_addresses_are_of_this_host() {
        let own = OwnAddresses(std::iter::once("10.0.0.1".to_owned()).collect());
        for address in [
            "127.0.0.53:53",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
            "10.0.0.1:9",
        ] {
            assert!(own.contains(address), "{address}");
        }
        for address in ["10.0.0.10:9", "1.127.0.0:80", "example.org:80"] {
            assert!(!own.contains(address), "{address}");
        }
    }
}
