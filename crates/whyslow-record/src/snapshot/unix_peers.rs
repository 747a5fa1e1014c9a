//! Peers of connected Unix sockets, from `sock_diag`: `/proc/net/unix` does not show them, and the
//! socket of a client rarely has a name of its own.
//!
//! Only sockets of the recorder's network namespace are listed.

use std::collections::HashMap;

use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink::SOCK_DIAG,
};

/// Bytes of one reply: the kernel fills at most 32 KiB.
const REPLY_MAX: usize = 1 << 16;
/// Maximum number of sockets.
const SOCKETS_MAX: usize = 1 << 17;

/// `SOCK_DIAG_BY_FAMILY`, `NLM_F_REQUEST | NLM_F_DUMP`.
const BY_FAMILY: u16 = 20;
const DUMP: u16 = 0x301;
/// Connected sockets: a bit per state.
const ESTABLISHED: u32 = 1 << 1;
/// `UDIAG_SHOW_PEER`, and the attribute that it adds.
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;
/// Lengths of `nlmsghdr`, of `unix_diag_msg` after it, and of `nlattr`.
const HEADER: usize = 16;
const MESSAGE: usize = HEADER + 16;
const ATTRIBUTE: usize = 4;

/// The socket at the other end of each connected socket, by their numbers; empty without
/// `CONFIG_UNIX_DIAG`.
pub(super) fn read() -> HashMap<u64, u64> {
    let mut found = HashMap::new();
    // What was read before an error is right.
    let _ = read_into(&mut found);
    found
}

fn read_into(found: &mut HashMap<u64, u64>) -> rustix::io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    let socket = net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        flags,
        Some(SOCK_DIAG),
    )?;
    net::send(&socket, &request(), SendFlags::empty())?;
    let mut reply = vec![0; REPLY_MAX];
    loop {
        // The kernel adds the next part of its list when a part is read, so none is waited for.
        let (_, length) = net::recv(&socket, &mut reply[..], RecvFlags::DONTWAIT)?;
        let is_last = parse(&reply[..length.min(REPLY_MAX)], found);
        if is_last || found.len() >= SOCKETS_MAX {
            return Ok(());
        }
    }
}

fn request() -> Vec<u8> {
    let length = (HEADER + 24) as u32;
    let mut request = Vec::with_capacity(length as usize);
    request.extend(length.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    // Sequence and port numbers, then `unix_diag_req`: family, protocol, padding,
    request.extend([0; 8]);
    request.extend([AddressFamily::UNIX.as_raw() as u8, 0, 0, 0]);
    request.extend(ESTABLISHED.to_ne_bytes());
    // any socket,
    request.extend([0; 4]);
    request.extend(SHOW_PEER.to_ne_bytes());
    // and no cookie.
    request.extend([0xff; 8]);
    request
}

/// Reads the messages of a reply; returns whether it is the last one.
fn parse(mut reply: &[u8], found: &mut HashMap<u64, u64>) -> bool {
    while let Some(length) = int(reply, 0).map(|length| length as usize) {
        let Some(message) = reply.get(..length).filter(|_| length >= HEADER) else {
            return true;
        };
        match short(message, 4) {
            Some(BY_FAMILY) => {
                let number = int(message, HEADER + 4);
                if let Some((number, peer)) = number.zip(peer_in(message)) {
                    found.insert(number.into(), peer.into());
                }
            }
            // The end, or an error.
            _ => return true,
        }
        reply = reply.get(aligned(length)..).unwrap_or_default();
    }
    !reply.is_empty()
}

fn peer_in(message: &[u8]) -> Option<u32> {
    let mut rest = message.get(MESSAGE..)?;
    loop {
        let length = usize::from(short(rest, 0)?);
        if length < ATTRIBUTE {
            return None;
        }
        if short(rest, 2)? == PEER {
            return int(rest.get(..length)?, ATTRIBUTE);
        }
        rest = rest.get(aligned(length)..)?;
    }
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

fn int(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = (HEADER + payload.len()) as u32;
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend([0; 10]);
        message.extend(payload);
        message
    }

    fn socket(number: u32, attributes: &[(u16, u32)]) -> Vec<u8> {
        let mut payload = vec![1, 1, 1, 0];
        payload.extend(number.to_ne_bytes());
        payload.extend([0; 8]);
        for (kind, value) in attributes {
            payload.extend(8u16.to_ne_bytes());
            payload.extend(kind.to_ne_bytes());
            payload.extend(value.to_ne_bytes());
        }
        message(BY_FAMILY, &payload)
    }

    #[test]
    fn peers_are_read_until_the_list_ends() {
        let mut found = HashMap::new();
        let first = [socket(7, &[(9, 1), (PEER, 8)]), socket(9, &[])].concat();
        assert!(!parse(&first, &mut found));
        let last = [socket(8, &[(PEER, 7)]), message(3, &[0; 4])].concat();
        assert!(parse(&last, &mut found));
        assert_eq!(found, HashMap::from([(7, 8), (8, 7)]));
    }

    #[test]
    fn a_damaged_reply_ends_the_list() {
        let mut found = HashMap::new();
        for bytes in [&[1, 0, 0, 0][..], &[255, 255, 0, 0], &message(2, &[0; 4])] {
            assert!(parse(bytes, &mut found));
        }
        let short = socket(7, &[(PEER, 8)]);
        assert!(parse(&short[..short.len() - 2], &mut found));
        assert_eq!(found, HashMap::new());
    }

    #[test]
    fn the_ends_of_a_pair_are_peers() {
        let (one, other) = UnixStream::pair().unwrap();
        let number = |stream: &UnixStream| {
            let link = std::fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd())).unwrap();
            let link = link.to_string_lossy().into_owned();
            let number = link
                .strip_prefix("socket:[")
                .unwrap()
                .strip_suffix(']')
                .unwrap();
            number.parse::<u64>().unwrap()
        };
        let found = read();
        if found.is_empty() {
            return whyslow_testkit::skip(
                whyslow_testkit::Need::Machine,
                "the kernel does not list Unix sockets",
            );
        }
        assert_eq!(found.get(&number(&one)), Some(&number(&other)));
    }
}
