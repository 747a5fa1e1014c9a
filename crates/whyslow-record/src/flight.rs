//! The flight recorder: recent records are kept in memory, and handed over when a condition is met
//! or on request.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use crate::block_writer::Out;
use crate::clock;
use crate::error::RecordError;
use crate::heap;
use crate::options::Options;
use crate::ring::{Ring, Window};
use crate::session::{self, Drained, Progress, Ready, Session, Summary};
use crate::when::{Term, Trigger, Watcher, abi_here};

/// Chapters per length of time that is kept …
const CHAPTERS: u32 = 4;
/// … unless they would be shorter than this, because snapshots have a cost, or memory fills sooner.
const CHAPTER_MIN: Duration = Duration::from_secs(10);
const FULL_CHAPTER_MIN: Duration = Duration::from_secs(2);
/// Interval of checks for what no record reports.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// What a flight recorder keeps, and when it hands it over.
#[derive(Debug, Clone)]
pub struct FlightOptions {
    /// Time to keep at least, if memory suffices.
    pub length: Duration,
    /// Memory for it, compressed. A window being written takes up to the same amount again.
    pub bytes_max: u64,
    /// Conditions, any of which triggers.
    pub when: Vec<Term>,
    /// Time after the trigger that is handed over as well.
    pub after: Duration,
    /// Time after a window was handed over in which conditions are ignored.
    pub cooldown: Duration,
}

