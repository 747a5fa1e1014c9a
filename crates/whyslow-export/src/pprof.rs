//! pprof: the compressed protobuf of `go tool pprof`.
//!
//! Field numbers are from <https://github.com/google/pprof/blob/main/proto/profile.proto>; every
//! string is an index into one table, whose first entry is empty.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rustc_hash::FxHashMap;
use whyslow_store::Tables;

use crate::ExportError;
use crate::profile::{Place, Profile as Read};
use crate::stacks::{About, Frame, FrameKind, StackQuery, Weight};

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
    #[prost(int64, tag = "3")]
    num: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// Unique strings.
struct Texts {
    all: Vec<String>,
    known: FxHashMap<String, i64>,
}

impl Texts {
    fn new() -> Self {
        let mut texts = Self {
            all: Vec::new(),
            known: FxHashMap::default(),
        };
        texts.place("");
        texts
    }

    fn place(&mut self, text: &str) -> i64 {
        if let Some(place) = self.known.get(text) {
            return *place;
        }
        let place = self.all.len() as i64;
        self.all.push(text.to_owned());
        self.known.insert(text.to_owned(), place);
        place
    }
}

const KERNEL: &str = "[kernel]";

/// Locations by frame, functions by name and file, mappings by file.
#[derive(Default)]
struct Places {
    mappings: Vec<Mapping>,
    by_file: FxHashMap<String, u64>,
    functions: Vec<Function>,
    by_name: FxHashMap<(String, String), u64>,
    locations: Vec<Location>,
    by_frame: FxHashMap<usize, u64>,
}

impl Places {
    fn location(&mut self, place: usize, frame: &Frame, texts: &mut Texts) -> u64 {
        if let Some(id) = self.by_frame.get(&place) {
            return *id;
        }
        let file = match (&frame.module, frame.kind) {
            (Some(module), _) => module.clone(),
            (None, FrameKind::Kernel) => KERNEL.to_owned(),
            (None, _) => String::new(),
        };
        let mapping_id = self.mapping(&file, texts);
        let function_id = self.function(&frame.name, &file, texts);
        let id = self.locations.len() as u64 + 1;
        self.locations.push(Location {
            id,
            mapping_id,
            address: frame.address as u64,
            line: vec![Line { function_id }],
        });
        self.by_frame.insert(place, id);
        id
    }

    fn mapping(&mut self, file: &str, texts: &mut Texts) -> u64 {
        if file.is_empty() {
            return 0;
        }
        if let Some(id) = self.by_file.get(file) {
            return *id;
        }
        let id = self.mappings.len() as u64 + 1;
        self.mappings.push(Mapping {
            id,
            filename: texts.place(file),
            has_functions: true,
        });
        self.by_file.insert(file.to_owned(), id);
        id
    }

    fn function(&mut self, name: &str, file: &str, texts: &mut Texts) -> u64 {
        let key = (name.to_owned(), file.to_owned());
        if let Some(id) = self.by_name.get(&key) {
            return *id;
        }
        let id = self.functions.len() as u64 + 1;
        let name = texts.place(name);
        self.functions.push(Function {
            id,
            name,
            system_name: name,
            filename: texts.place(file),
        });
        self.by_name.insert(key, id);
        id
    }
}

/// Writes the stacks of a query; returns what the reader must know about them.
pub fn write_pprof(
    tables: &dyn Tables,
    query: &StackQuery,
    out: &mut dyn Write,
) -> Result<About, ExportError> {
    let read = Read::read(tables, query)?;
    let mut texts = Texts::new();
    let mut places = Places::default();
    let mut samples = Vec::new();
    for ((thread, state, place), weight) in &read.weights {
        let location_id = locations(&read, *place, &mut places, &mut texts);
        let thread = &read.threads[*thread];
        let mut label = vec![text_label(&mut texts, "thread", &thread.comm)];
        label.extend(thread.tid.map(|tid| number_label(&mut texts, "tid", tid)));
        label.extend(thread.pid.map(|pid| number_label(&mut texts, "pid", pid)));
        label.extend(
            state
                .as_ref()
                .map(|state| text_label(&mut texts, "state", state)),
        );
        samples.push(Sample {
            location_id,
            value: vec![weight.count, weight.time],
            label,
        });
    }
    let kind = match query.weight {
        Weight::OffCpu => "offcpu",
        Weight::Samples => "cpu",
        Weight::Time => "wall",
    };
    let mut value_type = |name: &str, unit: &str| ValueType {
        r#type: texts.place(name),
        unit: texts.place(unit),
    };
    let sample_type = vec![
        value_type("waits", "count"),
        value_type(kind, "nanoseconds"),
    ];
    let comment = read
        .about
        .caveats
        .iter()
        .map(|caveat| texts.place(caveat))
        .collect();
    let default_sample_type = texts.place(kind);
    let profile = Profile {
        sample_type,
        sample: samples,
        mapping: places.mappings,
        location: places.locations,
        function: places.functions,
        time_nanos: read.about.begin,
        duration_nanos: read.about.end.saturating_sub(read.about.begin),
        comment,
        default_sample_type,
        string_table: texts.all,
    };
    let mut packer = GzEncoder::new(out, Compression::default());
    packer.write_all(&profile.encode_to_vec())?;
    packer.finish()?;
    Ok(read.about)
}

/// Location ids of a stack, innermost first, as the format requires.
fn locations(read: &Read, place: Place, places: &mut Places, texts: &mut Texts) -> Vec<u64> {
    let stack = read.callsites.stack(place);
    if stack.is_empty() {
        let unknown = Frame {
            name: "[no stack]".to_owned(),
            module: None,
            kind: FrameKind::User,
            address: 0,
        };
        return vec![places.location(usize::MAX, &unknown, texts)];
    }
    let frames = stack.iter().rev();
    frames
        .map(|place| places.location(*place, &read.callsites.frames[*place], texts))
        .collect()
}

fn text_label(texts: &mut Texts, key: &str, text: &str) -> Label {
    Label {
        key: texts.place(key),
        str: texts.place(text),
        num: 0,
    }
}

fn number_label(texts: &mut Texts, key: &str, num: i64) -> Label {
    Label {
        key: texts.place(key),
        str: 0,
        num,
    }
}
