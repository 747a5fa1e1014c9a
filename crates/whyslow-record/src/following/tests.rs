//! Both sides, over a socket pair.

use std::path::Path;

use tempfile::TempDir;
use whyslow_model::spool::{Block, Record, records};

use super::*;
use crate::following::{FollowError, Following, Purpose};
use crate::marks::FOLLOW;
use crate::packed::Packer;
use crate::session::Step;

const HEAD: usize = whyslow_model::spool::BLOCK_BYTES;

fn about() -> About {
    About {
        purpose: Purpose::Record,
        topics: [].into(),
        is_of_all: true,
    }
}

/// A block with this number of marks of noise.
fn block(complete_until: u64, marks: u32) -> Packed {
    let mut encoder = Encoder::default();
    let mut noise = complete_until | 1;
    for _ in 0..marks {
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (noise >> 56) as u8
        })
        .take(1000)
        .collect();
        let mark = encoder.begin(Kind::Mark, complete_until, (1, 1));
        mark.text(&bytes).end();
    }
    let mut packer = Packer::new().expect("memory");
    packer.pack_all(&encoder, complete_until).expect("memory")
}

/// The server with one follower, and the follower's end of the connection.
fn met() -> (Followers, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a socket");
    ours.set_nonblocking(true).expect("a socket");
    let mut followers = Followers::new(&about());
    assert!(followers.admit(NewFollower {
        stream: ours,
        pid: 77,
    }));
    (followers, theirs)
}

/// Number, records and `complete_until` of each block of a spool.
fn blocks(spool: &Path) -> Vec<(u64, u32, u64)> {
    let file = std::fs::read(spool.join("000001.blocks")).expect("it was made");
    let mut blocks = Vec::new();
    let mut rest = file.as_slice();
    while let Some(head) = rest.first_chunk::<HEAD>() {
        let block = Block::parse(head).expect("a block");
        rest = &rest[HEAD + block.payload_bytes as usize..];
        blocks.push((block.number, block.records, block.complete_until));
    }
    assert!(rest.is_empty());
    blocks
}

/// A recorder that sends two segments and then ends.
fn hand_on(followers: &mut Followers) {
    // What a recorder receives before it knows that the client is a follower.
    let mut stream = &followers.each[0].stream;
    stream.set_nonblocking(false).expect("a socket");
    let mut hello = [0; FOLLOW.len()];
    stream.read_exact(&mut hello).expect("it greets");
    assert_eq!(&hello, FOLLOW);
    stream.set_nonblocking(true).expect("a socket");
    for segment in 0..3_u64 {
        let at = 100 * segment;
        let id = loop {
            match followers.poll() {
                Some((id, FollowRequest::Next)) => break id,
                Some((_, FollowRequest::End)) => panic!("it did not request that"),
                None => thread::sleep(Duration::from_millis(1)),
            }
            assert!(!followers.is_empty(), "it left");
        };
        if followers.has_segment(id) {
            followers.end(id, block(u64::MAX, 1));
        }
        if segment == 2 {
            return followers.finish();
        }
        followers.begin(id, block(at, 2));
        followers.push(&Arc::new(block(at + 10, 3)));
        followers.put_snapshot(id, block(at, 4));
        // No further segment before the current one has its snapshot.
        assert_eq!(followers.poll(), None);
        followers.end_snapshot(id);
        followers.push(&Arc::new(block(at + 20, 5)));
    }
}

#[test]
fn segments_come_as_whole_spools_with_the_snapshot_before_the_events() {
    let (mut followers, theirs) = met();
    let recorder = thread::spawn(move || hand_on(&mut followers));
    let folder = TempDir::new().expect("a temporary folder");
    let spool = |number: u64| folder.path().join(number.to_string());
    let following = Following::greet(77, theirs).expect("it answers");
    assert_eq!(following.about(), &about());
    let ended = following.run(&spool(0), |progress| {
        // Once the current segment has arrived completely.
        if progress.spool_bytes > 14_000 {
            Step::Turn(spool(progress.turns + 1))
        } else {
            Step::GoOn
        }
    });
    recorder.join().expect("it ends");
    assert!(matches!(ended, Err(FollowError::Ended { .. })), "{ended:?}");
    for number in [0, 1] {
        let at = 100 * number;
        let expected = [
            (0, 2, at),
            (1, 4, at),
            (2, 3, at + 10),
            (3, 5, at + 20),
            (4, 1, u64::MAX),
        ];
        assert_eq!(blocks(&spool(number)), expected);
    }
}

