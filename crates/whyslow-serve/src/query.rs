//! Converts the query parameters of a URL to the words of the command line, which are parsed with
//! its definitions, so that both accept the same flags with the same errors.

use std::ffi::OsString;
use std::path::Path;
use std::str::FromStr;

use axum::http::Uri;
use clap::Arg;
use whyslow_base::time::WindowText;
use whyslow_model::Window;
use whyslow_render::quoted;
use whyslow_sources::recording::Opened;

use crate::command_line::CommandLine;
use crate::reply::Refusal;

/// Parameters of the server itself.
const OWN: &[&str] = &[
    "rec", "what", "view", "format", "interval", "count", "columns", "digest",
];
/// Flags that write files, or change messages on the server's terminal.
pub const REFUSED: &[&str] = &[
    "output",
    "every",
    "for",
    "chart",
    "json",
    "csv",
    "no-pager",
    "strict",
    "victims",
    "why",
    "title",
    "redact",
    "redact-key",
    "keep",
    "color",
    "quiet",
    "progress",
    "no-progress",
    "help",
    "version",
];
/// Numbers with fewer digits could be seconds.
const DIGITS_OF_NS: usize = 18;

/// Parameters with their values, in order.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// The parameters of a URL.
    pub fn of(uri: &Uri) -> Result<Self, Refusal> {
        axum::extract::Query::try_from_uri(uri)
            .map(|axum::extract::Query(pairs)| Self(pairs))
            .map_err(|_| Refusal::wrong("cannot parse the query string"))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn need(&self, key: &str) -> Result<&str, Refusal> {
        let missing = || Refusal::wrong(format!("missing parameter `{key}`"));
        self.get(key).ok_or_else(missing)
    }

    /// A number, or `or` if the parameter is missing.
    pub(crate) fn number<N: FromStr>(&self, key: &str, or: N) -> Result<N, Refusal> {
        self.get(key).map_or(Ok(or), |text| number(key, text))
    }

    /// Numbers separated by commas.
    pub(crate) fn numbers<N: FromStr>(&self, key: &str) -> Result<Vec<N>, Refusal> {
        let text = self.get(key).unwrap_or("");
        let words = text.split(',').filter(|word| !word.is_empty());
        words.map(|word| number(key, word)).collect()
    }

    /// Sets a parameter.
    pub(crate) fn with(mut self, key: &str, value: String) -> Self {
        self.0.retain(|(name, _)| name != key);
        self.0.push((key.to_owned(), value));
        self
    }

    /// Renames a parameter.
    pub(crate) fn renamed(mut self, from: &str, to: &str) -> Self {
        for (key, _) in &mut self.0 {
            if key == from {
                to.clone_into(key);
            }
        }
        self
    }

    /// The requested window, otherwise the focus of a snapshot; `None` for the whole recording.
    pub(crate) fn window(&self, opened: &Opened) -> Result<Option<Window>, Refusal> {
        let named = self.named_window(opened)?;
        Ok(named.or_else(|| opened.tables.info().focus()))
    }

    /// The requested window, if any.
    pub(crate) fn named_window(&self, opened: &Opened) -> Result<Option<Window>, Refusal> {
        let Some(text) = self.get("w").or_else(|| self.get("window")) else {
            return Ok(None);
        };
        let text = WindowText::parse(&exact(text)).map_err(Refusal::wrong)?;
        let calendar = opened.calendar(None);
        let window = text.resolve(&calendar, |operation| opened.window_of(operation))?;
        Ok(Some(window))
    }

    /// Rejects unknown parameters.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Refusal> {
        let is_known = |key: &String| known.contains(&key.as_str()) || key == "rec";
        match self.0.iter().find(|(key, _)| !is_known(key)) {
            None => Ok(()),
            Some((key, _)) => Err(unknown(key, known.iter().copied())),
        }
    }
}

fn number<N: FromStr>(key: &str, text: &str) -> Result<N, Refusal> {
    let wrong = |_| {
        Refusal::wrong(format!(
            "invalid number `{text}` for `{key}`, or out of range"
        ))
    };
    text.trim().parse().map_err(wrong)
}

