"""Creates large profiles by repeating the records of the small ones in `fixtures` at later times.

    python3 benches/made.py jfr fixtures/jfr/each.jfr out.jfr COPIES CHUNKS
    python3 benches/made.py perf fixtures/perf/clock.data out.data MEGABYTES

The tools that own these formats read the results, with the same counts (`benches/profiles.py` checks
this).
"""

import array
import struct
import sys
from pathlib import Path

# JFR chunks.
JFR_HEADER = 68
METADATA, CHECKPOINT = 0, 1
# Events at the start of a chunk (settings, the machine) are not repeated: they are within this share of its time.
AT_BEGIN = 0.01

# perf.data.
PERF_SAMPLE, PERF_EXIT, PERF_FINISHED_ROUND = 9, 4, 68
PERF_USER_TYPES = 64
IDENTIFIER, IP, TID, TIME, ID, CPU, STREAM = 1 << 16, 1, 1 << 1, 1 << 2, 1 << 6, 1 << 7, 1 << 9


def varint(data, at):
    value = 0
    for number in range(9):
        byte = data[at]
        at += 1
        if number == 8:
            return value | byte << 56, at
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            break
    return value, at


def as_varint(value):
    out = bytearray()
    while value >= 0x80 and len(out) < 8:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def jfr_event(kind, start, rest):
    body = as_varint(kind) + as_varint(start) + rest
    size = len(body) + 1
    while len(body) + len(as_varint(size)) != size:
        size = len(body) + len(as_varint(size))
    return as_varint(size) + body


def jfr_parts(chunk):
    """Types, constants and events of a chunk with one checkpoint; events as (type, start, rest)."""
    metadata = checkpoint = None
    events, at = [], JFR_HEADER
    while at < len(chunk):
        size, after = varint(chunk, at)
        kind, after = varint(chunk, after)
        if kind == METADATA:
            metadata = chunk[at : at + size]
        elif kind == CHECKPOINT:
            if checkpoint is not None:
                raise SystemExit("error: cannot repeat a chunk with several checkpoints")
            checkpoint = chunk[at : at + size]
        else:
            start, after = varint(chunk, after)
            events.append((kind, start, chunk[after : at + size]))
        at += size
    return metadata, checkpoint, events


def make_jfr(source, out, copies, chunks):
    """Writes the events of a chunk `copies` times into each of `chunks` chunks; returns the number of events."""
    chunk = Path(source).read_bytes()
    if struct.unpack_from(">Q", chunk, 8)[0] != len(chunk):
        raise SystemExit(f"error: `{source}` has more than one chunk")
    start_ns, _, start_ticks, per_second = struct.unpack_from(">4Q", chunk, 32)
    metadata, checkpoint, events = jfr_parts(chunk)
    # Copies are separated by the mean distance of two events.
    span = max(start for _, start, _ in events) - start_ticks
    span += span // len(events)
    latest = {}
    for kind, start, _ in events:
        latest[kind] = max(latest.get(kind, 0), start - start_ticks)
    repeated = [event for event in events if latest[event[0]] > span * AT_BEGIN]
    again = b"".join(jfr_event(*event) for event in events)
    for copy in range(1, copies):
        again += b"".join(jfr_event(kind, start + copy * span, rest) for kind, start, rest in repeated)
    body = metadata + again + checkpoint
    span_ns = copies * span * 1_000_000_000 // per_second
    with open(out, "wb") as file:
        for number in range(chunks):
            header = bytearray(chunk[:JFR_HEADER])
            pools_at = JFR_HEADER + len(metadata) + len(again)
            struct.pack_into(">4Q", header, 8, JFR_HEADER + len(body), pools_at, JFR_HEADER, start_ns + number * span_ns)
            struct.pack_into(">Q", header, 40, span_ns)
            file.write(header + body)
    return chunks * (len(events) + (copies - 1) * len(repeated))


def perf_records(data, begin, end):
    at = begin
    while at < end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        yield kind, at, size
        at += size


def perf_time_places(sample_type):
    """Offset of the time in a sample, and from the end of all other records."""
    if not sample_type & TIME:
        raise SystemExit("error: samples have no timestamps")
    before = sum(8 for field in (IDENTIFIER, IP, TID) if sample_type & field)
    after = sum(8 for field in (TIME, ID, STREAM, CPU, IDENTIFIER) if sample_type & field)
    return 8 + before, after


def make_perf(source, out, size_max):
    """Repeats samples until the file has `size_max` bytes; returns the number of samples."""
    data = bytearray(Path(source).read_bytes())
    attr_size, attrs_at, attrs_size, data_at, data_size = struct.unpack_from("<5Q", data, 16)
    features = struct.unpack_from("<4Q", data, 72)
    sample_types = {struct.unpack_from("<Q", data, at + 24)[0] for at in range(attrs_at, attrs_at + attrs_size, attr_size)}
    if len(sample_types) != 1:
        raise SystemExit("error: cannot repeat events with different sample types")
    in_sample, from_end = perf_time_places(sample_types.pop())
    first, again, last, times = bytearray(), array.array("Q"), bytearray(), []
    for kind, at, size in perf_records(data, data_at, data_at + data_size):
        record = data[at : at + size]
        if kind == PERF_SAMPLE:
            times.append(len(again) + in_sample // 8)
            again.frombytes(record)
        elif kind == PERF_EXIT:
            last += record
        elif kind != PERF_FINISHED_ROUND:
            first += record
    samples = [again[place] for place in times]
    span = max(samples) - min(samples) + 1
    end_of_round = struct.pack("<IHH", PERF_FINISHED_ROUND, 0, 8)
    again.frombytes(end_of_round)
    copies = max(1, (size_max - len(data)) // (len(again) * 8))
    with open(out, "wb") as file:
        file.write(data[:data_at] + first)
        for _ in range(copies):
            file.write(again.tobytes())
            for place in times:
                again[place] += span
        for kind, at, size in perf_records(last, 0, len(last)):
            place = at + size - from_end
            struct.pack_into("<Q", last, place, struct.unpack_from("<Q", last, place)[0] + copies * span)
        file.write(last + end_of_round)
        end = file.tell()
        moved = end - data_at - data_size
        table = bytearray(data[data_at + data_size :])
        for number in range(sum(bin(word).count("1") for word in features)):
            offset = struct.unpack_from("<Q", table, number * 16)[0]
            struct.pack_into("<Q", table, number * 16, offset + moved)
        file.write(table)
        file.seek(48)
        file.write(struct.pack("<Q", end - data_at))
    return copies * len(times)


def main():
    what, source, out, *sizes = sys.argv[1:]
    if what == "jfr":
        print(make_jfr(source, out, int(sizes[0]), int(sizes[1])))
    else:
        print(make_perf(source, out, int(sizes[0]) * 1_000_000))


if __name__ == "__main__":
    main()
