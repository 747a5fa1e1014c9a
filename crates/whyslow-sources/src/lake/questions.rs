//! Questions of `sql/fleet/`, by what their headers say: a new text needs nothing here.

use std::sync::LazyLock;

// Names and heads of the texts: `HEADS`.
include!(concat!(env!("OUT_DIR"), "/fleet.rs"));

/// What a text of SQL answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextQuestion {
    /// As it is typed after `fleet`.
    pub name: &'static str,
    /// What it answers.
    pub about: String,
    /// What more its head says.
    pub more: String,
    /// What it can be asked for by.
    pub parameters: Vec<Parameter>,
}

/// What it can be asked for by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// As the text names it.
    pub name: String,
    /// What tells it from the flags of all questions.
    pub id: String,
    /// As it is typed, and as its value is shown.
    pub flag: String,
    /// What stands for its value in the help.
    pub value_name: String,
    /// What it is without the flag.
    pub default: Option<String>,
    /// One line for the help.
    pub about: String,
}

impl Parameter {
    /// One that is said or not.
    pub fn is_flag(&self) -> bool {
        matches!(self.default.as_deref(), Some("true" | "false"))
    }
}

/// Every question, in the order of their names.
pub static QUESTIONS: LazyLock<Vec<TextQuestion>> = LazyLock::new(|| {
    HEADS
        .iter()
        .filter_map(|(name, head)| parse(name, head))
        .collect()
});

/// `-- name: what it is about.`, paragraphs, and one that begins with `Parameters:`.
fn parse(name: &'static str, head: &str) -> Option<TextQuestion> {
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
            // Columns follow.
            break;
        }
        more.push(paragraph.replace('\n', " "));
    }
    Some(TextQuestion {
        name,
        about: about.replace('\n', " ").trim_end_matches('.').to_owned(),
        more: more.join("\n\n"),
        parameters,
    })
}

/// `  name = default   what it means`, or more of that.
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
        // A default is one word.
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
        let question = parse("deviations", head).unwrap();
        assert_eq!(question.about, "which hosts are slower than their peers");
        assert_eq!(question.more, "Two tests of each.");
        let found: Vec<(&str, Option<&str>, bool)> = question
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
            question.parameters[0].about,
            "host; device, else the name of a label"
        );
    }

    #[test]
    fn every_text_says_what_it_is_about() {
        assert_eq!(QUESTIONS.len(), HEADS.len());
        for question in QUESTIONS.iter() {
            assert!(!question.about.is_empty(), "{}", question.name);
            for parameter in &question.parameters {
                assert!(
                    !parameter.about.is_empty(),
                    "{} {}",
                    question.name,
                    parameter.name
                );
            }
        }
    }
}