fn unknown<'k>(key: &str, known: impl Iterator<Item = &'k str>) -> Refusal {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    Refusal::wrong(format!("unknown parameter `{key}`"))
        .hint(format!("parameters: {}", known.join(", ")))
}

/// A request as a command line.
#[derive(Debug)]
pub struct CommandWords {
    /// For the parser.
    pub words: Vec<OsString>,
    /// The parameters, as flags.
    pub flags: Vec<String>,
    /// For people to paste.
    pub command: String,
}

/// The command line of a request: `path` is the command, such as `io top`; `recording` is the place
/// and the name of the recording.
pub fn command_words(
    command_line: &dyn CommandLine,
    path: &[&str],
    recording: (&Path, &str),
    query: &Query,
) -> Result<CommandWords, Refusal> {
    let nothing = || {
        Refusal::new(
            axum::http::StatusCode::NOT_FOUND,
            format!("unknown query `{}`", path.join(" ")),
        )
        .hint("see `recordings` for the available kinds and views")
    };
    let command = command_line.definition(path).ok_or_else(nothing)?;
    let mut flags = Vec::new();
    for (key, value) in &query.0 {
        let key = if key == "w" { "window" } else { key.as_str() };
        if OWN.contains(&key) {
            continue;
        }
        if REFUSED.contains(&key) {
            return Err(Refusal::wrong(format!("cannot use `{key}` in a request")));
        }
        let is_it = |arg: &&Arg| has_name(arg, key);
        let Some(arg) = command.get_arguments().find(is_it) else {
            let names = command.get_arguments().filter_map(Arg::get_long);
            let taken = names.filter(|name| !REFUSED.contains(name));
            return Err(unknown(key, taken.chain(OWN.iter().copied())));
        };
        flags.extend(flag(arg, key, value)?);
    }
    let behind: Vec<&str> = ["interval", "count"]
        .iter()
        .filter_map(|key| query.get(key))
        .collect();
    Ok(join(path, recording, flags, &behind))
}

fn has_name(arg: &Arg, name: &str) -> bool {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    arg.get_long() == Some(name) || arg.get_long().is_some() && aliases.contains(&name)
}

/// `--key=value`, `--key`, or `None` if it is switched off.
fn flag(arg: &Arg, key: &str, value: &str) -> Result<Option<String>, Refusal> {
    let name = arg.get_long().unwrap_or(key);
    if arg.get_action().takes_values() {
        return Ok(Some(match name {
            "window" | "vs" => format!("--{name}={}", exact(value)),
            _ => format!("--{name}={value}"),
        }));
    }
    match value {
        "" | "1" | "true" => Ok(Some(format!("--{name}"))),
        "0" | "false" => Ok(None),
        _ => Err(Refusal::wrong(format!(
            "invalid value `{value}` for `{key}`: use 1 or 0"
        ))),
    }
}

fn join(
    path: &[&str],
    (place, shown): (&Path, &str),
    flags: Vec<String>,
    behind: &[&str],
) -> CommandWords {
    let mut words: Vec<OsString> = vec!["whyslow".into()];
    words.extend(path.iter().map(OsString::from));
    words.extend(flags.iter().map(OsString::from));
    words.extend(["--".into(), place.as_os_str().to_owned()]);
    words.extend(behind.iter().map(OsString::from));
    let shown = if shown.starts_with('-') {
        format!("./{shown}")
    } else {
        shown.to_owned()
    };
    let mut command = String::from("whyslow");
    let shown_words = path.iter().copied().chain([shown.as_str()]);
    let shown_words = shown_words.chain(behind.iter().copied());
    for word in shown_words.chain(flags.iter().map(String::as_str)) {
        command.push(' ');
        command.push_str(&quoted(word));
    }
    CommandWords {
        words,
        flags,
        command,
    }
}

/// `BEGIN..END` in integers is in nanoseconds; small numbers need an explicit unit.
fn exact(window: &str) -> String {
    let side = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (text.is_empty() || is_number).then(|| match text.len() {
            1..DIGITS_OF_NS => format!("{text}ns"),
            _ => text.to_owned(),
        })
    };
    let sides = window
        .split_once("..")
        .and_then(|(begin, end)| Some((side(begin)?, side(end)?)));
    match sides {
        Some((begin, end)) => format!("{begin}..{end}"),
        None => window.to_owned(),
    }
}
