//! From the keys of an address to the words of the command line, which are read by its definitions:
//! what can be asked, and how it is said to be wrong, cannot differ.

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

/// Keys that are the server's own.
const OWN: &[&str] = &[
    "rec", "what", "view", "format", "interval", "count", "columns", "digest",
];
/// What would write files, or change what is said on the server's terminal.
pub const REFUSED: &[&str] = &[
    "output",
    "every",
    "for",
    "chart",
    "json",
    "csv",
    "no-pager",
    "strict",
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
/// A number of fewer digits could be meant in seconds.
const DIGITS_OF_NS: usize = 18;

/// Keys with their values, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn of(uri: &Uri) -> Result<Self, Refusal> {
        axum::extract::Query::try_from_uri(uri)
            .map(|axum::extract::Query(pairs)| Self(pairs))
            .map_err(|_| Refusal::wrong("what stands behind `?` is no list of keys and values"))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn need(&self, key: &str) -> Result<&str, Refusal> {
        let missing = || Refusal::wrong(format!("`{key}` is missing"));
        self.get(key).ok_or_else(missing)
    }

    /// A number, or what it is without.
    pub(crate) fn number<N: FromStr>(&self, key: &str, or: N) -> Result<N, Refusal> {
        self.get(key).map_or(Ok(or), |text| number(key, text))
    }

    /// Numbers with commas between them.
    pub(crate) fn numbers<N: FromStr>(&self, key: &str) -> Result<Vec<N>, Refusal> {
        let text = self.get(key).unwrap_or("");
        let words = text.split(',').filter(|word| !word.is_empty());
        words.map(|word| number(key, word)).collect()
    }

    /// With another value for a key.
    pub(crate) fn with(mut self, key: &str, value: String) -> Self {
        self.0.retain(|(name, _)| name != key);
        self.0.push((key.to_owned(), value));
        self
    }

    /// With another name for a key.
    pub(crate) fn renamed(mut self, from: &str, to: &str) -> Self {
        for (key, _) in &mut self.0 {
            if key == from {
                to.clone_into(key);
            }
        }
        self
    }

    /// The window asked for, or that a part of a recording is about; none for all of it.
    pub(crate) fn window(&self, opened: &Opened) -> Result<Option<Window>, Refusal> {
        let named = self.named_window(opened)?;
        Ok(named.or_else(|| opened.tables.info().focus()))
    }

    /// The window asked for, if one is.
    pub(crate) fn named_window(&self, opened: &Opened) -> Result<Option<Window>, Refusal> {
        let Some(text) = self.get("w").or_else(|| self.get("window")) else {
            return Ok(None);
        };
        let text = WindowText::parse(&exact(text)).map_err(Refusal::wrong)?;
        let calendar = opened.calendar(None);
        let window = text.resolve(&calendar, |operation| opened.window_of(operation))?;
        Ok(Some(window))
    }

    /// Refuses keys that mean nothing here.
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
            "`{text}` is no number for `{key}`, or out of range"
        ))
    };
    text.trim().parse().map_err(wrong)
}

fn unknown<'k>(key: &str, known: impl Iterator<Item = &'k str>) -> Refusal {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    Refusal::wrong(format!("`{key}` is no key of this question"))
        .hint(format!("there are: {}", known.join(", ")))
}

/// What was asked, in words.
#[derive(Debug)]
pub(crate) struct Spoken {
    pub(crate) words: Vec<OsString>,
    /// The keys, as flags.
    pub(crate) flags: Vec<String>,
    /// The same for people to paste.
    pub(crate) command: String,
}

/// The words of a question: `path` is what is asked, as in `io top`; `recording` where it lies and
/// how it was named.
pub(crate) fn spoken(
    command_line: &dyn CommandLine,
    path: &[&str],
    recording: (&Path, &str),
    query: &Query,
) -> Result<Spoken, Refusal> {
    let nothing = || {
        Refusal::new(
            axum::http::StatusCode::NOT_FOUND,
            format!("there is no question `{}`", path.join(" ")),
        )
        .hint("`recordings` lists what can be asked")
    };
    let command = command_line.definition(path).ok_or_else(nothing)?;
    let mut flags = Vec::new();
    for (key, value) in &query.0 {
        let key = if key == "w" { "window" } else { key.as_str() };
        if OWN.contains(&key) {
            continue;
        }
        if REFUSED.contains(&key) {
            return Err(Refusal::wrong(format!(
                "`{key}` cannot be asked of a server"
            )));
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

/// `--key=value`, `--key`, or nothing if it is switched off.
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
            "`{key}` is on (1) or off (0), not `{value}`"
        ))),
    }
}

