//! The answer to a question: tables of typed cells that any output form can print.
//!
//! Text, JSON, CSV, Arrow, Markdown and HTML are made from the same cells, so no form can say
//! something else than another.

use crate::Ns;

/// What a column holds and how people want to read it. Machine forms print ns and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Text or a plain name.
    Text,
    /// A path: shortened in the middle when the terminal is narrow.
    Path,
    /// A number without unit.
    Count,
    /// A point in time, ns since the epoch.
    Time,
    /// A length of time, ns.
    Duration,
    /// A number of bytes; people see it with a binary prefix.
    Bytes,
    /// 0–1, printed as per cent.
    Ratio,
    /// Number per second.
    Rate,
    /// Bytes per second.
    ByteRate,
    /// A plain number with decimals.
    Number,
    /// An id to be given back to the program (`op:17`).
    Id,
}

/// A column of a table, or the head of a single fact.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerColumn {
    /// Key in machine formats: lower snake case, with `_ns` or `_bytes` where there is a unit.
    pub name: String,
    /// Header for people, without unit.
    pub title: String,
    /// Unit and kind of its values.
    pub measure: Measure,
    /// Narrow terminals drop the highest numbers first; 0 always stays.
    pub priority: u8,
    /// People see it only where some row has a value.
    pub is_sparse: bool,
    /// Its middle may be left out where it is narrow, as that of paths is.
    pub is_long: bool,
}

impl AnswerColumn {
    /// A column that always stays, is shown also when it is empty, and is cut at its end where it
    /// is narrow.
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

/// A cell. What it counts is in the [`Measure`] of its column.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value: not recorded, or not applicable. JSON `null`, an empty cell elsewhere.
    Null,
    /// A whole number: ns, bytes, counts, ids.
    Int(i64),
    /// A number with decimals: ratios, rates, means.
    Float(f64),
    /// A name or path as it was recorded, not yet safe for a terminal: see [`crate::text::shown`].
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// A list, for machine forms; people see it joined by `, `.
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

/// How people should see a table; machine forms always print its rows.
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

/// One table of an answer, with what goes with it.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerTable {
    /// Name in machine formats.
    pub name: String,
    /// Headline for people.
    pub title: String,
    /// How people see it.
    pub form: Form,
    /// Columns, in order.
    pub columns: Vec<AnswerColumn>,
    /// Each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
    /// Rows marked as standing out, by index; shown with `!`.
    pub outliers: Vec<usize>,
    /// Rows cut by the window or the recording, shown with `*` and a footnote: index, and which edge
    /// (`begin`, `end`, `both`).
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
    /// Nothing was lost before this, ns since the epoch.
    pub begin: Ns,
    /// Nothing was lost after this; `None` if the end is not known.
    pub end: Option<Ns>,
    /// CPU whose events were lost; `None` if several or unknown.
    pub cpu: Option<i32>,
    /// As the column `lost_events.kind` has it: events, packets, bytes.
    pub kind: String,
    /// How many; `None` if unknown.
    pub count: Option<i64>,
}

/// What a query returns, before any output form.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// The question in command form: `io stats`.
    pub question: String,
    /// Window it was asked for, cut to the recording.
    pub window: Option<(Ns, Ns)>,
    /// Tables in the order in which people see them.
    pub tables: Vec<AnswerTable>,
    /// What was lost inside the window.
    pub losses: Vec<LossNote>,
    /// Sentences a reader must know: missing event classes, unknown objects and why, limits.
    pub caveats: Vec<String>,
    /// A command worth running next.
    pub next: Option<String>,
}
