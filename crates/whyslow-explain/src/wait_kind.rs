//! What a sleep can have been for, by its own stack and call.
//!
//! The context of a wakeup shows what happened on the waking CPU, which need not be what the thread
//! waited for: packets are processed at the end of a disk interrupt, too. The thread's own stack
//! decides where it was recorded, else its system call. A mechanism that such a wait cannot have is
//! not considered.
//!
//! | kind | functions | calls | what can end it |
//! |---|---|---|---|
//! | disk | io_schedule, bit and folio waits, tags | – | a block request, the thread that unlocks the page |
//! | kernel lock | mutex, rwsem, percpu_rwsem | – | the thread that unlocks it |
//! | file lock | posix and flock locks | flock, fcntl | the thread that unlocks it |
//! | futex | futex_wait | futex* | a thread of the program, its own timeout |
//! | send | sk_stream_wait_memory, unix_wait_for_peer | send*, write* of a socket | the peer, which has to read |
//! | receive | sk_wait_data, accept, connect | recv*, read*, accept*, connect of a socket | the peer |
//! | pipe | pipe_read, pipe_write | read*, write* of a pipe | the other end |
//! | poll | ep_poll, do_poll, do_select | poll*, select*, epoll_* | anything, of requests only its own |
//! | timer | do_nanosleep, msleep | nanosleep | a timer |
//! | child | do_wait, wait_for_vfork_done | wait* | the child |
//! | frozen | freezer | – | the thread that thaws the cgroup |
//! | fuse | request_wait_answer | – | the daemon of the file system |

use crate::blame_target::{BlameTarget, Object, Reason};
use crate::report::Grade;
use crate::window_slice::{Call, Context, Request, Segment, Utid, WindowSlice};

const ETIMEDOUT: i32 = 110;
const EAGAIN: i32 = 11;

/// What a thread waits for, and how that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) kind: WaitKind,
    /// Its own stack shows it; otherwise its call does, in which it may also wait for a page.
    pub(crate) is_by_stack: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitKind {
    Disk,
    KernelLock,
    FileLock,
    Futex,
    Send,
    Receive,
    Pipe,
    Poll,
    Timer,
    Child,
    Frozen,
    Fuse,
    /// Neither the stack nor the call shows it.
    Unknown,
}

use WaitKind::{
    Child, Disk, FileLock, Frozen, Fuse, Futex, KernelLock, Pipe, Poll, Receive, Send, Timer,
};

/// Kernel functions, by prefix, in which a thread sleeps for one reason only. Functions that only
/// call these are not listed: `tcp_sendmsg` may wait for the socket or, in a page fault, for a disk.
const FUNCTIONS: &[(&str, WaitKind)] = &[
    ("io_schedule", Disk),
    ("bit_wait_io", Disk),
    ("folio_wait_bit", Disk),
    ("wait_on_page_bit", Disk),
    ("blk_mq_get_tag", Disk),
    ("rq_qos_wait", Disk),
    ("submit_bio_wait", Disk),
    ("__wait_on_buffer", Disk),
    ("__mutex_lock", KernelLock),
    ("mutex_lock", KernelLock),
    ("rwsem_down", KernelLock),
    ("__down_read", KernelLock),
    ("__down_write", KernelLock),
    ("percpu_rwsem_wait", KernelLock),
    ("__percpu_down_read", KernelLock),
    ("rt_mutex", KernelLock),
    ("flock_lock_inode_wait", FileLock),
    ("posix_lock_inode_wait", FileLock),
    ("locks_lock_inode_wait", FileLock),
    ("do_lock_file_wait", FileLock),
    ("fcntl_setlk", FileLock),
    ("futex_wait", Futex),
    ("futex_lock_pi", Futex),
    ("__futex_wait", Futex),
    ("sk_stream_wait_memory", Send),
    ("sk_stream_wait_close", Send),
    ("sock_wait_for_wmem", Send),
    ("sock_alloc_send_pskb", Send),
    ("unix_wait_for_peer", Send),
    ("sk_wait_data", Receive),
    ("unix_stream_data_wait", Receive),
    ("unix_stream_read_generic", Receive),
    ("__skb_wait_for_more_packets", Receive),
    ("inet_csk_wait_for_connect", Receive),
    ("inet_csk_accept", Receive),
    ("inet_wait_for_connect", Receive),
    ("__inet_stream_connect", Receive),
    ("sk_stream_wait_connect", Receive),
    ("pipe_read", Pipe),
    ("pipe_write", Pipe),
    ("pipe_wait", Pipe),
    ("anon_pipe_read", Pipe),
    ("anon_pipe_write", Pipe),
    ("wait_for_partner", Pipe),
    ("ep_poll", Poll),
    ("do_poll", Poll),
    ("do_sys_poll", Poll),
    ("do_select", Poll),
    ("poll_schedule_timeout", Poll),
    ("do_nanosleep", Timer),
    ("hrtimer_nanosleep", Timer),
    ("msleep", Timer),
    ("usleep_range", Timer),
    // Of completions.
    ("do_wait_for", WaitKind::Unknown),
    ("do_wait", Child),
    ("wait_for_vfork_done", Child),
    ("do_freezer_trap", Frozen),
    ("__refrigerator", Frozen),
    ("cgroup_enter_frozen", Frozen),
    ("request_wait_answer", Fuse),
    ("fuse_request_wait", Fuse),
];