fn join(
    path: &[&str],
    (place, shown): (&Path, &str),
    flags: Vec<String>,
    behind: &[&str],
) -> Spoken {
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
    let said = path.iter().copied().chain([shown.as_str()]);
    let said = said.chain(behind.iter().copied());
    for word in said.chain(flags.iter().map(String::as_str)) {
        command.push(' ');
        command.push_str(&quoted(word));
    }
    Spoken {
        words,
        flags,
        command,
    }
}

/// `BEGIN..END` in whole numbers is in nanoseconds; with few digits that has to be said.
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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::{ArgAction, Command};

    use super::*;
    use crate::command_line::{Explanation, FlameGraphQuestion, LakeQuestion, Question};

    /// Some flags of some commands.
    struct Definitions;

    impl CommandLine for Definitions {
        fn definition(&self, path: &[&str]) -> Option<Command> {
            let value = |name: &'static str| Arg::new(name).long(name).num_args(1);
            let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
            let command = Command::new("whyslow").args(["window", "output", "color"].map(value));
            Some(match path {
                ["io" | "files", "top" | "stats" | "log"] => command
                    .args(["min", "pid", "file", "comm"].map(value))
                    .args(["errors", "wide"].map(flag)),
                ["io", "hist"] => command.arg(value("linear").visible_alias("freq-resolution")),
                ["explain"] => command.arg(value("slow")),
                ["sql"] => command.arg(flag("tables")),
                _ => return None,
            })
        }

        fn question(&self, _: &[OsString]) -> Result<Option<Box<dyn Question>>, clap::Error> {
            Ok(None)
        }

        fn explanation(&self, _: &[OsString]) -> Result<Option<Box<dyn Explanation>>, clap::Error> {
            Ok(None)
        }

        fn flame_graph(
            &self,
            _: &[OsString],
        ) -> Result<Option<Box<dyn FlameGraphQuestion>>, clap::Error> {
            Ok(None)
        }

        fn lake_question(
            &self,
            _: &[OsString],
        ) -> Result<Option<Box<dyn LakeQuestion>>, clap::Error> {
            Ok(None)
        }
    }

    fn query(text: &str) -> Query {
        let uri: Uri = format!("/api/v1/table?{text}").parse().expect("an address");
        Query::of(&uri).expect("keys")
    }

    fn command(path: &[&str], text: &str) -> Result<String, String> {
        let recording = (Path::new("/r/web.wsl"), "web.wsl");
        spoken(&Definitions, path, recording, &query(text))
            .map(|spoken| spoken.command)
            .map_err(|refusal| format!("{refusal:?}"))
    }

    #[test]
    fn keys_become_flags_of_the_command() {
        let check = |path: &[&str], text: &str, want: &str| {
            assert_eq!(command(path, text).as_deref(), Ok(want), "{text}");
        };
        check(&["io", "top"], "what=io&view=top", "whyslow io top web.wsl");
        check(
            &["io", "top"],
            "min=5ms&errors=1&wide=0&w=%2B1s..%2B2s",
            "whyslow io top web.wsl --min=5ms --errors --window=+1s..+2s",
        );
        check(
            &["io", "stats"],
            "w=1421342317216484041..1421342333821580313&interval=1&count=5",
            "whyslow io stats web.wsl 1 5 --window=1421342317216484041..1421342333821580313",
        );
        check(
            &["io", "log"],
            "w=5..7000",
            "whyslow io log web.wsl --window=5ns..7000ns",
        );
        check(
            &["files", "top"],
            "file=/tmp/it's+*.txt",
            r"whyslow files top web.wsl '--file=/tmp/it'\''s *.txt'",
        );
        check(
            &["io", "top"],
            "comm=%C3%A4%1b",
            r"whyslow io top web.wsl $'--comm=\303\244\033'",
        );
        check(
            &["io", "hist"],
            "freq-resolution=5",
            "whyslow io hist web.wsl --linear=5",
        );
        check(
            &["explain"],
            "slow=open%3E100ms",
            "whyslow explain web.wsl '--slow=open>100ms'",
        );
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let check = |path: &[&str], text: &str, part: &str| {
            let message = command(path, text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        };
        check(&["io", "top"], "pids=5", "no key of this question");
        check(&["io", "top"], "output=/etc/passwd", "cannot be asked");
        check(&["io", "top"], "color=always", "cannot be asked");
        check(&["io", "top"], "errors=maybe", "on (1) or off (0)");
        check(&["io", "no-such"], "", "no question");
        check(&["sql"], "query-file=/etc/passwd&tables2", "no key");
    }
}
