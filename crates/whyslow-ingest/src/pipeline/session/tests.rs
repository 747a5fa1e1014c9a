use std::io;

use whyslow_model::event::Body;

use super::*;
use crate::importers::streamed::{Streamed, Summary};

/// A stream of markers at these times.
struct Marks {
    times: Vec<Ns>,
    /// Number of leading markers that belong to the time before the stream.
    before: usize,
}

impl Streamed for Marks {
    fn next_ts(&mut self) -> io::Result<Option<Ns>> {
        Ok(self.times.first().copied())
    }

    fn next(&mut self, take: &mut dyn FnMut(Item<'_>)) -> io::Result<bool> {
        if self.times.is_empty() {
            return Ok(false);
        }
        let event = mark(self.times.remove(0), "stream");
        if self.before > 0 {
            self.before -= 1;
            take(Item::Before(event));
        } else {
            take(Item::Event(event));
        }
        Ok(true)
    }

    fn progress(&self) -> (u64, u64) {
        (0, 0)
    }

    fn summary(&self) -> Summary {
        Summary::default()
    }
}

fn mark(ts: Ns, text: &str) -> Event<'_> {
    Event {
        ts,
        cpu: None,
        context: whyslow_model::event::Context::default(),
        body: Body::Marker { name: "mark", text },
    }
}

/// Markers in the order of the recording, after those that `feed` passes on itself, and the number
/// of late events.
fn merged(
    (text, streams): (&str, Vec<Marks>),
    feed: impl FnOnce(&mut Session<'_, Collected>),
) -> (Vec<String>, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("marks.txt");
    std::fs::write(&path, format!("whyslow-text 1\n{text}")).expect("written");
    let (mut texts, mut queue) = (TextQueue::default(), StreamQueue::default());
    texts.add(0, &path, 0).expect("a text");
    for (number, stream) in streams.into_iter().enumerate() {
        let label = format!("marks {number}");
        queue.add(label, &path, Box::new(stream)).expect("a stream");
    }
    let (never, mut ignore) = (AtomicBool::new(false), |_: Progress| {});
    let sources = (
        texts,
        ProfileQueue::default(),
        queue,
        RequestQueue::default(),
    );
    let mut session = Session::new(Collected::default(), sources, &never, &mut ignore);
    feed(&mut session);
    let outcome = session.finish().expect("it ends");
    let marks = outcome.sink.marker.iter().map(|row| {
        let text = outcome.symbols.get(row.text);
        format!("{} {text}", row.ts)
    });
    let is_late = |anomaly: &&AnomalyReport| anomaly.name == "TIME_CLAMPED";
    let late = outcome.anomalies.iter().find(is_late);
    (marks.collect(), late.map_or(0, |late| late.count))
}

#[test]
fn sources_of_all_kinds_are_merged_by_time() {
    let text =
        "0.000000050 [-] marker name=mark text=text\n0.000000070 [-] marker name=mark text=text\n";
    let stream = Marks {
        times: vec![10, 60, 110],
        before: 0,
    };
    let (marks, late) = merged((text, vec![stream]), |session| {
        let _ = session.event(mark(100, "trace"));
    });
    assert_eq!(
        marks,
        [
            "10 stream",
            "50 text",
            "60 stream",
            "70 text",
            "100 trace",
            "110 stream"
        ]
    );
    assert_eq!(late, 0);
}

/// An event in progress at the start of one source takes its place among earlier events of the
/// others.
#[test]
fn what_began_before_one_source_is_no_later_than_others_tell() {
    let text =
        "0.000000005 [-] marker name=mark text=text\n0.000000025 [-] marker name=mark text=text\n";
    let (marks, late) = merged((text, Vec::new()), |session| {
        let _ = session.event(mark(20, "trace"));
        let _ = session.event_before(mark(30, "before"));
        let _ = session.event(mark(40, "trace"));
    });
    assert_eq!(
        marks,
        ["5 text", "20 trace", "25 text", "30 before", "40 trace"]
    );
    assert_eq!(late, 0);
}

#[test]
fn a_range_does_not_begin_with_what_began_before_it() {
    let stream = Marks {
        times: vec![3, 5, 9],
        before: 1,
    };
    let mut range = (0, 0);
    let (marks, _) = merged(("", vec![stream]), |session| {
        let _ = session.event(mark(7, "trace"));
        range = session.sorter.range();
    });
    assert_eq!(marks, ["3 stream", "5 stream", "7 trace", "9 stream"]);
    assert_eq!(range, (5, 7));
}
