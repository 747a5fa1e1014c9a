//! Field offsets of MRI's structures, as a compiler computes them from the headers of each version,
//! on 64 bits. They are the same in all releases of a version, except for one list node.

/// Where the threads of a virtual machine are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Threads {
    /// In the virtual machine: the list, and the holder of the lock.
    Machine { list: u64, holder: u64 },
    /// In ractors, which the virtual machine lists by a node in each.
    Ractors {
        ractors: u64,
        node: u64,
        list: u64,
        holder: u64,
    },
}

/// How a thread refers to its thread id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToTid {
    /// The handle of the thread library.
    Handle(u64),
    Direct(u64),
    /// In the structure of the native thread, which a waiting thread may not have.
    Native(u64, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) threads: Threads,
    pub(super) to_tid: ToTid,
    pub(super) context: u64,
    pub(super) frame_size: u64,
    /// Whether the first line is a Ruby integer of 8 bytes, or 4 bytes.
    pub(super) is_first_object: bool,
    /// In the body of an instruction sequence: the line table, positions, their number, and an
    /// index of them.
    pub(super) infos: u64,
    pub(super) info_size: u64,
    /// Embedded strings have their length in a field, not in their flags.
    pub(super) has_length: bool,
}

const V2_7: Layout = Layout {
    threads: Threads::Machine {
        list: 312,
        holder: 8,
    },
    to_tid: ToTid::Handle(72),
    context: 32,
    frame_size: 56,
    is_first_object: true,
    infos: 120,
    info_size: 8,
    has_length: false,
};

const V3_0: Layout = Layout {
    threads: Threads::Ractors {
        ractors: 8,
        node: 568,
        list: 304,
        holder: 336,
    },
    to_tid: ToTid::Handle(80),
    context: 40,
    ..V2_7
};

const V3_1: Layout = Layout {
    to_tid: ToTid::Direct(88),
    frame_size: 64,
    info_size: 12,
    ..V3_0
};

const V3_2: Layout = Layout {
    to_tid: ToTid::Native(40, 16),
    context: 48,
    is_first_object: false,
    infos: 112,
    has_length: true,
    ..V3_1
};

const V3_3: Layout = Layout {
    threads: Threads::Ractors {
        ractors: 8,
        node: 432,
        list: 256,
        holder: 328,
    },
    to_tid: ToTid::Native(40, 24),
    frame_size: 56,
    ..V3_2
};

const fn v4_0(node: u64) -> Layout {
    Layout {
        threads: Threads::Ractors {
            ractors: 8,
            node,
            list: 184,
            holder: 256,
        },
        ..V3_3
    }
}

impl Layout {
    /// Layout of a version such as `3.1.2`.
    pub(super) fn of(version: &str) -> Option<Self> {
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
        let mut number = || numbers.next().flatten();
        Some(match (number()?, number()?, number()?) {
            (2, 7, _) => V2_7,
            (3, 0, _) => V3_0,
            (3, 1, _) => V3_1,
            (3, 2, _) => V3_2,
            (3, 3 | 4, _) => V3_3,
            (4, 0, 0..=5) => v4_0(360),
            (4, 0, _) => v4_0(368),
            _ => return None,
        })
    }
}
