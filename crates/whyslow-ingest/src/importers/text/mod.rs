//! Events as lines of text: for tests, bug reports, and sources without an importer.
//!
//! The first line is `whyslow-text 1`. Then follows one line per item; empty lines and lines that
//! start with `#` are ignored.
//!
//! ```text
//! item    = "meta" field                        a fact about the recorded machine
//!         | time cpu [context] name *field      an event
//! time    = digits ["." 1*9digits]              seconds since 1970; may be preceded by "-"
//! cpu     = "[" (digits | "-") "]"              "-" if unknown
//! context = "(" *field ")"                      tid pid ppid comm prio of the running thread, `interrupt` (none, soft, hard) of the CPU
//! field   = key "=" value                       separated by spaces
//! value   = bare | quoted                       bare: no space, quote, backslash or parenthesis
//! quoted  = """ *(char | escape) """
//! escape  = "\" ("n" | "r" | "t" | "\" | """ | "x" 2hex)
//! ```
//!
//! Numbers are decimal, or hexadecimal after `0x`. A missing field is unknown. Event names and
//! their fields, mandatory ones first:
//!
//! | name | fields |
//! |---|---|
//! | `sched_switch` | `prev next prev_state` (`R`, `R+` preempted, `S D T t X Z P I`, or a number), `prev_comm prev_prio next_comm next_prio` |
//! | `sched_waking`, `sched_wakeup`, `sched_wakeup_new` | `tid`, `comm prio target_cpu` |
//! | `sched_migrate` | `tid to_cpu` |
//! | `fork` | `parent child`, `parent_pid parent_comm child_pid child_comm` |
//! | `exec` | `filename`, `tid old_tid` |
//! | `exit` | `tid`, `comm` |
//! | `free` | `tid` |
//! | `comm` | `tid comm` |
//! | `prio` | `tid prio` |
//! | `syscall_enter` | `name`, `nr compat` and arguments |
//! | `syscall_exit` | `name nr compat ret` and arguments, `untimed` (1 if it returned at that time or later) |
//! | `block_bio_queue`, `block_bio_backmerge`, `block_bio_frontmerge`, `block_bio_complete`, `block_bio_remap`, `block_split`, `block_getrq`, `block_rq_insert`, `block_rq_issue`, `block_rq_merge`, `block_rq_requeue`, `block_rq_complete` | `dev` (`8:0`) `sector sectors rwbs` (as the kernel prints it), `bytes tid comm`; completions `error`; remap `old_dev old_sector`; split `new_sector` |
//! | `irq_enter` | `kind` (`hard`, `soft`, `hrtimer`, `ipi`) `nr`, `name` |
//! | `irq_exit` | `kind nr`, `ret` |
//! | `softirq_raise` | `nr` |
//! | `net` | `kind` (`receive`, `queue`, `transmit`) `bytes`, `netif skbaddr ret protocol source destination` (`1.2.3.4:80`, `[::1]:80`, without the port if unknown) `tcp_seq` |
//! | `net_fault` | `kind` (`retransmit`, `retransmit_synack`, `drop`), `skbaddr reason ethertype protocol source destination tcp_seq` |
//! | `page_alloc`, `page_free` | `order` |
//! | `memory` | `kind` (`fault_user`, `fault_kernel`, `cache_add`, `cache_remove`, `reclaim_write`, `kswapd_wakeup`), `order` |
//! | `reclaim_begin` | `kind` (`direct`, `cgroup`, `cgroup_soft`, `node`, `kswapd`), `order node` |
//! | `reclaim_end` | `kind`, `pages node` |
//! | `work` | `kind` (`journal_commit`, `writeback`, `dirty_throttle`, `log_wait`, `reclaim_throttle`, `buffer_stall`), `phase` (`begin`, `end`, `locking`, `flushing`, `logging`, `done`), `dev reason transaction pages dur` |
//! | `work_item` | `phase` (`queued`, `activated`, `begin`, `end`), `work` (an address), `address function workqueue is_worker` |
//! | `stack` | `kind` (`back`, `user`, `sample`) `since` (a time), of `back` `state` (as of a switch), `cpu user_follows`, `kernel user` (functions, innermost first, separated by semicolons, or each preceded by `\n` if a name contains a semicolon) |
//! | `lock_wait` | `kind` (`mutex`, `rwsem`, …) `lock` (an address) `since` (a time), `is_write slept ret kernel user` |
//! | `state_process` | `tid`, `pid ppid comm is_kernel status cpu file_table` |
//! | `state_fd` | `fd`, `pid file_table flags path` |
//! | `state_block_device` | `dev name` |
//! | `state_net_interface` | `name`, `ifindex address` |
//! | `state_irq` | `irq`, `name action` |
//! | `state_end` | |
//! | `counters` | `reported_by values` (`NAME VALUE UNIT;…`), `pid subject interval` (ns): counters reported by another tool; older files have `told_by` instead of `reported_by` |
//! | `lookup_begin` | `function`, `host service`: start of a DNS lookup |
//! | `lookup` | `since` (a time) `function` (`getaddrinfo`, … or `unknown`), `host service code address`: a completed DNS lookup |
//! | `tcp` | `sock` (identifies the connection) `from to` (states: `close`, `syn_sent`, `established`, …), `local peer acked received retransmits rtt_us error` |
//! | `process` | `pid`, `ppid executable command_line uid created` (a time) |
//! | `marker` | `name`, `text` |
//! | `lost` | `kind` (`events`, `packets`, `bytes`), `until` (a time) `count stream`: lost from this time on |
//! | `other` | an event with only a time and context |
//!
//! Arguments of system calls: `fd fd2 dirfd dirfd2 path path2 count offset flags command value
//! address address2 timeout family socket_type`, `sockaddr` (`1.2.3.4:80`, `[::1]:80`, `unix:PATH`, `family:N`),
//! `fds` (`3,4`: returned through memory), `raw` (six registers, separated by commas).

mod line;
mod reader;
mod stacks;
mod values;
mod writer;

pub use line::{LINE_BYTES_MAX, Line};
pub use reader::{EventBuffers, Item, parse};
pub use writer::{write_event, write_loss, write_metadata};

/// First line of a file.
pub const MAGIC: &str = "whyslow-text 1";

#[cfg(test)]
mod tests;
