//! The tables of a recording, one file each.

mod block_io;
mod block_share;
mod cache_fill;
mod callsite;
mod clock_snapshot;
mod counter;
mod cpu;
mod device;
mod device_link;
mod dns_lookup;
mod dns_query;
mod fd_life;
mod file_life;
mod frame;
mod function_call;
mod futex_call;
mod import_log;
mod irq;
mod kernel_work;
mod lock_wait;
mod lost_events;
mod mapping;
mod marker;
mod metadata;
mod mount;
mod net_interface;
mod net_packet;
mod page_count;
mod process;
mod process_view;
mod reclaim;
mod request;
mod request_phase;
mod request_thread;
mod resolver_file;
mod runtime_event;
mod sample_gap;
mod sched_slice;
mod signal;
mod stack_sample;
mod syscall;
mod tcp_connection;
mod thread;
mod thread_comm;
mod thread_state;
mod trace_stat;
mod usdt_event;
mod wakeup;
mod work_item;

pub use block_io::BlockIoRow;
pub use block_share::BlockShareRow;
pub use cache_fill::CacheFillRow;
pub use callsite::CallsiteRow;
pub use clock_snapshot::ClockSnapshotRow;
pub use counter::CounterRow;
pub use cpu::CpuRow;
pub use device::DeviceRow;
pub use device_link::DeviceLinkRow;
pub use dns_lookup::DnsLookupRow;
pub use dns_query::DnsQueryRow;
pub use fd_life::FdLifeRow;
pub use file_life::FileLifeRow;
pub use frame::FrameRow;
pub use function_call::FunctionCallRow;
pub use futex_call::{FUTEX_OPS, FutexCallRow};
pub use import_log::ImportLogRow;
pub use irq::IrqRow;
pub use kernel_work::KernelWorkRow;
pub use lock_wait::LockWaitRow;
pub use lost_events::LostEventsRow;
pub use mapping::MappingRow;
pub use marker::MarkerRow;
pub use metadata::MetadataRow;
pub use mount::MountRow;
pub use net_interface::NetInterfaceRow;
pub use net_packet::NetPacketRow;
pub use page_count::PageCountRow;
pub use process::ProcessRow;
pub use process_view::ProcessViewRow;
pub use reclaim::ReclaimRow;
pub use request::RequestRow;
pub use request_phase::RequestPhaseRow;
pub use request_thread::RequestThreadRow;
pub use resolver_file::ResolverFileRow;
pub use runtime_event::RuntimeEventRow;
pub use sample_gap::SampleGapRow;
pub use sched_slice::SchedSliceRow;
pub use signal::SignalRow;
pub use stack_sample::StackSampleRow;
pub use syscall::SyscallRow;
pub use tcp_connection::TcpConnectionRow;
pub use thread::ThreadRow;
pub use thread_comm::ThreadCommRow;
pub use thread_state::{RUNNABLE_REASONS, THREAD_STATES, ThreadStateRow};
pub use trace_stat::TraceStatRow;
pub use usdt_event::UsdtEventRow;
pub use wakeup::WakeupRow;
pub use work_item::WorkItemRow;

use crate::Table;
use crate::row::{Emit, Row};

/// Value of a column `cut`: events were lost between start and end, which may belong to different
/// operations.
pub const CUT_UNCERTAIN: &str = "lost";

/// Calls `$macro! { RowType field_name, … }` with every table of a recording.
#[macro_export]
macro_rules! for_each_table {
    ($macro:ident) => {
        $macro! {
            SyscallRow syscall, BlockIoRow block_io, BlockShareRow block_share, SchedSliceRow sched_slice,
            ThreadStateRow thread_state, WakeupRow wakeup, SignalRow signal, IrqRow irq, NetPacketRow net_packet,
            TcpConnectionRow tcp_connection,
            RequestRow request, RequestPhaseRow request_phase, RequestThreadRow request_thread,
            FdLifeRow fd_life, FileLifeRow file_life, MappingRow mapping, PageCountRow page_count, CacheFillRow cache_fill, ReclaimRow reclaim, KernelWorkRow kernel_work, WorkItemRow work_item,
            DnsLookupRow dns_lookup, DnsQueryRow dns_query, FunctionCallRow function_call, FutexCallRow futex_call,
            UsdtEventRow usdt_event,
            StackSampleRow stack_sample, SampleGapRow sample_gap, RuntimeEventRow runtime_event, LockWaitRow lock_wait, CallsiteRow callsite, FrameRow frame,
            CounterRow counter, MarkerRow marker, LostEventsRow lost_events, ThreadRow thread,
            ThreadCommRow thread_comm, ProcessRow process, ProcessViewRow process_view, CpuRow cpu, DeviceRow device,
            DeviceLinkRow device_link, MountRow mount, ResolverFileRow resolver_file,
            NetInterfaceRow net_interface, ClockSnapshotRow clock_snapshot,
            ImportLogRow import_log, TraceStatRow trace_stat, MetadataRow metadata
        }
    };
}

macro_rules! declare {
    ($($row:ident $field:ident),+) => {
        /// Every table, in the order of the documentation.
        pub static ALL: &[&Table] = &[$(<$row as Row>::TABLE),+];

        /// Receives rows of every table.
        pub trait EmitAll: $(Emit<$row> +)+ {}
        impl<T: $(Emit<$row> +)+> EmitAll for T {}

        /// Rows of every table in memory, for tests.
        #[derive(Debug, Default)]
        pub struct Collected { $(
            /// Rows of this table, in order of arrival.
            pub $field: Vec<$row>
        ),+ }
        $(impl Emit<$row> for Collected {
            fn emit(&mut self, row: $row) { self.$field.push(row); }
        })+
    };
}
for_each_table!(declare);

/// Returns the table with that name.
pub fn by_name(name: &str) -> Option<&'static Table> {
    ALL.iter().copied().find(|table| table.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    #[test]
    fn every_table_has_the_columns_of_its_shape() {
        for table in ALL {
            let has = |name| table.column(name).is_some();
            match table.shape {
                Shape::Interval => {
                    assert!(has("ts") && has("dur") && has("ts_end"), "{}", table.name);
                }
                Shape::Point => assert!(has("ts") && !has("dur"), "{}", table.name),
                Shape::Entity => {}
            }
            assert!(!has("end"), "{}: `end` is reserved in SQL", table.name);
        }
    }
}
