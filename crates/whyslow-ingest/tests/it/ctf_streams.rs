//! Results of valid and damaged stream files, byte by byte.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use whyslow_ingest::importers::ctf::class::Scope;
use whyslow_ingest::importers::ctf::consumer::{
    ClassRef, Consumer, Domain, FieldName, Loss, LossKind, Want,
};
use whyslow_ingest::importers::ctf::decoded::DecodedEvent;
use whyslow_ingest::importers::ctf::reader::CtfReader;
use whyslow_ingest::importers::ctf::value::Value;

use crate::support::stream_writer::{
    Folder, HEADER_BYTES, METADATA, OFFSET_NS, Packet, Read, UUID, file, three_packets,
};

fn loss(cpu: Option<i32>, (begin, end): (i64, i64), what: LossKind) -> Loss {
    let (begin, end) = (OFFSET_NS + begin, OFFSET_NS + end);
    Loss {
        trace: 0,
        stream: 0,
        cpu,
        begin,
        end,
        what,
    }
}

#[test]
fn sound_packets() {
    let folder = Folder::with(&file(&three_packets()));
    let read = folder.read();
    assert_eq!(read.times(), [1010, 1020, 1110, 1120, 1210, 1220]);
    assert_eq!(read.events[2].1, Some(0));
    assert_eq!(
        read.texts()[2],
        "note Unsigned(1) Str([97, 32, 116, 101, 120, 116])"
    );
    assert_eq!(read.texts()[3], "list Unsigned(3) Ints([1, 2, 3])");
    assert_eq!(read.anomalies(), []);
    assert_eq!(read.losses, []);
    assert_eq!(
        (read.progress.bytes_done, read.progress.bytes_total),
        (768, 768)
    );
    let summary = read.summary.unwrap();
    assert_eq!((summary.events_read, summary.packets_read), (6, 3));
    assert_eq!(summary.events_by_class, [3, 3]);
}

#[test]
fn short_timestamps_wrap_around_forwards_only() {
    let wrap = 1 << 27;
    let packet = Packet::new(0, wrap - 5, 3 * wrap)
        .note(wrap - 3, 0, "")
        .note(wrap + 2, 1, "")
        .note(2 * wrap + 1, 2, "")
        .extended(2 * wrap + 7, 0, 3, "full time")
        .note(2 * wrap + 7, 4, "the same time");
    let read = Folder::with(&packet.bytes()).read();
    let wrap = wrap as i64;
    assert_eq!(
        read.times(),
        [wrap - 3, wrap + 2, 2 * wrap + 1, 2 * wrap + 7, 2 * wrap + 7]
    );
    assert_eq!(read.anomalies(), []);
}

#[test]
fn missing_packets_are_located_between_their_neighbours() {
    let mut packets = three_packets();
    packets[2].sequence = 9;
    let read = Folder::with(&file(&packets)).read();
    assert_eq!(read.anomalies(), [("PACKETS_LOST", 7)]);
    assert_eq!(
        read.losses,
        [loss(Some(0), (1199, 1200), LossKind::Packets(7))]
    );
    assert_eq!(read.events.len(), 6);
}

#[test]
fn discarded_events_are_counted_across_a_wrapping_counter() {
    let mut packets = three_packets();
    for (packet, discarded) in packets.iter_mut().zip([u32::MAX - 1, u32::MAX, 4]) {
        packet.sequence += 7;
        packet.discarded = discarded;
    }
    let read = Folder::with(&file(&packets)).read();
    let before = u64::from(u32::MAX - 1);
    assert_eq!(
        read.losses,
        [
            loss(Some(0), (1000, 1099), LossKind::EventsBefore(before)),
            loss(Some(0), (1120, 1199), LossKind::Events(1)),
            loss(Some(0), (1220, 1299), LossKind::Events(5)),
        ]
    );
    assert_eq!(read.anomalies(), [("EVENTS_DISCARDED", before + 6)]);
}

#[test]
fn lttng_discards_events_after_the_last_one_that_left_room() {
    let mut packets = three_packets();
    packets[0].discarded = 3;
    packets[1].discarded = 3;
    packets[2].discarded = 3;
    // The last note is smaller than the others, and fits where another one of their size does not.
    packets[0] = packets[0].clone().note(1030, 0, "");
    packets[0].bytes = HEADER_BYTES + packets[0].events.len();
    let read = Folder::with(&file(&packets)).read();
    assert_eq!(
        read.losses,
        [loss(Some(0), (1020, 1099), LossKind::Events(3))]
    );
    // With room for an event of any size, up to the last event.
    packets[0].bytes = 256;
    let read = Folder::with(&file(&packets)).read();
    assert_eq!(
        read.losses,
        [loss(Some(0), (1030, 1099), LossKind::Events(3))]
    );
}

