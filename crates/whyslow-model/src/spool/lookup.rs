//! DNS lookups, as the BPF programs record them.

use super::record::{Cursor, RecordError};
use crate::event::NetAddress;
use crate::lookup::{Function, Outcome};

/// A DNS lookup at its start or end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupRecord<'b> {
    /// Time of the call, CLOCK_MONOTONIC in ns.
    pub entered: u64,
    /// Function that was called.
    pub function: Function,
    /// `None` if no name was passed, or its text could not be read.
    pub host: Option<&'b [u8]>,
    /// Service name or port; `None` if none was passed, or its text could not be read.
    pub service: Option<&'b [u8]>,
    /// `None` at the start.
    pub outcome: Option<Outcome>,
    /// The first address found.
    pub address: Option<NetAddress>,
}

const HOST_BYTES: usize = 256;
const SERVICE_BYTES: usize = 32;
const HAS_HOST: u8 = 1;
const HAS_SERVICE: u8 = 2;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

impl<'b> LookupRecord<'b> {
    pub(super) fn parse(at: &mut Cursor<'b>) -> Result<Self, RecordError> {
        let (entered, ret) = (at.u64()?, at.i32()?);
        let [function, family, scheme, has] = at.array()?;
        let address: [u8; 16] = at.array()?;
        let host = text(at.take(HOST_BYTES)?);
        let service = text(at.take(SERVICE_BYTES)?);
        let [a, b, c, d, ..] = address;
        Ok(Self {
            entered,
            function: Function::by_number(function).ok_or(RecordError::Short(at.kind))?,
            host: (has & HAS_HOST != 0).then_some(host),
            service: (has & HAS_SERVICE != 0).then_some(service),
            outcome: match scheme {
                1 => Some(Outcome::Eai(ret)),
                2 => Some(Outcome::HErrno(ret)),
                3 => Some(Outcome::Errno(ret)),
                4 => Some(Outcome::Unreported),
                _ => None,
            },
            address: match family {
                AF_INET => Some(NetAddress::V4([a, b, c, d])),
                AF_INET6 => Some(NetAddress::V6(address)),
                _ => None,
            },
        })
    }
}

/// The bytes before the first zero byte.
fn text(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, Kind, Record, records};
    use super::*;

    fn encoded(function: u8, scheme: u8, ret: i32) -> Encoder {
        let mut encoder = Encoder::default();
        let record = encoder.begin(Kind::Lookup, 7, (10, 11));
        record.u64(5).u32(ret as u32);
        record.u32(u32::from_le_bytes([function, AF_INET, scheme, HAS_HOST]));
        record
            .u64(u64::from_le_bytes([10, 1, 2, 3, 0, 0, 0, 0]))
            .u64(0);
        let mut host = [b'x'; HOST_BYTES];
        host[..5].copy_from_slice(b"db.a\0");
        for word in host.chunks_exact(8).chain([&[b'9'; 8][..]; 4]) {
            record.u64(u64::from_le_bytes(word.try_into().unwrap()));
        }
        record.end();
        encoder
    }

    #[test]
    fn a_lookup_is_read_as_it_was_written() {
        let encoder = encoded(1, 1, -2);
        let found: Vec<_> = records(encoder.payload()).collect();
        let [(0, Ok((_, Record::Lookup(lookup))))] = found.as_slice() else {
            panic!("{found:?}");
        };
        let expected = LookupRecord {
            entered: 5,
            function: Function::Getaddrinfo,
            host: Some(b"db.a"),
            service: None,
            outcome: Some(Outcome::Eai(-2)),
            address: Some(NetAddress::V4([10, 1, 2, 3])),
        };
        assert_eq!(*lookup, expected);
    }

    #[test]
    fn what_cannot_be_is_damage() {
        let encoder = encoded(9, 1, 0);
        let found: Vec<_> = records(encoder.payload()).collect();
        assert!(
            matches!(found.as_slice(), [(0, Err(RecordError::Short(_)))]),
            "{found:?}"
        );
        // Unterminated texts, cut at every position.
        let encoder = encoded(1, 77, 0);
        for end in 24..encoder.payload().len() {
            let mut bytes = encoder.payload()[..end].to_vec();
            bytes[2..4].copy_from_slice(&(end as u16).to_le_bytes());
            assert!(records(&bytes).all(|(_, record)| record.is_err()), "{end}");
        }
    }
}
