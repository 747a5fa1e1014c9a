//! Profiles in the forms that flame graphs are drawn from, and in those of profilers of a language: collapsed
//! stacks, speedscope, Chrome traces; rbspy, stackprof, ruby-prof, pprof.
//!
//! They tell less than a recording: some have no times at all, others count from a zero of their own, or tell of
//! one thread at a time. What a form does not tell is told once ([`Lacks`]).

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

/// Which of them it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Collapsed stacks: `a;b;c 17`.
    Collapsed,
    /// speedscope's JSON.
    Speedscope,
    /// Chrome's trace events: calls with begin and end.
    Chrome,
    /// Raw samples of rbspy.
    Rbspy,
    /// Results of stackprof, in Ruby's own form or as JSON.
    Stackprof,
    /// The same as JSON.
    StackprofJson,
    /// Tables of ruby-prof, and its call tree.
    RubyProf,
    /// Call tree of ruby-prof.
    CallTree,
    /// pprof, gzip-compressed or plain.
    Pprof,
}

impl Form {
    /// Every form.
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

    /// Name of the form in lower case, for labels and counts.
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

/// What a profile does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lacks {
    /// Samples without any time.
    pub times: u64,
    /// Times count from a zero that nothing relates to the calendar.
    pub dates: bool,
    /// Lines or events that make no sense.
    pub bad: u64,
    /// Ends without a begin, and begins that nothing ended.
    pub unpaired: u64,
    /// Threads that are known by an address of the runtime alone.
    pub addresses: u64,
    /// Each sample is of the thread that had the interpreter: nothing is told of the others.
    pub one_thread: bool,
    /// Sums by function, and its caller at most, instead of samples.
    pub sums: bool,
    /// It counts something else than time: objects, bytes.
    pub not_time: bool,
    /// Samples that the profiler says it missed.
    pub missed: u64,
    /// Stacks of which only the innermost frames were kept: all of them would take too much room.
    pub cut: u64,
    /// Addresses without a name.
    pub unnamed: u64,
    /// What all weights were divided by, as one was more than a row can tell; 0 if none was.
    pub scaled: u64,
}

/// The greatest weight of a row.
const CREDITS_MAX: u64 = i32::MAX as u64;

/// What one profile gives.
#[derive(Debug, Default)]
pub struct Read {
    /// Threads, stacks and samples.
    pub profile: Profile,
    /// What its form does not report, or got wrong.
    pub lacks: Lacks,
    /// Samples that were read.
    pub samples: u64,
    /// The first of what makes no sense: where, and why.
    pub examples: Vec<String>,
    /// Weights that are more than a row can tell, by the place of their point.
    heavy: Vec<(usize, u64)>,
}

impl Read {
    /// Counts something that makes no sense.
    fn bad(&mut self, words: impl FnOnce() -> String) {
        self.lacks.bad += 1;
        if self.examples.len() < LOG_EXAMPLES_MAX {
            self.examples.push(words());
        }
    }

    /// The credits of the point that comes next; counts its samples.
    fn weigh(&mut self, weight: u64) -> u32 {
        self.samples = self.samples.saturating_add(weight);
        if weight > CREDITS_MAX {
            self.heavy.push((self.profile.points.len(), weight));
        }
        weight.min(CREDITS_MAX) as u32
    }

    /// Divides all weights if one is too great: their shares matter, as these forms have no times.
    fn scale(&mut self) {
        let heavy = std::mem::take(&mut self.heavy);
        let Some(greatest) = heavy.iter().map(|(_, weight)| *weight).max() else {
            return;
        };
        let by = greatest.div_ceil(CREDITS_MAX);
        let scaled = |weight: u64| {
            let rounded = weight / by + u64::from(weight % by >= by.div_ceil(2));
            // The least that a row can tell: a share that nobody sees.
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

/// By the first bytes of a file.
pub fn form_of(head: &[u8]) -> Option<Form> {
    if marshal::is_dump(head) {
        return Some(Form::Stackprof);
    }
    if pprof::is_profile(head) {
        return Some(Form::Pprof);
    }
    // Archives of texts are none.
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

/// `written` is when the file was written last: what has times of its own is taken to end then.
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
