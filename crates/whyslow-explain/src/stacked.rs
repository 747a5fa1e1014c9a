//! A wait for I/O of a stacked device (device-mapper, md, bcache): the parts that devices below
//! serve are theirs, and the rest of its time is that of the stacked device.

use whyslow_model::Ns;

use crate::blame_target::{BlameTarget, Object, Proof, Reason};
use crate::blocks::{SUBMIT_NS, Wait};
use crate::report::Grade;
use crate::window_slice::Request;

/// Most devices on top of each other.
const LEVELS_MAX: u32 = 6;

impl Wait<'_> {
    /// Time of I/O that may be passed on to devices below.
    pub(crate) fn of_any(&mut self, request: &Request, range: (Ns, Ns)) {
        self.of_level(request, range, 0);
    }

    fn of_level(&mut self, request: &Request, (begin, end): (Ns, Ns), level: u32) {
        let slice = self.slice;
        if !slice.is_stacked(request) {
            self.through(request, (begin, end));
            return;
        }
        let below = slice.below(request);
        let has_below = !below.is_empty();
        let mut at = begin;
        for lower in below {
            let (from, to) = (lower.begin.max(at), lower.end.min(end));
            if to <= from {
                continue;
            }
            if from > at {
                self.held_by(request, (at, from), has_below);
            }
            // A worker submits it for the thread of the I/O above.
            let lower = Request {
                utid: request.utid,
                is_owner_guessed: request.is_owner_guessed,
                ..*lower
            };
            if level < LEVELS_MAX {
                self.of_level(&lower, (from, to), level + 1);
            } else {
                self.through(&lower, (from, to));
            }
            at = to;
        }
        if end > at {
            self.held_by(request, (at, end), has_below);
        }
    }

    /// Time in which no device below had the request.
    pub(crate) fn held_by(&mut self, upper: &Request, (begin, end): (Ns, Ns), has_below: bool) {
        let reason = if end - begin < SUBMIT_NS {
            // The path through the kernel.
            self.of_request("block_service", upper)
        } else {
            // That nothing below it was busy is only known if requests below were recorded.
            let is_known = has_below || !self.slice.requests.is_empty();
            let grade = if is_known { Grade::B } else { Grade::C };
            Reason::new("device_held", BlameTarget::Device(upper.dev_name), grade)
                .about(Some(Object::Device(upper.dev_name)))
                .by(Proof::Request(upper.id))
        };
        self.push(begin, end, reason);
    }
}
