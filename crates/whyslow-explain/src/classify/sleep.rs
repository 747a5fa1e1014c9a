//! Where a sleep leads: the result of each rule.

use crate::blame_target::Reason;
use crate::holders::Piece;
use crate::window_slice::{Segment, Utid};

/// Where a sleep leads.
#[derive(Debug)]
pub(crate) enum Sleep {
    /// Nowhere: this is the cause.
    Is(Reason),
    /// To the request that ended it, possibly through a kernel worker that passed the wakeup on.
    Request {
        id: i64,
        mechanism: Option<&'static str>,
    },
    /// To threads, each for a piece of it.
    For { reason: Reason, pieces: Vec<Piece> },
}

/// The whole sleep was for one thread.
pub(crate) fn follow(sleep: &Segment, waker: Utid, reason: Reason) -> Sleep {
    let piece = Piece {
        utid: waker,
        begin: sleep.begin,
        end: sleep.end,
        grade: reason.grade,
    };
    Sleep::For {
        reason,
        pieces: vec![piece],
    }
}
