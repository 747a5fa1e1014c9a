//! The answer to a query: tables of typed cells that every output format can print.
//!
//! Text, JSON, CSV, Arrow, Markdown and HTML are made from the same cells, so no two formats can
//! disagree.

use crate::topic_state::TopicState;
use crate::{Ns, text};

/// What a column contains, and how it is displayed. Machine-readable formats print ns and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Text or a plain name.
    Text,
    /// A path: shortened in the middle on a narrow terminal.
    Path,
    /// A number without unit.
    Count,
    /// A point in time, ns since the epoch.
    Time,
    /// A duration, ns.
    Duration,
    /// A size in bytes; displayed with a binary prefix.
    Bytes,
    /// 0–1, printed as a percentage.
    Ratio,
    /// Events per second.
    Rate,
    /// Bytes per second.
    ByteRate,
    /// A number with decimals, without unit.
    Number,
    /// An id that can be passed back to the program (`op:17`).
    Id,
}

/// A column of a table, or the label of a fact.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerColumn {
    /// Key in machine-readable formats: lower snake case, with `_ns` or `_bytes` if it has a unit.
    pub name: String,
    /// Displayed header, without unit.
    pub title: String,
    /// Unit and type of its values.
    pub measure: Measure,
    /// Narrow terminals drop the highest numbers first; 0 always stays.
    pub priority: u8,
    /// Displayed only if some row has a value.
    pub is_sparse: bool,
    /// Shortened in the middle on a narrow terminal, like paths.
    pub is_long: bool,
}

impl AnswerColumn {
    /// Creates a column that is never dropped, is displayed even if it is empty, and is truncated
    /// at the end on a narrow terminal.
    pub fn new(name: &str, title: &str, measure: Measure) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            measure,
            priority: 0,
            is_sparse: false,
            is_long: false,
        }
    }

    /// Sets [`AnswerColumn::is_sparse`].
    pub fn sparse(mut self, is_sparse: bool) -> Self {
        self.is_sparse = is_sparse;
        self
    }

    /// Sets [`AnswerColumn::is_long`].
    pub fn long(mut self, is_long: bool) -> Self {
        self.is_long = is_long;
        self
    }

    /// Sets [`AnswerColumn::priority`]; higher numbers are dropped earlier.
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }
}

/// A cell. The [`Measure`] of its column defines what it counts.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value: not recorded, or not applicable. JSON `null`, an empty cell elsewhere.
    Null,
    /// An integer: ns, bytes, counts, ids.
    Int(i64),
    /// A number with decimals: ratios, rates, means.
    Float(f64),
    /// A name or path as recorded, not yet safe for a terminal: see [`crate::text::shown`].
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// A list, for machine-readable formats; displayed joined by `, `.
    List(Vec<Value>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}
impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Float(value)
    }
}
impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}
impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.into())
    }
}
impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value)
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// How a table is displayed; machine-readable formats always print its rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// Rows below a header.
    Table,
    /// Rows are buckets: `from_ns`, `to_ns` (or plain), then one count column per series.
    Histogram,
    /// Rows are cells: time bucket, latency bucket, count, intensity.
    HeatMap,
    /// Column 0 holds a path; rows are in tree order with a `depth` column.
    Tree,
    /// Two columns, key and value.
    Facts,
}

/// One table of an answer, with its annotations.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerTable {
    /// Name in machine-readable formats.
    pub name: String,
    /// Displayed heading.
    pub title: String,
    /// How it is displayed.
    pub form: Form,
    /// Columns, in order.
    pub columns: Vec<AnswerColumn>,
    /// Each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
    /// Indexes of rows marked as outliers; shown with `!`.
    pub outliers: Vec<usize>,
    /// Rows cut by the window or the recording, shown with `*` and a footnote: index, and the edge
    /// (`begin`, `end`, `both`), or `lost` if events were lost between its start and its end.
    pub cut: Vec<(usize, &'static str)>,
    /// Facts about this table: filters, measured time, number of operations, percentiles.
    pub facts: Vec<(String, AnswerColumn, Value)>,
}

impl AnswerTable {
    /// A table without rows, shown as [`Form::Table`].
    pub fn new(name: &str, title: &str, columns: Vec<AnswerColumn>) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            form: Form::Table,
            columns,
            rows: Vec::new(),
            outliers: Vec::new(),
            cut: Vec::new(),
            facts: Vec::new(),
        }
    }
}

/// A range of lost events that touches the window.
#[derive(Debug, Clone, PartialEq)]
pub struct LossNote {
    /// Start of the range: nothing was lost before this time, ns since the epoch.
    pub begin: Ns,
    /// End of the range: nothing was lost after this time; `None` if unknown.
    pub end: Option<Ns>,
    /// CPU whose events were lost; `None` if several or unknown.
    pub cpu: Option<i32>,
    /// As the column `lost_events.kind` has it: events, packets, bytes.
    pub kind: String,
    /// Number lost; `None` if unknown.
    pub count: Option<i64>,
}

/// Rows that match a query but are left out of its tables unless an option includes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// What they are: `waits for work`.
    pub what: &'static str,
    /// Number of rows.
    pub count: u64,
    /// Sum of their known durations, ns.
    pub total_ns: Ns,
    /// Number and sum by name, the greatest sum first; empty if the rows have no names.
    pub by_name: Vec<(String, u64, Ns)>,
    /// The option that includes them.
    pub option: &'static str,
}

impl LeftOut {
    /// Names in the sentence; the rest are many.
    const NAMED: usize = 3;

    /// `left out: 97 waits for work (accept4, poll), 47.5 s in total; --waits includes them`.
    pub fn sentence(&self) -> String {
        let names = self.by_name.iter().take(Self::NAMED);
        let mut names: Vec<&str> = names.map(|(name, _, _)| name.as_str()).collect();
        if self.by_name.len() > Self::NAMED {
            names.push("…");
        }
        let names = match names.as_slice() {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        format!(
            "left out: {} {}{names}, {} in total; {} includes them",
            text::grouped(self.count),
            self.what,
            text::duration(self.total_ns),
            self.option,
        )
    }
}

/// The result of a query, before formatting.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// The query as a command: `io stats`.
    pub query: String,
    /// Requested window, clipped to the recording.
    pub window: Option<(Ns, Ns)>,
    /// Tables, in display order.
    pub tables: Vec<AnswerTable>,
    /// Events lost inside the window.
    pub losses: Vec<LossNote>,
    /// Limitations that affect the answer: missing event classes, unknown objects and why, limits.
    pub caveats: Vec<String>,
    /// Rows that match the query but are left out by default; the caveats mention them, too.
    pub left_out: Option<LeftOut>,
    /// A useful next command.
    pub next: Option<String>,
    /// State of the kind in the window; `None` if the answer is not of one kind.
    pub state: Option<TopicState>,
}

impl Answer {
    /// The caveats, except that nothing happened, which is no limitation.
    pub fn limitations(&self) -> impl Iterator<Item = &String> {
        let idle = match &self.state {
            Some(TopicState::NoneHappened { why }) => Some(why),
            _ => None,
        };
        self.caveats
            .iter()
            .filter(move |caveat| Some(*caveat) != idle)
    }
}
