//! Writes JFR files for tests: classes, constants and events as specified.

pub(crate) fn varint(mut value: u64, out: &mut Vec<u8>) {
    for _ in 0..8 {
        if value < 0x80 {
            out.push(value as u8);
            return;
        }
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn text(text: &str, out: &mut Vec<u8>) {
    out.push(3);
    varint(text.len() as u64, out);
    out.extend(text.as_bytes());
}

/// Puts the size in front of an event, which includes itself.
fn sized(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    // Two bytes more than needed for sizes up to 2^14, as writers reserve them.
    let size = body.len() as u64 + 4;
    for part in 0..4 {
        let bits = (size >> (7 * part)) as u8 & 0x7f;
        out.push(if part < 3 { bits | 0x80 } else { bits });
    }
    out.extend(body);
    out
}

/// A field: name, class id, whether it is a key, whether it is an array.
pub(crate) type Field = (&'static str, u64, bool, bool);

pub(crate) const LONG: u64 = 11;
pub(crate) const STRING: u64 = 20;
pub(crate) const CLASS: u64 = 21;
pub(crate) const THREAD: u64 = 22;
pub(crate) const FRAME_TYPE: u64 = 24;
pub(crate) const STATE: u64 = 25;
pub(crate) const TRACE: u64 = 26;
pub(crate) const FRAME: u64 = 27;
pub(crate) const METHOD: u64 = 28;
pub(crate) const SYMBOL: u64 = 32;
pub(crate) const WALL: u64 = 101;
pub(crate) const EXECUTION: u64 = 102;
pub(crate) const MONITOR: u64 = 103;
pub(crate) const RECORDING: u64 = 104;
pub(crate) const THREAD_DUMP: u64 = 105;
pub(crate) const SOCKET_READ: u64 = 106;
pub(crate) const SETTING: u64 = 107;

/// Classes as async-profiler writes them, as far as needed here: id, name, fields.
pub(crate) fn classes() -> Vec<(u64, &'static str, Vec<Field>)> {
    let plain = |name: &'static str, class: u64| (name, class, false, false);
    let key = |name: &'static str, class: u64| (name, class, true, false);
    let start = plain("startTime", LONG);
    let stack = key("stackTrace", TRACE);
    let mut classes = constant_classes();
    classes.extend([
        (
            WALL,
            "profiler.WallClockSample",
            vec![
                start,
                key("sampledThread", THREAD),
                stack,
                key("state", STATE),
                plain("samples", 10),
                plain("timeSpan", LONG),
            ],
        ),
        (
            MONITOR,
            "jdk.JavaMonitorEnter",
            vec![
                start,
                plain("duration", LONG),
                key("eventThread", THREAD),
                stack,
                key("monitorClass", CLASS),
                key("previousOwner", THREAD),
                plain("address", LONG),
            ],
        ),
        (
            EXECUTION,
            "jdk.ExecutionSample",
            vec![
                start,
                key("sampledThread", THREAD),
                stack,
                key("state", STATE),
            ],
        ),
    ]);
    classes.extend(runtime_classes());
    classes
}

/// Classes of events other than samples.
fn runtime_classes() -> Vec<(u64, &'static str, Vec<Field>)> {
    let plain = |name: &'static str, class: u64| (name, class, false, false);
    let start = plain("startTime", LONG);
    let host = ("host", SYMBOL, true, false);
    vec![
        (RECORDING, "jdk.ActiveRecording", vec![start]),
        (
            THREAD_DUMP,
            "jdk.ThreadDump",
            vec![start, plain("result", STRING)],
        ),
        (
            SOCKET_READ,
            "jdk.SocketRead",
            vec![start, plain("duration", LONG), host, plain("port", 10)],
        ),
        (
            SETTING,
            "jdk.ActiveSetting",
            vec![
                start,
                plain("id", LONG),
                plain("name", STRING),
                plain("value", STRING),
            ],
        ),
    ]
}

fn constant_classes() -> Vec<(u64, &'static str, Vec<Field>)> {
    let plain = |name: &'static str, class: u64| (name, class, false, false);
    let key = |name: &'static str, class: u64| (name, class, true, false);
    vec![
        (4, "boolean", vec![]),
        (8, "byte", vec![]),
        (10, "int", vec![]),
        (LONG, "long", vec![]),
        (STRING, "java.lang.String", vec![]),
        (
            CLASS,
            "java.lang.Class",
            vec![key("name", SYMBOL), plain("modifiers", 10)],
        ),
        (
            THREAD,
            "java.lang.Thread",
            vec![
                plain("osName", STRING),
                plain("osThreadId", LONG),
                plain("javaName", STRING),
                plain("javaThreadId", LONG),
            ],
        ),
        (
            FRAME_TYPE,
            "jdk.types.FrameType",
            vec![plain("description", STRING)],
        ),
        (STATE, "jdk.types.ThreadState", vec![plain("name", STRING)]),
        (
            TRACE,
            "jdk.types.StackTrace",
            vec![plain("truncated", 4), ("frames", FRAME, false, true)],
        ),
        (
            FRAME,
            "jdk.types.StackFrame",
            vec![
                key("method", METHOD),
                plain("lineNumber", 10),
                plain("bytecodeIndex", 10),
                key("type", FRAME_TYPE),
            ],
        ),
        (
            METHOD,
            "jdk.types.Method",
            vec![key("type", CLASS), key("name", SYMBOL)],
        ),
        (SYMBOL, "jdk.types.Symbol", vec![plain("string", STRING)]),
    ]
}

/// Keys with encoded values.
type Values = Vec<(u64, Vec<u8>)>;

/// A chunk under construction.
pub(crate) struct Made {
    pub(crate) start_ns: i64,
    pub(crate) ticks_per_second: i64,
    pub(crate) events: Vec<Vec<u8>>,
    /// By class: keys with encoded values.
    pub(crate) constants: Vec<(u64, Values)>,
}

impl Made {
    /// With threads 1 (tid 71) and 2 (tid 72), and stacks 1 (`A.work`) and 2 (`write` in `libc.so`,
    /// called by `A.work`).
    pub(crate) fn new(start_ns: i64) -> Self {
        let string = |of: &str| {
            let mut out = Vec::new();
            text(of, &mut out);
            out
        };
        let thread = |tid: u64, name: &str| {
            let mut out = string(&format!("os-{name}"));
            varint(tid, &mut out);
            text(name, &mut out);
            varint(tid - 60, &mut out);
            out
        };
        let numbers = |of: &[u64]| {
            let mut out = Vec::new();
            for number in of {
                varint(*number, &mut out);
            }
            out
        };
        let stack = |frames: &[[u64; 3]]| {
            let mut out = vec![0];
            varint(frames.len() as u64, &mut out);
            for [method, line, kind] in frames {
                out.extend(numbers(&[*method, *line, 0, *kind]));
            }
            out
        };
        let symbols = ["A", "work", "libc.so", "write"];
        let symbols = (1..)
            .zip(symbols)
            .map(|(key, of)| (key, string(of)))
            .collect();
        Self {
            start_ns,
            ticks_per_second: 1_000_000_000,
            events: Vec::new(),
            constants: vec![
                (
                    FRAME_TYPE,
                    vec![(0, string("Interpreted")), (1, string("Native"))],
                ),
                (
                    STATE,
                    vec![(0, string("STATE_RUNNABLE")), (1, string("STATE_SLEEPING"))],
                ),
                (THREAD, vec![(1, thread(71, "one")), (2, thread(72, "two"))]),
                (
                    TRACE,
                    vec![
                        (1, stack(&[[1, 7, 0]])),
                        (2, stack(&[[2, 0, 1], [1, 8, 0]])),
                    ],
                ),
                (METHOD, vec![(1, numbers(&[1, 2])), (2, numbers(&[2, 4]))]),
                (CLASS, vec![(1, numbers(&[1, 0])), (2, numbers(&[3, 0]))]),
                (SYMBOL, symbols),
            ],
        }
    }

    pub(crate) fn event(&mut self, class: u64, numbers: &[u64]) {
        let mut body = Vec::new();
        varint(class, &mut body);
        for number in numbers {
            varint(*number, &mut body);
        }
        self.events.push(sized(&body));
    }

    pub(crate) fn setting(&mut self, name: &str, value: &str) {
        self.setting_of(WALL, name, value);
    }

    pub(crate) fn setting_of(&mut self, class: u64, name: &str, value: &str) {
        let mut body = Vec::new();
        varint(SETTING, &mut body);
        varint(0, &mut body);
        varint(class, &mut body);
        text(name, &mut body);
        text(value, &mut body);
        self.events.push(sized(&body));
    }

    /// A thread dump, with its text inline or in the string pool.
    pub(crate) fn dump(&mut self, ts: u64, result: Result<&str, u64>) {
        let mut body = Vec::new();
        varint(THREAD_DUMP, &mut body);
        varint(ts, &mut body);
        match result {
            Ok(inline) => text(inline, &mut body),
            Err(key) => {
                body.push(2);
                varint(key, &mut body);
            }
        }
        self.events.push(sized(&body));
    }

    pub(crate) fn constant(&mut self, class: u64, key: u64, value: Vec<u8>) {
        match self.constants.iter_mut().find(|(of, _)| *of == class) {
            Some((_, values)) => values.push((key, value)),
            None => self.constants.push((class, vec![(key, value)])),
        }
    }

    /// A sample: ticks since the start, thread, stack, state, samples, span.
    pub(crate) fn sample(&mut self, sample: [u64; 6]) {
        self.event(WALL, &sample);
    }

    fn metadata() -> Vec<u8> {
        let mut strings: Vec<String> = Vec::new();
        let mut tree = Vec::new();
        let mut name = |of: &str, tree: &mut Vec<u8>| {
            let at = strings.iter().position(|known| known == of);
            let at = at.unwrap_or_else(|| {
                strings.push(of.to_owned());
                strings.len() - 1
            });
            varint(at as u64, tree);
        };
        let all = classes();
        name("root", &mut tree);
        varint(0, &mut tree);
        varint(1, &mut tree);
        name("metadata", &mut tree);
        varint(0, &mut tree);
        varint(all.len() as u64, &mut tree);
        for (id, class, fields) in all {
            name("class", &mut tree);
            varint(2, &mut tree);
            for part in ["name", class, "id", &id.to_string()] {
                name(part, &mut tree);
            }
            varint(fields.len() as u64, &mut tree);
            for (field, of, is_key, is_array) in fields {
                name("field", &mut tree);
                varint(2 + u64::from(is_key) + u64::from(is_array), &mut tree);
                for part in ["name", field, "class", &of.to_string()] {
                    name(part, &mut tree);
                }
                for (attribute, value, _) in [
                    ("constantPool", "true", is_key),
                    ("dimension", "1", is_array),
                ]
                .iter()
                .filter(|(_, _, has)| *has)
                {
                    name(attribute, &mut tree);
                    name(value, &mut tree);
                }
                varint(0, &mut tree);
            }
        }
        let mut body = Vec::new();
        for number in [0, 0, 0, 1, strings.len() as u64] {
            varint(number, &mut body);
        }
        for string in &strings {
            text(string, &mut body);
        }
        body.extend(tree);
        sized(&body)
    }

    fn checkpoint(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for number in [1, 0, 0, 0, 1, self.constants.len() as u64] {
            varint(number, &mut body);
        }
        for (class, values) in &self.constants {
            varint(*class, &mut body);
            varint(values.len() as u64, &mut body);
            for (key, value) in values {
                varint(*key, &mut body);
                body.extend(value);
            }
        }
        sized(&body)
    }

    /// Layout of async-profiler: metadata first, constants last.
    pub(crate) fn chunk(&self) -> Vec<u8> {
        let mut body = Self::metadata();
        self.events.iter().for_each(|event| body.extend(event));
        let pools_at = 68 + body.len();
        body.extend(self.checkpoint());
        let size = 68 + body.len();
        self.with_header(&body, [size as i64, pools_at as i64, 68])
    }

    /// A chunk of a program that was killed before it ended.
    pub(crate) fn unfinished(&self) -> Vec<u8> {
        let mut body = Self::metadata();
        self.events.iter().for_each(|event| body.extend(event));
        self.with_header(&body, [0x4000_0000, 0, 0])
    }

    fn with_header(&self, body: &[u8], [size, pools_at, metadata_at]: [i64; 3]) -> Vec<u8> {
        let mut out = b"FLR\0\0\x02\0\0".to_vec();
        let ticks = self.ticks_per_second;
        for field in [size, pools_at, metadata_at, self.start_ns, 0, 0, ticks] {
            out.extend(field.to_be_bytes());
        }
        out.extend(1_u32.to_be_bytes());
        out.extend(body);
        out
    }
}