impl Wait {
    /// Of a sleep, by its stack where that shows it, else by its call.
    pub(crate) fn of(slice: &WindowSlice, sleep: &Segment, call: Option<&Call>) -> Self {
        let by_call = |kind| Self {
            kind,
            is_by_stack: false,
        };
        if let Some(stack) = slice.stack_at(sleep.utid, (sleep.begin, sleep.end)) {
            let functions = slice.functions(stack.callsite);
            let mut names = functions.iter().map(|id| slice.text(*id));
            if let Some(kind) = names.find_map(of_function) {
                return Self {
                    kind,
                    is_by_stack: true,
                };
            }
        }
        by_call(call.map_or(WaitKind::Unknown, |call| {
            let class = call.fd_class.map_or("", |class| slice.text(class));
            of_call(slice.text(call.name), class)
        }))
    }

    /// Whether the completion of a block request can have ended the wait.
    pub(crate) fn may_end_with(self, sleep: &Segment, request: &Request) -> bool {
        let is_own = request.utid == Some(sleep.utid);
        match self.kind {
            Disk | WaitKind::Unknown => true,
            // Events of asynchronous I/O.
            Poll => is_own,
            // A call may have to read a page first.
            _ => is_own && !self.is_by_stack,
        }
    }

    /// The reason of a wait that a thread ended and that only one kind of thing can end, although
    /// nothing identifies it on both sides.
    pub(crate) fn by_thread(
        self,
        slice: &WindowSlice,
        (sleep, call): (&Segment, Option<&Call>),
        waker: Utid,
    ) -> Option<Reason> {
        let target = BlameTarget::Thread(waker);
        let other = slice.call_at(waker, sleep.end);
        let name = other.map_or("", |other| slice.text(other.name));
        // A signal ends most waits.
        if matches!(
            name,
            "kill"
                | "tkill"
                | "tgkill"
                | "rt_sigqueueinfo"
                | "rt_tgsigqueueinfo"
                | "pidfd_send_signal"
        ) {
            return None;
        }
        let path = call.and_then(|call| call.path);
        let is_same = path.is_some() && path == other.and_then(|other| other.path);
        let is_kernel = slice.thread_table.is_kernel(waker);
        // Packets wake in the context of whichever thread they interrupt.
        let is_peer = self.is_by_stack && sleep.context == Context::Task && !is_kernel;
        let mechanism = match self.kind {
            WaitKind::FileLock => {
                let is_seen = is_same && matches!(name, "fcntl" | "flock" | "close");
                let grade = if is_seen { Grade::A } else { Grade::B };
                let reason = Reason::new("lock_file", target, grade);
                return Some(reason.about(path.map(Object::File)));
            }
            WaitKind::Fuse => "fuse_wait",
            WaitKind::KernelLock => "lock_kernel",
            // Without a stack, the call may have waited for something else.
            WaitKind::Pipe if self.is_by_stack => "pipe_wait",
            WaitKind::Send | WaitKind::Receive if is_peer => "local_ipc",
            _ => return None,
        };
        let grade = if is_kernel { Grade::C } else { Grade::B };
        let object = match self.kind {
            WaitKind::KernelLock => None,
            _ => path.map(Object::File),
        };
        Some(Reason::new(mechanism, target, grade).about(object))
    }

