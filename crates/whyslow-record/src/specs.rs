//! What the BPF programs need to know about each system call: the number of arguments, and which of
//! them point at data to read.

use whyslow_model::syscall::{Abi, Role, call, number_name};

use crate::skeleton::types::call_spec;

/// Calls with a socket address argument, by name and position.
const ADDRESSES: [(&str, u8); 3] = [("connect", 2), ("bind", 2), ("sendto", 5)];
/// Calls that return the peer's address.
const ADDRESSES_OUT: [(&str, u8); 3] = [("accept", 2), ("accept4", 2), ("recvfrom", 5)];
/// Calls that return two descriptors.
const PAIRS_OUT: [(&str, u8); 3] = [("pipe", 1), ("pipe2", 1), ("socketpair", 4)];

/// For every number of a system call table.
pub(crate) fn specs(abi: Abi, specs: &mut [call_spec]) {
    for (nr, spec) in specs.iter_mut().enumerate() {
        *spec = number_name(abi, nr as i64).map_or_else(unknown, of_call);
    }
}

fn unknown() -> call_spec {
    call_spec {
        argc: 6,
        ..call_spec::default()
    }
}

fn of_call(name: &str) -> call_spec {
    let args = call(name).args;
    if args.is_empty() {
        return unknown();
    }
    let place = |wanted| {
        let found = args.iter().position(|arg| arg.role == Some(wanted));
        found.map_or(0, |place| place as u8 + 1)
    };
    let among = |calls: &[(&str, u8)]| {
        let found = calls.iter().find(|(known, _)| *known == name);
        found.map_or(0, |(_, place)| *place)
    };
    call_spec {
        argc: args.len().min(6) as u8,
        text: place(Role::Path),
        text2: place(Role::Path2),
        address: among(&ADDRESSES),
        address_out: among(&ADDRESSES_OUT),
        fds_out: among(&PAIRS_OUT),
        ..call_spec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_where_the_calls_have_them() {
        let check = |name, argc, text, text2| {
            let spec = of_call(name);
            assert_eq!(
                (spec.argc, spec.text, spec.text2),
                (argc, text, text2),
                "{name}"
            );
        };
        check("read", 3, 0, 0);
        check("openat", 4, 2, 0);
        check("open", 3, 1, 0);
        check("renameat2", 5, 2, 4);
        check("no_such_call", 6, 0, 0);
        assert_eq!(of_call("connect").address, 2);
        assert_eq!(of_call("pipe2").fds_out, 1);
        let mut table = [call_spec::default(); 512];
        specs(Abi::X86_64, &mut table);
        assert_eq!((table[257].text, table[0].argc, table[511].argc), (2, 3, 6));
    }
}
