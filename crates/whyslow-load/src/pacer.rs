//! Waits for the scheduled times. tokio's timers have a resolution of one millisecond, in which ten
//! requests of ten thousand per second would start at once; the kernel's timers have nanoseconds.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Poll, Waker};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::clock::Clock;

/// A timer of a thread, shared by its workers.
pub(crate) struct Pacer {
    clock: Clock,
    timer: AsyncFd<OwnedFd>,
    /// Waiting workers with their due times. Turns are taken in order, so the first is due first.
    waiting: RefCell<VecDeque<(u64, Waker)>>,
    /// Current setting of the timer; 0 if unset.
    set_ns: Cell<u64>,
}

impl Pacer {
    pub(crate) fn new(clock: Clock) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self {
            clock,
            timer: of(timer)?,
            waiting: RefCell::default(),
            set_ns: Cell::new(0),
        })
    }

    pub(crate) async fn until(&self, due_ns: u64) {
        let mut is_queued = false;
        poll_fn(|cx| {
            if self.clock.now_ns() >= due_ns {
                return Poll::Ready(());
            }
            if !is_queued {
                is_queued = true;
                let mut waiting = self.waiting.borrow_mut();
                let at = waiting.partition_point(|(ns, _)| *ns <= due_ns);
                waiting.insert(at, (due_ns, cx.waker().clone()));
                if at == 0 {
                    self.set(due_ns);
                }
            }
            Poll::Pending
        })
        .await;
    }

    /// Wakes workers that are due; runs as long as the workers.
    pub(crate) async fn run(&self) -> io::Result<()> {
        loop {
            let mut ready = self.timer.readable().await?;
            let mut expirations = [0; 8];
            match rustix::io::read(self.timer.get_ref(), &mut expirations) {
                Ok(_) | Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
            self.set_ns.set(0);
            let mut waiting = self.waiting.borrow_mut();
            let now = self.clock.now_ns();
            while waiting.front().is_some_and(|(ns, _)| *ns <= now) {
                if let Some((_, waker)) = waiting.pop_front() {
                    waker.wake();
                }
            }
            if let Some((ns, _)) = waiting.front() {
                self.set(*ns);
            }
        }
    }

    fn set(&self, due_ns: u64) {
        if self.set_ns.replace(due_ns) == due_ns {
            return;
        }
        let left = due_ns.saturating_sub(self.clock.now_ns()).max(1);
        let value = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: (left / 1_000_000_000) as i64,
                tv_nsec: (left % 1_000_000_000) as _,
            },
        };
        // Fails only for an invalid timer or time.
        let _ = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &value);
    }
}

/// The replacement requires a promise that the file stays open, in `unsafe`; here an `OwnedFd`
/// without other owners guarantees it.
#[expect(
    deprecated,
    reason = "its replacement is unsafe, for files that others may close"
)]
fn of(timer: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(timer)
}