    /// Whether the wait is for the other end of a socket.
    pub(crate) fn is_for_socket(self) -> bool {
        matches!(self.kind, Send | Receive)
    }
}

fn of_function(name: &str) -> Option<WaitKind> {
    let found = FUNCTIONS
        .iter()
        .find(|(prefix, _)| name.starts_with(prefix));
    found.map(|(_, kind)| *kind)
}

fn of_call(name: &str, class: &str) -> WaitKind {
    let is_socket = matches!(class, "inet" | "inet6" | "unix" | "socket");
    match name {
        "futex" | "futex_wait" | "futex_waitv" => Futex,
        "flock" | "fcntl" => FileLock,
        "nanosleep" | "clock_nanosleep" => Timer,
        "wait4" | "waitid" | "waitpid" | "vfork" => Child,
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait"
        | "epoll_pwait2" => Poll,
        "accept" | "accept4" | "recvfrom" | "recvmsg" | "recvmmsg" => Receive,
        "connect" if is_socket => Receive,
        "sendto" | "sendmsg" | "sendmmsg" => Send,
        "read" | "readv" if is_socket => Receive,
        "write" | "writev" if is_socket => Send,
        "read" | "readv" | "write" | "writev" if class == "pipe" => Pipe,
        _ => WaitKind::Unknown,
    }
}

/// Whether the return value of a call indicates a timeout.
pub(crate) fn has_expired(slice: &WindowSlice, call: &Call) -> bool {
    match slice.text(call.name) {
        "nanosleep" | "clock_nanosleep" => call.ret == Some(0),
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait"
        | "epoll_pwait2" | "io_getevents" | "io_pgetevents" => call.ret == Some(0),
        "futex" | "futex_wait" | "futex_waitv" => call.errno == Some(ETIMEDOUT),
        "recvfrom" | "recvmsg" | "recvmmsg" | "read" | "accept" | "accept4" | "semtimedop"
        | "rt_sigtimedwait" | "mq_timedreceive" => call.errno == Some(EAGAIN),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_known_function_decides() {
        let kind = |stack: &str| stack.split(';').find_map(of_function);
        let send = "schedule;schedule_timeout;wait_woken;sk_stream_wait_memory;tcp_sendmsg_locked";
        assert_eq!(kind(send), Some(Send));
        // A page of the buffer that is sent had to be read first.
        let fault = "schedule;io_schedule;folio_wait_bit_common;filemap_fault;tcp_sendmsg_locked";
        assert_eq!(kind(fault), Some(Disk));
        assert_eq!(kind("schedule;synchronize_rcu;deactivate_super"), None);
        assert_eq!(
            kind("schedule;do_freezer_trap;get_signal;ep_poll"),
            Some(Frozen)
        );
    }

    #[test]
    fn a_call_decides_only_with_the_class_of_its_file() {
        assert_eq!(of_call("write", "inet"), Send);
        assert_eq!(of_call("write", "pipe"), Pipe);
        for class in ["file", "", "dev"] {
            assert_eq!(of_call("write", class), WaitKind::Unknown, "{class}");
        }
        assert_eq!(of_call("sendto", ""), Send);
        assert_eq!(of_call("fsync", "file"), WaitKind::Unknown);
    }
}