#[test]
fn another_tracer_may_discard_events_anywhere_in_a_packet() {
    let mut packets = three_packets();
    packets[1].discarded = 2;
    packets[2].discarded = 2;
    let folder = Folder::new();
    let metadata = METADATA.replace("domain = \"kernel\";", "");
    folder.add("metadata", metadata.as_bytes());
    folder.add("channel0_0", &file(&packets));
    assert_eq!(
        folder.read().losses,
        [loss(Some(0), (1099, 1199), LossKind::Events(2))]
    );
}

#[test]
fn a_destroyed_header_costs_its_packet_only() {
    let mut bytes = file(&three_packets());
    bytes[256..300].fill(0xff);
    let read = Folder::with(&bytes).read();
    assert_eq!(read.times(), [1010, 1020, 1210, 1220]);
    assert_eq!(
        read.anomalies(),
        [("PACKET_DAMAGED", 1), ("PACKETS_LOST", 1)]
    );
    assert_eq!(
        read.losses[0],
        loss(None, (1099, 1200), LossKind::Bytes(256))
    );
    assert_eq!(read.progress.bytes_done, 768);
}

#[test]
fn a_size_beyond_the_file_ends_at_the_next_packet() {
    let mut bytes = file(&three_packets());
    let place = 32 + 3 * 8;
    bytes[place..place + 8].copy_from_slice(&(1_u64 << 60).to_le_bytes());
    let read = Folder::with(&bytes).read();
    assert_eq!(read.times(), [1010, 1020, 1110, 1120, 1210, 1220]);
    assert_eq!(read.anomalies(), [("PACKET_DAMAGED", 1)]);
}

#[test]
fn packets_of_another_trace_are_passed_over() {
    let mut packets = three_packets();
    packets[1].uuid = [7; 16];
    let read = Folder::with(&file(&packets)).read();
    assert_eq!(read.times(), [1010, 1020, 1210, 1220]);
    assert_eq!(
        read.anomalies(),
        [("PACKET_FOREIGN", 1), ("PACKETS_LOST", 1)]
    );
}

#[test]
fn a_uuid_that_all_packets_share_is_believed() {
    let mut packets = three_packets();
    for packet in &mut packets {
        packet.uuid = [7; 16];
    }
    let read = Folder::with(&file(&packets)).read();
    assert_eq!(read.events.len(), 6);
    assert_eq!(read.anomalies(), [("PACKET_FOREIGN", 1)]);
}

#[test]
fn reserved_room_at_the_end_is_no_damage() {
    let mut bytes = file(&three_packets());
    bytes.resize(5000, 0);
    let read = Folder::with(&bytes).read();
    assert_eq!(read.events.len(), 6);
    assert_eq!(read.anomalies(), []);
    assert_eq!(read.progress.bytes_done, 5000);
}

#[test]
fn what_is_whole_of_a_file_cut_short_is_kept() {
    let bytes = file(&three_packets());
    let first_event = 4 + 4 + 7;
    let cut = 512 + HEADER_BYTES + first_event + 3;
    let read = Folder::with(&bytes[..cut]).read();
    assert_eq!(read.times(), [1010, 1020, 1110, 1120, 1210]);
    assert_eq!(
        read.anomalies(),
        [("EVENT_UNDECODABLE", 1), ("PACKET_TRUNCATED", 1)]
    );
    assert_eq!(
        read.losses,
        [loss(Some(0), (1210, 1299), LossKind::Bytes(3))]
    );
    let summary = read.summary.unwrap();
    assert_eq!((summary.events_read, summary.events_skipped), (6, 1));
}

#[test]
fn an_unknown_event_costs_the_rest_of_its_packet() {
    let mut packets = three_packets();
    let mut odd = Packet::new(1, 1100, 1199).note(1110, 5, "before");
    odd.header(1115, 30);
    packets[1] = odd.note(1120, 6, "after");
    let read = Folder::with(&file(&packets)).read();
    assert_eq!(read.times(), [1010, 1020, 1110, 1210, 1220]);
    assert_eq!(read.anomalies(), [("EVENT_UNKNOWN_ID", 1)]);
    let lost = 4 + (4 + 4 + 6);
    assert_eq!(
        read.losses,
        [loss(Some(0), (1110, 1199), LossKind::Bytes(lost))]
    );
}

