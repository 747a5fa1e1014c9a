//! Which files make up one stream.
//!
//! The tracer may split a stream into several files: by size (`CHANNEL_CPU_0`, `CHANNEL_CPU_1`, …,
//! of which the oldest may have been overwritten), by session rotation (a directory each) and by
//! snapshots. Its loss counters continue across files, so the files are joined in the time order of
//! their first packets. Files belong together if trace uuid, stream class and stream id are equal;
//! without a stream id, CPU and file name identify the stream.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whyslow_model::sort::IndexSort;
use whyslow_model::stat;

use super::consumer::Trace;
use super::decode::{Cursor, Output};
use super::error::CtfError;
use super::packet::{Packet, PacketFault, read_packet};
use super::schema::Schema;
use super::stream::StreamFile;
use super::tally::Tally;
use super::window::Window;

const FIRST_PACKET_BYTES: usize = 4 << 10;

/// A file and its first packet; none for an empty file.
struct Candidate {
    file: StreamFile,
    first: Option<Result<Packet, PacketFault>>,
    begin_ns: Option<i64>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Identity of the trace, stream class, stream id.
    Id(usize, usize, u64),
    /// Identity of the trace, stream class, CPU, path without the rotation number. The directory is
    /// included only if nothing else distinguishes traces.
    Name(usize, usize, Option<i32>, PathBuf),
    /// Nothing is known about the file.
    Alone(PathBuf),
}

/// Streams in the order of their first files in `files`.
pub(super) fn assemble(
    traces: &[Trace],
    schemas: &mut [Schema],
    files: Vec<StreamFile>,
    tally: &mut Tally,
) -> Result<Vec<Vec<StreamFile>>, CtfError> {
    let mut candidates = Vec::with_capacity(files.len());
    for file in files {
        candidates.push(read_candidate(file, schemas)?);
    }
    for trace in 0..traces.len() {
        let Some((uuid, path)) = common_foreign_uuid(&candidates, trace) else {
            continue;
        };
        tally.add_with(&stat::PACKET_FOREIGN, &path, 0, || {
            "all packets have the same uuid, which differs from the metadata; they were read anyway".to_owned()
        });
        schemas[trace].adopt_uuid(uuid);
        for candidate in &mut candidates {
            if candidate.file.trace == trace {
                *candidate = read_candidate(candidate.file.clone(), schemas)?;
            }
        }
    }
    let mut groups: BTreeMap<Key, Vec<(usize, Candidate)>> = BTreeMap::new();
    for (place, candidate) in candidates.into_iter().enumerate() {
        let key = key(&candidate, traces);
        groups.entry(key).or_default().push((place, candidate));
    }
    let mut streams: Vec<(usize, Vec<StreamFile>)> = Vec::with_capacity(groups.len());
    for mut group in groups.into_values() {
        let place = group.iter().map(|(place, _)| *place).min().unwrap_or(0);
        group.index_sort_by_key(|(place, candidate)| (candidate.begin_ns, *place));
        streams.push((
            place,
            group
                .into_iter()
                .map(|(_, candidate)| candidate.file)
                .collect(),
        ));
    }
    streams.index_sort_by_key(|(place, _)| *place);
    Ok(streams.into_iter().map(|(_, files)| files).collect())
}

/// A uuid in the first packets of all files of a trace that differs from the one in its metadata,
/// and the first of the files: then the metadata is wrong.
fn common_foreign_uuid(candidates: &[Candidate], trace: usize) -> Option<([u8; 16], PathBuf)> {
    let mut common = None;
    for candidate in candidates
        .iter()
        .filter(|candidate| candidate.file.trace == trace)
    {
        match candidate.first {
            None => {}
            Some(Err(PacketFault::Foreign(uuid))) => {
                let (first, _) = common.get_or_insert((uuid, candidate.file.path.clone()));
                if *first != uuid {
                    return None;
                }
            }
            Some(_) => return None,
        }
    }
    common
}

fn read_candidate(file: StreamFile, schemas: &[Schema]) -> Result<Candidate, CtfError> {
    let schema = &schemas[file.trace];
    let mut window = Window::new(&file.path);
    let len = file.bytes.min(FIRST_PACKET_BYTES as u64) as usize;
    window
        .fill(0, len)
        .map_err(|error| CtfError::read(&file.path, error))?;
    let (mut cursor, mut output) = (Cursor::default(), Output::default());
    let first = (file.bytes > 0)
        .then(|| read_packet(schema, &window, file.bytes, &mut cursor, &mut output));
    let begin_ns = first.as_ref().and_then(|first| {
        let packet = first.as_ref().ok()?;
        let clock = schema.streams[packet.stream_class].clock?;
        packet.begin_cycles.map(|begin| clock.ns(begin))
    });
    Ok(Candidate {
        file,
        first,
        begin_ns,
    })
}

fn key(candidate: &Candidate, traces: &[Trace]) -> Key {
    let path = &candidate.file.path;
    let trace = &traces[candidate.file.trace];
    let (Some(Ok(packet)), Some(_)) = (&candidate.first, candidate.begin_ns) else {
        return Key::Alone(path.clone());
    };
    if let (Some(id), true) = (packet.stream_id, trace.class.uuid.is_some()) {
        return Key::Id(trace.identity, packet.stream_class, id);
    }
    let stem = stem(path, packet.cpu);
    let place = match trace.class.uuid {
        Some(_) => PathBuf::from(stem.file_name().unwrap_or_default()),
        None => stem,
    };
    Key::Name(trace.identity, packet.stream_class, packet.cpu, place)
}

/// The path without the `_N` that rotation adds to `CHANNEL_CPU`.
fn stem(path: &Path, cpu: Option<i32>) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some((stem, number)) = name.rsplit_once('_') else {
        return path.to_owned();
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let ends_with_cpu = cpu.is_some_and(|cpu| stem.ends_with(&format!("_{cpu}")));
    if is_number && ends_with_cpu {
        path.with_file_name(stem)
    } else {
        path.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_of_a_rotation_is_taken_off() {
        let stem = |name: &str, cpu| stem(Path::new(name), cpu).display().to_string();
        assert_eq!(stem("d/channel0_3_12", Some(3)), "d/channel0_3");
        assert_eq!(stem("d/channel0_3", Some(3)), "d/channel0_3");
        assert_eq!(stem("d/channel0_3", Some(0)), "d/channel0_3");
        assert_eq!(stem("d/channel_1_3", Some(3)), "d/channel_1_3");
        assert_eq!(stem("d/channel0_3_12", None), "d/channel0_3_12");
        assert_eq!(stem("d/stream", Some(0)), "d/stream");
    }
}
