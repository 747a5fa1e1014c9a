//! On which CPU each thread last had a slice, and how often it was moved since.

use super::identity::ThreadRef;

#[derive(Debug, Clone, Copy, Default)]
struct Seat {
    cpu: Option<i32>,
    /// Recorded moves since the last slice.
    moves: i32,
}

#[derive(Debug, Default)]
pub(super) struct Seats {
    /// By slot.
    seats: Vec<Seat>,
}

impl Seats {
    /// The kernel moved the thread to another CPU's queue.
    pub(super) fn moved(&mut self, thread: &ThreadRef) {
        let seat = self.of(thread);
        seat.moves = seat.moves.saturating_add(1);
    }

    /// A slice on `cpu` follows; tells the moves since the one before. Where moves are not
    /// recorded, two slices on different CPUs tell of one.
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

    /// Its slot is another thread's from now on.
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