#[test]
fn an_event_larger_than_the_window_is_read_whole() {
    let text = "x".repeat(3 << 20);
    let packet = Packet::new(0, 0, 99)
        .note(10, 1, "small")
        .note(20, 2, &text)
        .note(30, 3, "small");
    let read = Folder::with(&packet.bytes()).read();
    assert_eq!(read.times(), [10, 20, 30]);
    assert_eq!(read.texts()[1].matches("120").count(), 3 << 20);
    assert_eq!(read.anomalies(), []);
}

#[test]
fn a_packet_of_many_windows_is_read_whole() {
    let mut packet = Packet::new(0, 0, 1 << 30);
    let values: Vec<u16> = (0..1000).collect();
    for time in 0..1000 {
        packet = packet.list(time, &values);
    }
    let read = Folder::with(&packet.bytes()).read();
    assert_eq!(read.times(), (0..1000).collect::<Vec<i64>>());
    assert!(read.texts().iter().all(|text| *text == read.texts()[0]));
    assert_eq!(read.anomalies(), []);
}

#[test]
fn a_length_beyond_the_packet_is_refused_at_little_cost() {
    let mut packet = Packet::new(0, 0, 99).note(10, 1, "before");
    packet.header(20, 1);
    packet.events.extend(u32::MAX.to_le_bytes());
    let packets = [packet, Packet::new(1, 100, 199).note(110, 2, "after")];
    let read = Folder::with(&file(&packets)).read();
    assert_eq!(read.times(), [10, 110]);
    assert_eq!(read.anomalies(), [("EVENT_UNDECODABLE", 1)]);
}

#[test]
fn an_end_of_zero_and_events_after_the_end() {
    let packets = [
        Packet::new(0, 100, 0).note(150, 0, ""),
        Packet::new(1, 200, 210).note(205, 0, "").note(220, 0, ""),
        Packet::new(2, 300, 310).note(305, 0, ""),
    ];
    let read = Folder::with(&file(&packets)).read();
    assert_eq!(read.times(), [150, 205, 220, 305]);
    assert_eq!(read.anomalies(), [("EVENT_AFTER_PACKET_END", 1)]);
}

#[test]
fn packets_that_overlap_in_time_are_read_to_the_end() {
    let packets = [
        Packet::new(0, 100, 190).note(150, 0, "").note(190, 1, ""),
        Packet::new(1, 180, 290).note(185, 2, "").note(220, 3, ""),
    ];
    let read = Folder::with(&file(&packets)).read();
    assert_eq!(read.times(), [150, 190, 185, 220]);
    assert_eq!(read.anomalies(), [("TIME_BACKWARDS", 1)]);
}

#[test]
fn equal_times_come_in_the_order_of_the_streams() {
    let folder = Folder::new();
    folder.add("metadata", METADATA.as_bytes());
    for cpu in 0..3 {
        let mut packet = Packet::new(0, 0, 99)
            .note(10, cpu, "first")
            .note(10, cpu, "second")
            .note(u64::from(20 - cpu), cpu, "third");
        (packet.instance, packet.cpu) = (u64::from(cpu), cpu);
        folder.add(&format!("channel0_{cpu}"), &packet.bytes());
    }
    let read = folder.read();
    let order: Vec<(i64, usize)> = read
        .events
        .iter()
        .map(|event| (event.0 - OFFSET_NS, event.2))
        .collect();
    let equal = [(10, 0), (10, 0), (10, 1), (10, 1), (10, 2), (10, 2)];
    assert_eq!(order[..6], equal);
    assert_eq!(order[6..], [(18, 2), (19, 1), (20, 0)]);
    assert_eq!(read.events[6].1, Some(2));
}

