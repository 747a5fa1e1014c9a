//! CPU of the last slice of each thread, and its migrations since then.

use super::identity::ThreadRef;

#[derive(Debug, Clone, Copy, Default)]
struct LastCpu {
    cpu: Option<i32>,
    /// Recorded migrations since the last slice.
    moves: i32,
}

#[derive(Debug, Default)]
pub(super) struct LastCpus {
    /// By thread slot.
    threads: Vec<LastCpu>,
}

impl LastCpus {
    /// The kernel migrated the thread to another CPU.
    pub(super) fn migrated(&mut self, thread: &ThreadRef) {
        let last = self.of(thread);
        last.moves = last.moves.saturating_add(1);
    }

    /// Starts a slice on `cpu`; returns the migrations since the previous slice. If migrations are
    /// not recorded, two slices on different CPUs count as one.
    pub(super) fn placed(&mut self, thread: &ThreadRef, cpu: i32) -> i32 {
        let last = self.of(thread);
        let elsewhere = last.cpu.is_some_and(|before| before != cpu);
        let moves = last.moves.max(i32::from(elsewhere));
        *last = LastCpu {
            cpu: Some(cpu),
            moves: 0,
        };
        moves
    }

    /// The slot may be reused for another thread.
    pub(super) fn gone(&mut self, thread: &ThreadRef) {
        *self.of(thread) = LastCpu::default();
    }

    fn of(&mut self, thread: &ThreadRef) -> &mut LastCpu {
        let index = thread.index();
        if self.threads.len() <= index {
            self.threads.resize(index + 1, LastCpu::default());
        }
        &mut self.threads[index]
    }
}