#[test]
fn who_takes_nothing_costs_no_more_than_it_may_and_is_told_what_is_missing() {
    let (mut followers, mut theirs) = met();
    theirs.write_all(&[NEXT]).expect("a socket");
    let (id, _) = followers.poll().expect("it sent a request");
    followers.begin(id, block(5, 1));
    followers.end_snapshot(id);
    let (mut sent, mut records) = (0, 0);
    while sent < 2 * WAITING_MAX {
        let block = block(10 + sent, 100);
        sent += block.bytes();
        records += 100;
        followers.push(&Arc::new(block));
        followers.poll();
        assert!(followers.each[0].bytes <= WAITING_MAX);
    }
    let left = followers.each[0].left_out.expect("it was too much");
    assert!(left.records < records && left.since > 10 && left.until > left.since);
    // The buffered events can be released.
    followers.give_up();
    let follower = &followers.each[0];
    assert!(follower.bytes < READY_MAX);
    let all_left = follower.left_out.expect("there is more of it");
    assert!(all_left.records > left.records && all_left.since <= left.since);
    let mut end = Encoder::default();
    followers.write_left_out(id, &mut end);
    let lost = records_of(&end);
    assert_eq!(lost, [(all_left.since, all_left.until, all_left.records)]);
    followers.write_left_out(id, &mut end);
    assert_eq!(records_of(&end).len(), 1);
}

fn records_of(encoder: &Encoder) -> Vec<(u64, u64, u64)> {
    let lost = records(encoder.payload()).filter_map(|(_, record)| match record {
        Ok((
            _,
            Record::Lost {
                from, to, count, ..
            },
        )) => Some((from, to, count)),
        _ => None,
    });
    lost.collect()
}

#[test]
fn who_leaves_or_says_what_nobody_says_is_not_kept() {
    let (mut followers, theirs) = met();
    drop(theirs);
    followers.poll();
    assert!(followers.is_empty());
    for word in [&b"x"[..], b"NE", b"E"] {
        let (mut followers, mut theirs) = met();
        theirs.write_all(word).expect("a socket");
        assert_eq!(followers.poll(), None);
        assert!(followers.is_empty(), "{word:?}");
    }
    let (mut followers, theirs) = met();
    let more: Vec<_> = (1..=FOLLOWERS_MAX)
        .map(|_| {
            let (ours, other) = UnixStream::pair().expect("a socket");
            followers.admit(NewFollower {
                stream: ours,
                pid: 78,
            });
            other
        })
        .collect();
    assert_eq!(followers.each.len(), FOLLOWERS_MAX);
    drop((theirs, more));
}

#[test]
fn a_recorder_that_says_nonsense_is_left() {
    let heads = [
        &b"B\0\0\0\0"[..],
        b"A\xff\xff\xff\xff",
        b"A\x04\0\0\0nope",
        b"A\x1f\0\0\0purpose",
        b"",
    ];
    for head in heads {
        let (ours, mut theirs) = UnixStream::pair().expect("a socket");
        theirs.write_all(head).expect("a socket");
        theirs
            .shutdown(std::net::Shutdown::Write)
            .expect("a socket");
        assert!(Following::greet(77, ours).is_err(), "{head:?}");
    }
    // After the greeting: a frame that is never sent, and part of one.
    for frame in [&b"B\xff\xff\xff\x7f"[..], b"B\x10\0\0\0abc"] {
        let (ours, mut theirs) = UnixStream::pair().expect("a socket");
        let text = about().encode();
        let mut greeting = vec![ABOUT];
        greeting.extend((text.len() as u32).to_le_bytes());
        greeting.extend(text.as_bytes());
        greeting.extend(frame);
        theirs.write_all(&greeting).expect("a socket");
        let said = thread::spawn(move || {
            let mut hello = [0; FOLLOW.len()];
            theirs.read_exact(&mut hello).expect("it greets");
            assert_eq!(&hello, FOLLOW);
            theirs.shutdown(std::net::Shutdown::Write)
        });
        let folder = TempDir::new().expect("a temporary folder");
        let following = Following::greet(77, ours).expect("that much is right");
        let ended = following.run(&folder.path().join("0"), |_| Step::GoOn);
        said.join().expect("it ends").expect("a socket");
        let is_seen = matches!(
            ended,
            Err(FollowError::Strange | FollowError::Ended { has_spool: false })
        );
        assert!(is_seen, "{ended:?}");
    }
}