#[test]
fn files_of_one_stream_are_ordered_by_time_and_share_their_counters() {
    let folder = Folder::new();
    folder.add("kernel/metadata", METADATA.as_bytes());
    let packets = three_packets();
    // The second round overwrote the first file.
    folder.add("kernel/channel0_0_0", &packets[2].bytes());
    folder.add("kernel/channel0_0_1", &packets[0].bytes());
    folder.add("kernel/channel0_0_2", &packets[1].bytes());
    folder.add("kernel/empty_0", &[]);
    let mut reader = CtfReader::open(folder.path()).unwrap();
    assert_eq!(reader.streams().len(), 2);
    assert_eq!(reader.traces()[0].layout, "kernel");
    assert_eq!(reader.traces()[0].domain, Domain::Kernel);
    assert_eq!(reader.traces()[0].hostname(), Some("host"));
    let mut read = Read::default();
    read.summary = Some(reader.read(&mut read).unwrap());
    assert_eq!(read.times(), [1010, 1020, 1110, 1120, 1210, 1220]);
    assert_eq!(read.anomalies(), [("STREAM_EMPTY", 1)]);
}

#[test]
fn pieces_of_a_rotated_session_are_one_trace() {
    let folder = Folder::new();
    let mut packets = three_packets();
    packets[1].discarded = 3;
    packets[2].discarded = 3;
    for (index, packet) in packets.iter().enumerate() {
        let piece = format!("archives/{}/kernel", ["b", "a", "c"][index]);
        folder.add(&format!("{piece}/metadata"), METADATA.as_bytes());
        folder.add(&format!("{piece}/channel0_0"), &packet.bytes());
    }
    let mut reader = CtfReader::open(folder.path()).unwrap();
    assert_eq!((reader.traces().len(), reader.streams().len()), (3, 1));
    assert!(reader.traces().iter().all(|trace| trace.identity == 0));
    let mut read = Read::default();
    read.summary = Some(reader.read(&mut read).unwrap());
    assert_eq!(read.times(), [1010, 1020, 1110, 1120, 1210, 1220]);
    assert_eq!(read.anomalies(), [("EVENTS_DISCARDED", 3)]);
}

#[test]
fn packets_that_two_snapshots_share_are_read_once() {
    let folder = Folder::new();
    let packets = three_packets();
    for (name, packets) in [("snapshot-1", &packets[..2]), ("snapshot-2", &packets[1..])] {
        folder.add(&format!("{name}/kernel/metadata"), METADATA.as_bytes());
        folder.add(&format!("{name}/kernel/channel0_0"), &file(packets));
    }
    let read = folder.read();
    assert_eq!(read.times(), [1010, 1020, 1110, 1120, 1210, 1220]);
    assert_eq!(read.anomalies(), [("PACKET_REPEATED", 1)]);
    assert_eq!(read.progress.bytes_done, read.progress.bytes_total);
}

#[test]
fn an_index_is_compared_and_not_needed() {
    let entry = |packet: u64| {
        let begin = 1000 + packet * 100;
        let content = (HEADER_BYTES as u64 + 4 + 4 + 7 + 4 + 4 + 6) * 8;
        let numbers = [
            packet * 256,
            256 * 8,
            content,
            begin,
            begin + 99,
            0,
            0,
            0,
            packet,
        ];
        numbers
            .into_iter()
            .flat_map(u64::to_be_bytes)
            .collect::<Vec<u8>>()
    };
    let head: Vec<u8> = [0xC1F1_DCC1_u32, 1, 1, 72]
        .into_iter()
        .flat_map(u32::to_be_bytes)
        .collect();
    let check = |entries: Vec<u8>, anomalies: &[(&str, u64)]| {
        let folder = Folder::with(&file(&three_packets()));
        folder.add("index/channel0_0.idx", &[head.clone(), entries].concat());
        let read = folder.read();
        assert_eq!(read.events.len(), 6);
        assert_eq!(read.anomalies(), anomalies);
    };
    check([entry(0), entry(1), entry(2)].concat(), &[]);
    check([entry(0), entry(1)].concat(), &[("INDEX_DISAGREES", 1)]);
    check(
        [entry(0), entry(1), entry(2), entry(3)].concat(),
        &[("INDEX_DISAGREES", 1)],
    );
    check(
        [entry(0), entry(2), entry(1)].concat(),
        &[("INDEX_DISAGREES", 1)],
    );
}

/// Requests the same field twice, a missing one, and a length.
#[derive(Default)]
struct Chosen {
    seen: Vec<String>,
}

