//! The queries of `sql/fleet/`, described by their header comments: a new file needs no code here.

use std::sync::LazyLock;

// Names and headers of the files: `HEADS`.
include!(concat!(env!("OUT_DIR"), "/fleet.rs"));

/// Description of a SQL file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextQuery {
    /// The name after `fleet` on the command line.
    pub name: &'static str,
    /// What it returns.
    pub about: String,
    /// Further paragraphs of its header.
    pub more: String,
    /// Parameters.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name in the SQL file.
    pub name: String,
    /// Unique id among the flags of all queries.
    pub id: String,
    /// The name of the flag, and the name of its value.
    pub flag: String,
    /// The metavar in the help.
    pub value_name: String,
    /// The default value.
    pub default: Option<String>,
    /// One line for the help.
    pub about: String,
}

impl Parameter {
    /// Whether it is a flag without a value.
    pub fn is_flag(&self) -> bool {
        matches!(self.default.as_deref(), Some("true" | "false"))
    }
}

/// All queries, in order of their names.
pub static QUERIES: LazyLock<Vec<TextQuery>> = LazyLock::new(|| {
    HEADS
        .iter()
        .filter_map(|(name, head)| parse(name, head))
        .collect()
});

/// `-- name: description.`, paragraphs, and a paragraph that starts with `Parameters:`.
fn parse(name: &'static str, head: &str) -> Option<TextQuery> {
    let lines = head.lines().map_while(|line| line.strip_prefix("--"));
    let text: Vec<&str> = lines
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let text = text.join("\n");
    let mut paragraphs = text.split("\n\n");
    let (_, about) = paragraphs.next()?.split_once(": ")?;
    let (mut more, mut parameters) = (Vec::new(), Vec::new());
    for paragraph in paragraphs {
        if let Some(list) = paragraph.strip_prefix("Parameters:") {
            parameters = list.lines().fold(Vec::new(), add_line);
            // The columns follow.
            break;
        }
        more.push(paragraph.replace('\n', " "));
    }
    Some(TextQuery {
        name,
        about: about.replace('\n', " ").trim_end_matches('.').to_owned(),
        more: more.join("\n\n"),
        parameters,
    })
}

/// `  name = default   meaning`, or a continuation of the meaning.
fn add_line(mut found: Vec<Parameter>, line: &str) -> Vec<Parameter> {
    let Some(parameter) = parameter(line) else {
        if let (Some(last), more @ [_, ..]) = (found.last_mut(), line.trim().as_bytes()) {
            last.about.push(' ');
            last.about.push_str(&String::from_utf8_lossy(more));
        }
        return found;
    };
    found.push(parameter);
    found
}

fn parameter(line: &str) -> Option<Parameter> {
    let line = line
        .strip_prefix("  ")
        .filter(|line| !line.starts_with(' '))?;
    let (name, default, about) = if let Some((name, rest)) = line.split_once(" = ") {
        // A default is a single word.
        let (default, about) = rest.trim_start().split_once(' ')?;
        (name, Some(default.to_owned()), about)
    } else {
        let (name, about) = line.split_once("   ")?;
        (name, None, about)
    };
    let name = name.trim();
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name.then(|| Parameter {
        name: name.to_owned(),
        id: format!("parameter {name}"),
        flag: name.replace('_', "-"),
        value_name: name.to_uppercase(),
        default,
        about: about.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_what_can_be_asked() {
        let head = "\
-- deviations: which hosts are slower
-- than their peers.
--
-- Two tests of each.
--
-- Parameters:
--   by = host   host; device,
--               else the name of a label
--   kind        kind of operation
--   all = false   those that do not deviate, too
--   limit = 100 rows at most
--
-- host          host, text
SELECT 1";
        let query = parse("deviations", head).unwrap();
        assert_eq!(query.about, "which hosts are slower than their peers");
        assert_eq!(query.more, "Two tests of each.");
        let found: Vec<(&str, Option<&str>, bool)> = query
            .parameters
            .iter()
            .map(|one| (one.name.as_str(), one.default.as_deref(), one.is_flag()))
            .collect();
        assert_eq!(
            found,
            [
                ("by", Some("host"), false),
                ("kind", None, false),
                ("all", Some("false"), true),
                ("limit", Some("100"), false)
            ]
        );
        assert_eq!(
            query.parameters[0].about,
            "host; device, else the name of a label"
        );
    }

    #[test]
    fn every_text_says_what_it_is_about() {
        assert_eq!(QUERIES.len(), HEADS.len());
        for query in QUERIES.iter() {
            assert!(!query.about.is_empty(), "{}", query.name);
            for parameter in &query.parameters {
                assert!(
                    !parameter.about.is_empty(),
                    "{} {}",
                    query.name,
                    parameter.name
                );
            }
        }
    }
}
