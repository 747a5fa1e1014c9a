//! State before the recording: `lttng_statedump_*`.
//!
//! Since lttng-modules 2.12 descriptors belong to a file table, whose address is also in the thread
//! records; before, to a process. Namespaces moved from the thread record to events of their own,
//! which have no table.

use whyslow_model::event::{Body, StateProcess};

use crate::importers::tracepoint::{Fields, Mapping};

pub(super) static EVENTS: &[Mapping] = &[
    Mapping {
        names: &["lttng_statedump_process_state"],
        fields: &[
            "tid",
            "pid",
            "ppid",
            "name",
            "type",
            "status",
            "cpu",
            "file_table_address",
        ],
        body: process,
    },
    Mapping {
        names: &["lttng_statedump_file_descriptor"],
        fields: &["pid", "file_table_address", "fd", "flags", "filename"],
        body: descriptor,
    },
    Mapping {
        names: &["lttng_statedump_block_device"],
        fields: &["dev", "diskname"],
        body: block_device,
    },
    Mapping {
        names: &["lttng_statedump_network_interface"],
        fields: &["name", "address_ipv4|address"],
        body: net_interface,
    },
    Mapping {
        names: &["lttng_statedump_interrupt"],
        fields: &["irq", "name", "action"],
        body: interrupt,
    },
    Mapping {
        names: &["lttng_statedump_end"],
        fields: &[],
        body: end,
    },
];

fn process<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    const KERNEL_THREAD: i64 = 1;
    Some(Body::StateProcess(StateProcess {
        tid: fields.i32(0)?,
        pid: fields.i32(1),
        ppid: fields.i32(2),
        comm: fields.bytes(3),
        is_kernel: fields.i64(4).map(|kind| kind == KERNEL_THREAD),
        status: fields.i64(5),
        cpu: fields.i32(6),
        file_table: fields.u64(7),
    }))
}

fn descriptor<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::StateFd {
        pid: fields.i32(0),
        file_table: fields.u64(1),
        fd: fields.i32(2)?,
        flags: fields.i64(3),
        path: fields.name(4),
    })
}

fn block_device<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::StateBlockDevice {
        dev: fields.i64(0)?,
        name: fields.bytes(1)?,
    })
}

fn net_interface<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    // declared big-endian: the first byte of the address is the most significant one
    let address = fields.u64(1).map(|address| (address as u32).to_be_bytes());
    Some(Body::StateNetInterface {
        name: fields.bytes(0)?,
        ifindex: None,
        address: address.filter(|address| *address != [0; 4]),
    })
}

fn interrupt<'a>(fields: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::StateIrq {
        irq: fields.i32(0)?,
        name: fields.name(1),
        action: fields.name(2),
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "all functions of the table have this signature"
)]
fn end<'a>(_: &Fields<'_, 'a>) -> Option<Body<'a>> {
    Some(Body::StateEnd)
}