impl Consumer for Chosen {
    fn wants(&mut self, class: &ClassRef<'_>) -> Want {
        match class.event.name.as_str() {
            "list" => Want::Fields(vec![
                FieldName::payload("values"),
                FieldName::payload("no such field"),
                FieldName::payload("_values_length"),
                FieldName::payload("values"),
                FieldName::context("values"),
            ]),
            _ => Want::Nothing,
        }
    }

    fn event(&mut self, event: &DecodedEvent<'_>) -> ControlFlow<()> {
        let values: Vec<String> = event.values().map(|value| format!("{value:?}")).collect();
        self.seen.push(values.join(" "));
        assert_eq!(event.value(99), Value::Absent);
        let mut text = String::new();
        assert!(event.render(Scope::Payload, &mut text));
        assert_eq!(
            text,
            "_values_length = 3, values = [ [0] = 1, [1] = 2, [2] = 3 ]"
        );
        assert!(!event.render(Scope::EventContext, &mut text));
        ControlFlow::Continue(())
    }
}

#[test]
fn only_wanted_fields_and_events_are_delivered() {
    let folder = Folder::with(&file(&three_packets()));
    let mut chosen = Chosen::default();
    let summary = CtfReader::open(folder.path())
        .unwrap()
        .read(&mut chosen)
        .unwrap();
    let seen = "Ints([1, 2, 3]) Absent Unsigned(3) Ints([1, 2, 3]) Absent";
    assert_eq!(chosen.seen, [seen; 3]);
    assert_eq!((summary.events_delivered, summary.events_unwanted), (3, 3));
    assert_eq!(summary.events_by_class, [3, 3]);
}

#[test]
fn structures_of_an_array_are_padded_and_read_in_both_byte_orders() {
    let rows = "event { name = rows; id = 2; stream_id = 0; fields := struct {
        uint8_t n;
        struct {
            integer { size = 16; align = 16; signed = true; } a;
            uint8_t b;
            integer { size = 12; align = 4; byte_order = be; signed = true; } c;
        } rows[n];
        uint8_t after; }; };";
    let mut packet = Packet::new(0, 1000, 1099);
    packet.header(1010, 2);
    // Padding follows the count, and the 36 bits of a row.
    packet.events.extend([2, 0xEE]);
    packet.events.extend([0xFE, 0xFF, 7, 0x80, 0x1E, 0xEE]);
    packet.events.extend([3, 0, 8, 0x01, 0x2E, 9]);
    packet.header(1020, 2);
    // Rows are aligned even if there are none.
    packet.events.extend([0, 0xEE, 10]);
    packet.header(1030, 2);
    packet.events.push(99);
    let folder = Folder::with(&file(&[packet]));
    folder.add("metadata", format!("{METADATA}{rows}").as_bytes());
    let read = folder.read();
    let negative = |number: i64| number as u64;
    let first = format!(
        "rows Unsigned(2) Ints([{}, 3]) Ints([7, 8]) Ints([{}, 18]) Unsigned(9)",
        negative(-2),
        negative(-0x7FF),
    );
    let second = "rows Unsigned(0) Ints([]) Ints([]) Ints([]) Unsigned(10)";
    assert_eq!(read.texts(), [first.as_str(), second]);
    assert_eq!(read.anomalies(), [("EVENT_UNDECODABLE", 1)]);
}

#[test]
fn reading_stops_when_the_consumer_says_so_and_can_begin_again() {
    let folder = Folder::with(&file(&three_packets()));
    let mut reader = CtfReader::open(folder.path()).unwrap();
    let mut read = Read {
        stop_after: Some(2),
        ..Read::default()
    };
    let summary = reader.read(&mut read).unwrap();
    assert!(summary.is_stopped);
    assert_eq!((read.events.len(), summary.events_read), (2, 2));
    let mut read = Read::default();
    assert!(!reader.read(&mut read).unwrap().is_stopped);
    assert_eq!(read.events.len(), 6);
}

#[test]
fn the_uuid_written_is_that_of_the_metadata() {
    let folder = Folder::with(&file(&three_packets()));
    assert_eq!(
        CtfReader::open(folder.path()).unwrap().traces()[0]
            .class
            .uuid,
        Some(UUID)
    );
}

#[test]
fn a_directory_without_trace_says_so() {
    let folder = Folder::new();
    folder.add("notes.txt", b"nothing");
    let Err(error) = CtfReader::open(folder.path()) else {
        panic!("opened")
    };
    assert!(
        error.to_string().contains("no file called `metadata`"),
        "{error}"
    );
}
