//! Profiles in flame-graph formats and in formats of language profilers: collapsed stacks,
//! speedscope, Chrome traces; rbspy, stackprof, ruby-prof, pprof.
//!
//! They contain less than a recording: some have no timestamps, others count from an unknown zero,
//! or sample one thread at a time. What a profile lacks is reported once ([`Lacks`]).

mod chrome;
mod collapsed;
mod frame;
mod marshal;
mod pprof;
mod rbspy;
mod ruby_prof;
mod spans;
mod speedscope;
mod stackprof;
mod times;

use std::borrow::Cow;

use whyslow_model::Ns;

use crate::limits::LOG_EXAMPLES_MAX;
use crate::profile::Profile;

/// Profile formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Collapsed stacks: `a;b;c 17`.
    Collapsed,
    /// speedscope's JSON.
    Speedscope,
    /// Chrome's trace events: calls with start and end.
    Chrome,
    /// Raw samples of rbspy.
    Rbspy,
    /// Results of stackprof as a Ruby dump.
    Stackprof,
    /// Results of stackprof as JSON.
    StackprofJson,
    /// Tables of ruby-prof.
    RubyProf,
    /// Call tree of ruby-prof.
    CallTree,
    /// pprof, gzip-compressed or plain.
    Pprof,
}

impl Form {
    /// All formats.
    pub const ALL: [Form; 9] = [
        Form::Collapsed,
        Form::Speedscope,
        Form::Chrome,
        Form::Rbspy,
        Form::Stackprof,
        Form::StackprofJson,
        Form::RubyProf,
        Form::CallTree,
        Form::Pprof,
    ];

    /// Name of the format in lower case, for labels and counts.
    pub fn name(self) -> &'static str {
        match self {
            Form::Collapsed => "collapsed",
            Form::Speedscope => "speedscope",
            Form::Chrome => "chrome",
            Form::Rbspy => "rbspy",
            Form::Stackprof | Form::StackprofJson => "stackprof",
            Form::RubyProf | Form::CallTree => "ruby-prof",
            Form::Pprof => "pprof",
        }
    }

    fn is_text(self) -> bool {
        !matches!(self, Form::Stackprof | Form::Pprof)
    }
}

/// Information that a profile lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lacks {
    /// Samples without a timestamp.
    pub times: u64,
    /// Timestamps count from an unknown zero.
    pub dates: bool,
    /// Invalid lines or events.
    pub bad: u64,
    /// Ends without a start, and starts without an end.
    pub unpaired: u64,
    /// Threads identified only by an address of the runtime.
    pub addresses: u64,
    /// Each sample is of the thread that had the interpreter lock: other threads are not sampled.
    pub one_thread: bool,
    /// Totals per function, with its caller at most, instead of samples.
    pub sums: bool,
    /// The profile measures something other than time: objects, bytes.
    pub not_time: bool,
    /// Samples that the profiler missed.
    pub missed: u64,
    /// Stacks truncated to the innermost frames to limit memory.
    pub cut: u64,
    /// Addresses without a symbol.
    pub unnamed: u64,
    /// Divisor of all weights if one exceeded the range of a row; 0 otherwise.
    pub scaled: u64,
}

/// Maximum weight of a row.
const CREDITS_MAX: u64 = i32::MAX as u64;

/// Contents of one profile.
#[derive(Debug, Default)]
pub struct Read {
    /// Threads, stacks and samples.
    pub profile: Profile,
    /// What the format lacks, and errors.
    pub lacks: Lacks,
    /// Samples that were read.
    pub samples: u64,
    /// Examples of errors: location and reason, the first ones.
    pub examples: Vec<String>,
    /// Weights beyond the range of a row, by index of their point.
    heavy: Vec<(usize, u64)>,
}

impl Read {
    /// Counts an error.
    fn bad(&mut self, words: impl FnOnce() -> String) {
        self.lacks.bad += 1;
        if self.examples.len() < LOG_EXAMPLES_MAX {
            self.examples.push(words());
        }
    }

    /// Credits of the next point; counts its samples.
    fn weigh(&mut self, weight: u64) -> u32 {
        self.samples = self.samples.saturating_add(weight);
        if weight > CREDITS_MAX {
            self.heavy.push((self.profile.points.len(), weight));
        }
        weight.min(CREDITS_MAX) as u32
    }

    /// Divides all weights if one is too large: their shares matter, because these formats have no
    /// times.
    fn scale(&mut self) {
        let heavy = std::mem::take(&mut self.heavy);
        let Some(greatest) = heavy.iter().map(|(_, weight)| *weight).max() else {
            return;
        };
        let by = greatest.div_ceil(CREDITS_MAX);
        let scaled = |weight: u64| {
            let rounded = weight / by + u64::from(weight % by >= by.div_ceil(2));
            // The minimum of a row, a negligible share.
            rounded.max(1) as u32
        };
        for point in &mut self.profile.points {
            point.credits = scaled(u64::from(point.credits));
        }
        for (place, weight) in heavy {
            self.profile.points[place].credits = scaled(weight);
        }
        self.lacks.scaled = by;
    }
}

/// The format of a file starting with `head`.
pub fn form_of(head: &[u8]) -> Option<Form> {
    if marshal::is_dump(head) {
        return Some(Form::Stackprof);
    }
    if pprof::is_profile(head) {
        return Some(Form::Pprof);
    }
    // Excludes archives of texts.
    if head.contains(&0) {
        return None;
    }
    form_of_text(&String::from_utf8_lossy(head))
}

fn form_of_text(head: &str) -> Option<Form> {
    let begin = head.trim_start();
    if begin.starts_with('{') || begin.starts_with('[') {
        if head.contains("speedscope") {
            return Some(Form::Speedscope);
        }
        let is_chrome = head.contains("\"traceEvents\"")
            || begin.starts_with('[') && head.contains("\"ph\"") && head.contains("\"ts\"");
        if is_chrome {
            return Some(Form::Chrome);
        }
        if stackprof::is_json(head) {
            return Some(Form::StackprofJson);
        }
    }
    let known = [
        (Form::Rbspy, rbspy::is_raw(head)),
        (Form::RubyProf, ruby_prof::is_printed(head)),
        (Form::CallTree, ruby_prof::is_call_tree(head)),
        (Form::Collapsed, collapsed::is_collapsed(head)),
    ];
    known.iter().find(|(_, is)| *is).map(|(form, _)| *form)
}

/// `written` is the modification time of the file: profiles with relative times are assumed to end
/// then.
pub fn read(form: Form, bytes: &[u8], written: Option<Ns>) -> Result<Read, String> {
    let text = if form.is_text() {
        String::from_utf8_lossy(bytes)
    } else {
        Cow::default()
    };
    let mut read = match form {
        Form::Collapsed => collapsed::read(&text, written.unwrap_or(0)),
        Form::Speedscope => speedscope::read(&text, written)?,
        Form::Chrome => chrome::read(&text, written)?,
        Form::Rbspy => rbspy::read(&text, written)?,
        Form::Stackprof => stackprof::read_dump(bytes, written)?,
        Form::StackprofJson => stackprof::read_json(&text, written)?,
        Form::RubyProf => ruby_prof::read_printed(&text, written),
        Form::CallTree => ruby_prof::read_call_tree(&text, written),
        Form::Pprof => pprof::read(bytes, written)?,
    };
    read.scale();
    read.profile.sort();
    Ok(read)
}

#[cfg(test)]
mod tests;
