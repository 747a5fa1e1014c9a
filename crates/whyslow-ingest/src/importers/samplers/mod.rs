//! Profiles in the forms that flame graphs are drawn from: collapsed stacks, speedscope, Chrome traces.
//!
//! They tell less than a recording: collapsed stacks have no times at all, the others count from a zero of their
//! own. What a form does not tell is told once ([`Lacks`]).

mod chrome;
mod collapsed;
mod frame;
mod spans;
mod speedscope;

use whyslow_model::Ns;

use crate::profile::Profile;

/// Which of them it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Collapsed,
    Speedscope,
    Chrome,
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
}

#[derive(Debug, Default)]
pub struct Read {
    pub profile: Profile,
    pub lacks: Lacks,
    pub samples: u64,
}

/// By the first bytes of a file.
pub fn form_of(head: &str) -> Option<Form> {
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
    }
    collapsed::is_collapsed(head).then_some(Form::Collapsed)
}

/// `written` is when the file was written last: what has times of its own is taken to end then.
pub fn read(form: Form, text: &str, written: Option<Ns>) -> Result<Read, String> {
    let mut read = match form {
        Form::Collapsed => collapsed::read(text, written.unwrap_or(0)),
        Form::Speedscope => speedscope::read(text, written)?,
        Form::Chrome => chrome::read(text, written)?,
    };
    read.profile.sort();
    Ok(read)
}

#[cfg(test)]
mod tests;
