//! System calls, under the names of all releases of lttng-modules.
//!
//! | release | entry | exit |
//! |---|---|---|
//! | to 2.5 | `sys_X`, `compat_sys_X` | `exit_syscall` |
//! | since 2.6 | `syscall_entry_X`, `compat_syscall_entry_X` | `syscall_exit_X`, `compat_syscall_exit_X` |
//!
//! `X` is the kernel's function name; `unknown` stands for calls newer than the tracer, which are
//! recorded as number and registers. An entry has the input arguments, an exit the output
//! arguments.

use std::sync::LazyLock;

use whyslow_model::event::{Body, SocketAddress, SyscallArgs};
use whyslow_model::syscall::{self, Abi, Call, Role};

use super::net;
use super::value::Value;
use super::{Declared, Facts, Fields};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Enter,
    Exit,
}

/// One event class that is a system call.
#[derive(Debug)]
pub(in crate::importers) struct SyscallClass {
    direction: Direction,
    compat: bool,
    call: Naming,
    /// Role of slot n.
    roles: Vec<Role>,
    /// First slot of [`SOCKET_FIELDS`].
    socket: Option<usize>,
    /// Slot of the returned descriptors.
    fds: Option<usize>,
    /// Slot of the return value.
    ret: Option<usize>,
}

#[derive(Debug)]
enum Naming {
    /// The exit does not name the call.
    Unnamed,
    Named {
        name: Box<str>,
        nr: Option<i32>,
    },
    /// Slots 0 and 1 are number and registers.
    ByNumber {
        abi: Option<Abi>,
    },
}

const NUMBERED_FIELDS: [&str; 2] = ["id", "args"];
const SOCKET_FIELDS: [&str; 4] = ["family", "dport|sport", "v4addr", "v6addr"];
const FDS_FIELDS: &str = "fildes|socket|usockvec";

/// Classification of the event, and the payload fields that it requires, if it is a system call.
pub(in crate::importers) fn classify(
    event: &str,
    payload: &dyn Declared,
    facts: Facts,
) -> Option<(SyscallClass, Vec<String>)> {
    let (direction, compat, name) = parse(event)?;
    let abi = facts.abi.map(|abi| if compat { abi.compat() } else { abi });
    let mut fields = Vec::new();
    let mut class = SyscallClass {
        direction,
        compat,
        call: naming(name, abi),
        roles: Vec::new(),
        socket: None,
        fds: None,
        ret: None,
    };
    if let Naming::ByNumber { .. } = class.call {
        fields.extend(NUMBERED_FIELDS.map(str::to_owned));
    }
    if direction == Direction::Enter {
        for arg in syscall::call(name).args {
            let Some(role) = arg.role else { continue };
            let field = payload.resolve(&arg.fields.join("|"));
            if payload.has(&field) {
                class.roles.push(role);
                fields.push(field);
            }
        }
    } else {
        class.ret = Some(fields.len());
        fields.push("ret".to_owned());
        let field = payload.resolve(FDS_FIELDS);
        if payload.has(&field) {
            class.fds = Some(fields.len());
            fields.push(field);
        }
    }
    if payload.has("v4addr") || payload.has("family") && name != "socket" {
        class.socket = Some(fields.len());
        fields.extend(SOCKET_FIELDS.map(|field| payload.resolve(field)));
    }
    Some((class, fields))
}

/// Direction, compat flag, and the kernel's name; an empty name is unknown.
fn parse(event: &str) -> Option<(Direction, bool, &str)> {
    if event == "exit_syscall" {
        return Some((Direction::Exit, false, ""));
    }
    let (compat, event) = match event.strip_prefix("compat_") {
        Some(event) => (true, event),
        None => (false, event),
    };
    let (direction, name) = if let Some(name) = event.strip_prefix("syscall_entry_") {
        (Direction::Enter, name)
    } else if let Some(name) = event.strip_prefix("syscall_exit_") {
        (Direction::Exit, name)
    } else {
        (Direction::Enter, event.strip_prefix("sys_")?)
    };
    Some((direction, compat, name))
}

fn naming(name: &str, abi: Option<Abi>) -> Naming {
    match name {
        "" => Naming::Unnamed,
        "unknown" => Naming::ByNumber { abi },
        name => {
            let name = syscall::canonical_name(name);
            Naming::Named {
                name: name.into(),
                nr: abi.and_then(|abi| syscall::number_of(abi, name)),
            }
        }
    }
}

