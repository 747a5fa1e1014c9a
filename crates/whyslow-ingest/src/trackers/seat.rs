//! CPU of the last slice of each thread, and its migrations since then.

use super::identity::ThreadRef;

#[derive(Debug, Clone, Copy, Default)]
struct Seat {
    cpu: Option<i32>,
    /// Recorded migrations since the last slice.
    moves: i32,
}

#[derive(Debug, Default)]
pub(super) struct Seats {
    /// By thread slot.
    seats: Vec<Seat>,
}

impl Seats {
    /// The kernel migrated the thread to another CPU.
    pub(super) fn moved(&mut self, thread: &ThreadRef) {
        let seat = self.of(thread);
        seat.moves = seat.moves.saturating_add(1);
    }

    /// Starts a slice on `cpu`; returns the migrations since the previous slice. If migrations are
    /// not recorded, two slices on different CPUs count as one.
    pub(super) fn sat(&mut self, thread: &ThreadRef, cpu: i32) -> i32 {
        let seat = self.of(thread);
        let elsewhere = seat.cpu.is_some_and(|before| before != cpu);
        let moves = seat.moves.max(i32::from(elsewhere));
        *seat = Seat {
            cpu: Some(cpu),
            moves: 0,
        };
        moves
    }

    /// The slot may be reused for another thread.
    pub(super) fn gone(&mut self, thread: &ThreadRef) {
        *self.of(thread) = Seat::default();
    }

    fn of(&mut self, thread: &ThreadRef) -> &mut Seat {
        let index = thread.index();
        if self.seats.len() <= index {
            self.seats.resize(index + 1, Seat::default());
        }
        &mut self.seats[index]
    }
}
