//! Pairs, and the clock offsets derived from them.

use proptest::prelude::*;

use super::*;
use crate::across::rows::{PacketKey, Traced};

/// The `number`th request on a connection.
fn seen(number: i64, begin: Ns, end: Ns) -> Seen {
    Seen {
        id: number,
        begin,
        first: begin + (end - begin) / 2,
        end: Some(end),
        ends: Some((1, 2)),
        traced: Traced::default(),
        is_reused: Some(number > 0),
        bytes_sent: Some(100 + number),
        bytes_received: Some(100 + number),
        is_of_sockets: true,
        utid: None,
        upid: None,
        is_served_here: false,
    }
}

fn rows(issued: &[Seen], served: &[Seen]) -> (Rows, Rows) {
    let mut client = Rows {
        issued: issued.to_vec(),
        ..Rows::default()
    };
    let mut server = Rows {
        served: served.to_vec(),
        ..Rows::default()
    };
    for (place, one) in issued.iter().enumerate() {
        let ends = one.ends.unwrap_or_default();
        client.issued_on.entry(ends).or_default().push(place);
    }
    for (place, one) in served.iter().enumerate() {
        let ends = one.ends.unwrap_or_default();
        server.served_on.entry(ends).or_default().push(place);
    }
    (client, server)
}

/// For each client request, the possible matches, and whether they are sure.
fn joined(issued: &[Seen], served: &[Seen]) -> Vec<(Vec<usize>, bool)> {
    let (client, server) = rows(issued, served);
    let link = Link::new(&client, &server);
    (0..issued.len())
        .map(|place| {
            let pairs = link.pairs(&client, &server, place);
            let is_sure = !pairs.is_empty() && pairs.iter().all(|pair| pair.is_sure);
            (pairs.iter().map(|pair| pair.served).collect(), is_sure)
        })
        .collect()
}

#[test]
fn on_a_connection_whose_begin_both_saw_requests_are_the_same_in_order() {
    let all: Vec<Seen> = (0..3)
        .map(|number| seen(number, 10 * number, 10 * number + 5))
        .collect();
    let sure = |place| (vec![place], true);
    assert_eq!(joined(&all, &all), [sure(0), sure(1), sure(2)]);
    // The server's recording ended earlier, or lost the last request.
    assert_eq!(joined(&all, &all[..2]), [sure(0), sure(1), (vec![], false)]);
    // From the first difference in size on, nothing is sure.
    let mut other = all.clone();
    other[1].bytes_received = Some(7);
    let found = joined(&all, &other);
    assert_eq!(found, [sure(0), (vec![], false), (vec![2], false)]);
}

#[test]
fn of_older_connections_and_used_ports_nothing_is_sure() {
    let all: Vec<Seen> = (0..2)
        .map(|number| seen(number, 10 * number, 10 * number + 5))
        .collect();
    // The server's recording started in the middle: its first request may be any of the same size.
    let mut later = vec![seen(1, 10, 15)];
    later[0].is_reused = None;
    assert_eq!(joined(&all, &later), [(vec![], false), (vec![0], false)]);
    // The port was reused: which of the two connections the server saw is not known.
    let mut again = all.clone();
    again.extend(all.iter().map(|one| Seen {
        id: one.id + 2,
        begin: one.begin + 100,
        end: one.end.map(|end| end + 100),
        ..*one
    }));
    assert!(joined(&again, &all).iter().all(|(_, is_sure)| !is_sure));
    // Requests of different connections do not match.
    let mut elsewhere = all.clone();
    for one in &mut elsewhere {
        one.ends = Some((1, 3));
    }
    assert!(
        joined(&all, &elsewhere)
            .iter()
            .all(|(places, _)| places.is_empty())
    );
}

#[test]
fn spans_that_name_each_other_are_one_request_if_they_are_the_only_ones() {
    let traced = |trace, span, parent| Seen {
        ends: None,
        traced: Traced {
            trace: Some((1, trace)),
            span,
            parent,
        },
        ..seen(0, 0, 5)
    };
    let issued = [traced(1, Some(10), None), traced(2, Some(10), None)];
    let served = [traced(2, Some(11), Some(10)), traced(1, Some(12), Some(10))];
    assert_eq!(joined(&issued, &served), [(vec![1], true), (vec![0], true)]);
    // The request was retried with the same span.
    let twice = [served[0], served[0]];
    assert_eq!(joined(&issued[1..], &twice), [(vec![], false)]);
    // Both sides share the span.
    assert_eq!(
        joined(&issued[..1], &[traced(1, Some(10), None)]),
        [(vec![0], true)]
    );
}

#[test]
fn packets_bound_each_way() {
    let key = |seq| PacketKey {
        source: 1,
        destination: 2,
        seq,
    };
    let here = Packets {
        sent: [(key(1), 100), (key(2), 200)].into_iter().collect(),
        received: [(key(3), 300)].into_iter().collect(),
    };
    let there = Packets {
        sent: [(key(3), 1250)].into_iter().collect(),
        received: [(key(1), 1110), (key(9), 7)].into_iter().collect(),
    };
    let clock = Clock::of(&of_packets(&here, &there, 200));
    let Clock::Within { bounds, pairs, .. } = clock else {
        panic!("{clock:?}");
    };
    // 1110 - 100 and 1250 - 300, each widened by a nanosecond for the time in between.
    assert_eq!((bounds.low_ns, bounds.high_ns, pairs), (949, 1011, 2));
}

proptest! {
    /// Whatever is known about the end of the reply, the bounds contain the true offset.
    #[test]
    fn the_true_difference_lies_within_the_bounds_of_a_pair(
        apart in -1_000_000_000_000_i64..1_000_000_000_000,
        (there, work, back, rest) in (0_i64..1 << 20, 0_i64..1 << 30, 0_i64..1 << 20, 0_i64..1 << 20),
        knows_write in any::<bool>(),
        // The server accepts a new connection late, and may have had it before the request.
        (number, accepting) in (0_i64..2, 0_i64..1 << 20),
        has_all in any::<bool>(),
        at in -1_000_000_000_i64..1_000_000_000,
    ) {
        let (had, gave) = (there, there + work);
        let end = gave + back + rest;
        let issued = Seen {
            first: gave + back,
            bytes_received: Some(if has_all { 100 } else { 50 }),
            ..seen(number, 0, end)
        };
        let begin = if number == 0 { had - accepting } else { had };
        let served = Seen {
            first: had + apart,
            bytes_sent: Some(100),
            ..seen(number, begin + apart, gave + apart + 5)
        };
        let written = knows_write.then_some(gave + apart);
        let found = bounds(&issued, &served, (written, at)).expect("both ends are known");
        prop_assert!(found.low_ns <= apart && apart <= found.high_ns, "{found:?}");
        let log = Seen { is_of_sockets: false, ..served };
        prop_assert_eq!(bounds(&issued, &log, (written, at)), None);
    }
}