impl SyscallClass {
    /// The arguments, if any, are stored in `args`: they are too large to be returned by value for
    /// every event.
    #[inline]
    pub(in crate::importers) fn body<'a>(
        &'a self,
        fields: &Fields<'_, 'a>,
        args: &'a mut Option<SyscallArgs<'a>>,
    ) -> Body<'a> {
        let (name, nr) = match &self.call {
            Naming::Unnamed => (None, None),
            Naming::Named { name, nr } => {
                if !self.roles.is_empty() {
                    self.named_args(fields, args.get_or_insert_default());
                }
                (Some(&**name), *nr)
            }
            Naming::ByNumber { abi } => {
                let nr = fields.i32(0);
                let (name, call) = numbered(*abi, nr);
                if let (Direction::Enter, Some(registers)) =
                    (self.direction, registers(fields.value(1)))
                {
                    let abi = abi.unwrap_or(Abi::X86_64);
                    *args = Some(call.args_of_registers(registers, abi));
                }
                (Some(name), nr)
            }
        };
        if let Some(first) = self.socket {
            args.get_or_insert_default().socket_address = socket_address(fields, first);
        }
        if let Some(Value::Ints(&[first, second])) = self.fds.map(|slot| fields.value(slot)) {
            args.get_or_insert_default().fds = Some([first as i32, second as i32]);
        }
        let args = args.as_ref().unwrap_or(&SyscallArgs::NONE);
        let compat = self.compat;
        match self.direction {
            Direction::Enter => Body::SyscallEnter {
                name: name.unwrap_or(UNKNOWN),
                nr,
                compat,
                args,
            },
            Direction::Exit => Body::SyscallExit {
                name,
                nr,
                compat,
                ret: self.ret.and_then(|slot| fields.i64(slot)),
                args,
                is_timed: true,
            },
        }
    }

    fn named_args<'a>(&self, fields: &Fields<'_, 'a>, args: &mut SyscallArgs<'a>) {
        for (slot, &role) in self.roles.iter().enumerate() {
            match role {
                Role::Path => args.path = fields.bytes(slot),
                Role::Path2 => args.path2 = fields.bytes(slot),
                role => {
                    if let Some(value) = fields.i64(slot) {
                        args.set(role, value);
                    }
                }
            }
        }
    }
}

const UNKNOWN: &str = "unknown";

/// Names and calls by number, built once per ABI: events must not search.
struct Numbers(Vec<(&'static str, &'static Call)>);

/// Numbers below have a name or are shown as numbers; no architecture comes close.
const NUMBER_LIMIT: usize = 1024;

impl Numbers {
    fn new(abi: Option<Abi>) -> Numbers {
        let entry = |nr: usize| {
            let name = abi.and_then(|abi| syscall::number_name(abi, nr as i64));
            let name = name.unwrap_or_else(|| nr.to_string().leak());
            (name, syscall::call(name))
        };
        Numbers((0..NUMBER_LIMIT).map(entry).collect())
    }
}

fn numbered(abi: Option<Abi>, nr: Option<i32>) -> (&'static str, &'static Call) {
    static X86_64: LazyLock<Numbers> = LazyLock::new(|| Numbers::new(Some(Abi::X86_64)));
    static I386: LazyLock<Numbers> = LazyLock::new(|| Numbers::new(Some(Abi::I386)));
    static ARM: LazyLock<Numbers> = LazyLock::new(|| Numbers::new(Some(Abi::Arm)));
    static AARCH64: LazyLock<Numbers> = LazyLock::new(|| Numbers::new(Some(Abi::Aarch64)));
    static NONE: LazyLock<Numbers> = LazyLock::new(|| Numbers::new(None));
    let numbers = match abi {
        Some(Abi::X86_64) => &X86_64,
        Some(Abi::I386) => &I386,
        Some(Abi::Arm) => &ARM,
        Some(Abi::Aarch64) => &AARCH64,
        None => &NONE,
    };
    let index = nr.and_then(|nr| usize::try_from(nr).ok());
    match index.and_then(|index| numbers.0.get(index)) {
        Some(&entry) => entry,
        None => (UNKNOWN, syscall::call(UNKNOWN)),
    }
}

fn registers(value: Value<'_>) -> Option<[u64; 6]> {
    match value {
        Value::Ints(values) => values.try_into().ok(),
        _ => None,
    }
}

fn socket_address<'a>(fields: &Fields<'_, 'a>, first: usize) -> Option<SocketAddress<'a>> {
    const AF_UNSPEC: i32 = 0;
    let port = fields.u64(first + 1).unwrap_or(0) as u16;
    if let Some(address) = fields.bytes(first + 2).and_then(|v4| v4.try_into().ok()) {
        return Some(SocketAddress::Inet { address, port });
    }
    if let Some(address) = net::v6(fields.value(first + 3)) {
        return Some(SocketAddress::Inet6 { address, port });
    }
    let family = fields.i32(first)?;
    (family != AF_UNSPEC).then_some(SocketAddress::Family(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_release_are_taken_apart() {
        use Direction::{Enter, Exit};
        let check = |event, expected| assert_eq!(parse(event), expected, "{event}");
        check("sys_open", Some((Enter, false, "open")));
        check("compat_sys_open", Some((Enter, true, "open")));
        check("exit_syscall", Some((Exit, false, "")));
        check("syscall_entry_openat", Some((Enter, false, "openat")));
        check("syscall_exit_openat", Some((Exit, false, "openat")));
        check(
            "compat_syscall_entry_fcntl64",
            Some((Enter, true, "fcntl64")),
        );
        check("compat_syscall_exit_unknown", Some((Exit, true, "unknown")));
        check("syscall_entry_unknown", Some((Enter, false, "unknown")));
        check("sched_switch", None);
    }

    #[test]
    fn numbers_without_a_name_are_shown_as_numbers() {
        assert_eq!(numbered(Some(Abi::X86_64), Some(332)).0, "statx");
        assert_eq!(numbered(Some(Abi::X86_64), Some(400)).0, "400");
        assert_eq!(numbered(None, Some(332)).0, "332");
        assert_eq!(numbered(Some(Abi::I386), Some(-1)).0, "unknown");
        assert_eq!(numbered(Some(Abi::I386), None).0, "unknown");
    }
}