/// Events of a flight recording.
#[derive(Debug)]
pub enum News<'n> {
    /// Many times a second.
    At(&'n Progress),
    /// A condition was met: the window follows once the time after it has passed.
    Triggered(&'n Trigger),
    /// Number of further conditions met during the last cool-down.
    Ignored(u64),
    /// A window to write elsewhere, while the recording continues.
    Window(Window),
    /// The window of the end, which nothing follows.
    Last(Window),
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlightStep {
    /// Continue recording.
    GoOn,
    /// Hand over everything kept, immediately.
    Save,
    /// Ignore this process in conditions.
    PassOver(i32),
    /// Stop; a window that was already triggered is still handed over.
    End,
    /// The same, but hand over everything kept also if nothing triggered it, because of this signal.
    SaveAndEnd(&'static str),
}

/// Records into memory until `each` returns [`FlightStep::End`].
pub fn fly(
    options: &Options,
    flight: &FlightOptions,
    ready: impl FnOnce(&Ready<'_>),
    each: impl FnMut(News<'_>) -> FlightStep,
) -> Result<Summary, RecordError> {
    // Saving happens in a separate process, whose import does not affect this one's heap.
    heap::set();
    let ring = Out::Ring(Ring::new(flight.length, flight.bytes_max));
    let mut storage = MaybeUninit::uninit();
    let session = Session::begin(options, &mut storage, |_| Ok(ring))?;
    let watcher = Watcher::new(&flight.when, abi_here(), flight.length);
    session.sink.borrow_mut().watcher = Some(watcher);
    ready(&session.ready());
    let mut flight = Flight {
        session,
        options: flight,
        each,
        pilot: Pilot::default(),
        is_requested: false,
        is_over: false,
        ended_by: None,
        checked: Instant::now(),
    };
    loop {
        let drained = flight.step()?;
        if flight.is_over {
            break;
        }
        session::pause(drained);
    }
    let ended = flight.ended_by.map(|signal| Trigger {
        term: None,
        what: format!("the recorder was stopped by {signal}"),
        ts: clock::monotonic(),
        operation: None,
    });
    if let Some(trigger) = flight.pilot.take_waiting().or(ended) {
        // Without its snapshot, the names of most processes would be unknown.
        flight.session.take_snapshot(true)?;
        if let Some(window) = flight.session.window(trigger)? {
            flight.notify(News::Last(window));
        }
    }
    let ignored = flight.pilot.take_ignored();
    if ignored > 0 {
        flight.notify(News::Ignored(ignored));
    }
    flight.session.finish()
}

struct Flight<'f, 'o, E> {
    session: Session<'o>,
    options: &'f FlightOptions,
    each: E,
    pilot: Pilot,
    is_requested: bool,
    is_over: bool,
    ended_by: Option<&'static str>,
    checked: Instant,
}

impl<E: FnMut(News<'_>) -> FlightStep> Flight<'_, '_, E> {
    /// One iteration.
    fn step(&mut self) -> Result<Drained, RecordError> {
        let drained = self.session.drain()?;
        self.session.watch();
        self.session.take_snapshot(false)?;
        if self.session.has_snapshot() && self.is_chapter_over() {
            self.session.next_chapter()?;
        }
        let now = Instant::now();
        if now - self.checked >= CHECK_INTERVAL {
            self.checked = now;
            let length = self.options.length;
            self.watch(|watcher| watcher.check_pending(clock::monotonic(), length));
        }
        let progress = self.session.progress();
        self.notify(News::At(&progress));
        for trigger in self.watch(Watcher::take_fired) {
            if self.pilot.fired(&trigger, now, self.options) {
                self.notify(News::Triggered(&trigger));
            }
        }
        if self.session.has_snapshot() {
            let is_requested = std::mem::take(&mut self.is_requested);
            let requested = (is_requested || !self.session.saves.is_empty())
                .then(|| Trigger::requested(clock::monotonic()));
            if let Some(trigger) = requested.or_else(|| self.pilot.due(now)) {
                self.hand_over(trigger, now)?;
            }
        }
        self.session.serve()?;
        Ok(drained)
    }

    fn watch<T: Default>(&mut self, action: impl FnOnce(&mut Watcher) -> T) -> T {
        let mut sink = self.session.sink.borrow_mut();
        sink.watcher.as_mut().map(action).unwrap_or_default()
    }

    fn is_chapter_over(&self) -> bool {
        let age = self.session.chapter_age();
        let length = (self.options.length / CHAPTERS).max(CHAPTER_MIN);
        let sink = self.session.sink.borrow();
        let is_full = matches!(&sink.out, Out::Ring(ring) if ring.is_chapter_full());
        age >= length || is_full && age >= FULL_CHAPTER_MIN
    }

    fn hand_over(&mut self, trigger: Trigger, now: Instant) -> Result<(), RecordError> {
        // A save on request does not start the cool-down.
        let is_condition = trigger.term.is_some();
        if let Some(mut window) = self.session.window(trigger)? {
            window.requests = std::mem::take(&mut self.session.saves);
            self.notify(News::Window(window));
        }
        if is_condition {
            let ignored = self.pilot.handed_over(now, self.options);
            if ignored > 0 {
                self.notify(News::Ignored(ignored));
            }
        }
        Ok(())
    }

    fn notify(&mut self, news: News<'_>) {
        match (self.each)(news) {
            FlightStep::GoOn => {}
            FlightStep::Save => self.is_requested = true,
            FlightStep::PassOver(pid) => self.watch(|watcher| watcher.ignore_process(pid)),
            FlightStep::End => self.is_over = true,
            FlightStep::SaveAndEnd(signal) => {
                self.is_over = true;
                self.ended_by = Some(signal);
            }
        }
    }
}

/// What to do about conditions that were met.
#[derive(Debug, Default)]
struct Pilot {
    /// To be handed over at that time.
    waiting: Option<(Instant, Trigger)>,
    cool_until: Option<Instant>,
    /// Number of conditions met meanwhile.
    ignored: u64,
}

impl Pilot {
    /// Whether the condition leads to a window.
    fn fired(&mut self, trigger: &Trigger, now: Instant, options: &FlightOptions) -> bool {
        let is_cooling = self.cool_until.is_some_and(|until| now < until);
        if self.waiting.is_some() {
            // The pending window will include it.
            return false;
        }
        if is_cooling {
            self.ignored += 1;
            return false;
        }
        self.waiting = Some((now + options.after, trigger.clone()));
        true
    }

    fn due(&mut self, now: Instant) -> Option<Trigger> {
        self.waiting.as_ref().filter(|(due, _)| *due <= now)?;
        self.take_waiting()
    }

    fn take_waiting(&mut self) -> Option<Trigger> {
        self.waiting.take().map(|(_, trigger)| trigger)
    }

    /// Returns how many were ignored since the last call.
    fn handed_over(&mut self, now: Instant, options: &FlightOptions) -> u64 {
        self.cool_until = now.checked_add(options.cooldown);
        self.take_ignored()
    }

    fn take_ignored(&mut self) -> u64 {
        std::mem::take(&mut self.ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(after: u64, cooldown: u64) -> FlightOptions {
        FlightOptions {
            length: Duration::from_mins(1),
            bytes_max: 1 << 20,
            when: Vec::new(),
            after: Duration::from_secs(after),
            cooldown: Duration::from_secs(cooldown),
        }
    }

    fn trigger(ts: u64) -> Trigger {
        Trigger::requested(ts)
    }

    #[test]
    fn the_first_condition_counts_and_others_are_passed_over_for_a_while() {
        let options = options(5, 60);
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut pilot = Pilot::default();
        assert!(pilot.fired(&trigger(1), at(0), &options));
        assert!(!pilot.fired(&trigger(2), at(1), &options));
        assert_eq!(pilot.due(at(4)), None);
        assert_eq!(pilot.due(at(5)), Some(trigger(1)));
        assert_eq!(pilot.handed_over(at(5), &options), 0);
        assert_eq!(pilot.due(at(6)), None);
        assert!(!pilot.fired(&trigger(3), at(6), &options));
        assert!(!pilot.fired(&trigger(4), at(64), &options));
        assert!(pilot.fired(&trigger(5), at(65), &options));
        assert_eq!(pilot.due(at(70)), Some(trigger(5)));
        assert_eq!(pilot.handed_over(at(70), &options), 2);
    }
}
