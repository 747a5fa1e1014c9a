//! Damaged stream files: whatever the bytes, the reader terminates, and every record is counted.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use crate::support::stream_writer::{Folder, HEADER_BYTES, Packet, Read, file, three_packets};

/// Four packets of different fill levels, the third filled to its last byte.
fn packets() -> Vec<Packet> {
    let mut packets = three_packets();
    packets[1] = packets[1]
        .clone()
        .extended(1130, 0, 9, "an extended header");
    packets[2].bytes = 0;
    packets.push(Packet::new(3, 1300, 1399).note(1310, 3, &"long ".repeat(60)));
    packets
}

fn check(read: &Read) {
    let summary = read.summary.as_ref().unwrap();
    let accounted = summary.events_delivered + summary.events_unwanted + summary.events_skipped;
    assert_eq!(summary.events_read, accounted);
    assert_eq!(summary.events_delivered, read.events.len() as u64);
    assert_eq!(
        summary.events_by_class.iter().sum::<u64>(),
        summary.events_delivered
    );
    let skipped: u64 = summary
        .anomalies
        .iter()
        .filter(|anomaly| anomaly.stat.skips_record)
        .map(|anomaly| anomaly.count)
        .sum();
    assert_eq!(summary.events_skipped, skipped);
    assert_eq!(read.progress.bytes_done, read.progress.bytes_total);
}

/// Byte ranges of the packets, and the number of events that end before each byte.
fn packet_ends(packets: &[Packet]) -> Vec<usize> {
    let sizes = packets.iter().map(|packet| packet.bytes().len());
    sizes
        .scan(0, |end, bytes| {
            *end += bytes;
            Some(*end)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_file_cut_anywhere_keeps_what_is_whole_and_says_so(cut in 0_usize..1300) {
        let packets = packets();
        let bytes = file(&packets);
        let cut = cut.min(bytes.len());
        let read = Folder::with(&bytes[..cut]).read();
        check(&read);
        let whole = Folder::with(&bytes).read();
        prop_assert!(whole.texts().starts_with(&read.texts()));
        let is_between_packets = cut == 0 || packet_ends(&packets).contains(&cut);
        let expected = u64::from(!is_between_packets);
        let truncated = read.anomalies().iter().find(|(name, _)| *name == "PACKET_TRUNCATED")
            .map_or(0, |(_, count)| *count);
        prop_assert_eq!(truncated, expected);
    }

    #[test]
    fn flipped_bits_lose_nothing_silently(
        flips in proptest::collection::vec((0_usize..1300, 0_u8..8), 1..12),
    ) {
        let mut bytes = file(&packets());
        for (place, bit) in flips {
            let place = place % bytes.len();
            bytes[place] ^= 1 << bit;
        }
        check(&Folder::with(&bytes).read());
    }

    #[test]
    fn any_bytes_after_a_header_are_survived(
        garbage in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let mut packets = packets();
        packets[1].events = garbage;
        let read = Folder::with(&file(&packets)).read();
        check(&read);
        // The other packets are unchanged.
        prop_assert!(read.events.iter().any(|event| event.3.starts_with("note Unsigned(3)")));
    }

    #[test]
    fn any_file_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        check(&Folder::with(&bytes).read());
    }
}

#[test]
fn signatures_without_packets_do_not_cost_a_search_each() {
    let packet = Packet::new(0, 0, 0).bytes();
    let mut bytes = Vec::new();
    while bytes.len() < 1 << 20 {
        // Magic and uuid, then an undeclared stream class.
        bytes.extend(&packet[..20]);
        bytes.extend([0xee; 12]);
    }
    let begin = std::time::Instant::now();
    let read = Folder::with(&bytes).read();
    check(&read);
    assert_eq!(read.anomalies(), [("PACKET_DAMAGED", 1)]);
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}

#[test]
fn a_header_of_huge_claims_takes_no_memory() {
    let mut bytes = file(&packets());
    for field in [2, 3] {
        let place = 32 + field * 8;
        bytes[place..place + 8].copy_from_slice(&(u64::MAX - 7).to_le_bytes());
    }
    let read = Folder::with(&bytes[..HEADER_BYTES + 40]).read();
    check(&read);
}
