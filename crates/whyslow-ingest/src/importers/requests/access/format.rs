//! Access log formats: `log_format` of nginx with `$variables`, `LogFormat` of Apache with `%`
//! directives.
//!
//! A format is compiled to a list of fields and the texts between them. A line is parsed from left
//! to right: a field extends to the first occurrence of the text after it. In quotes Apache writes
//! `\"`, which does not end a field; nginx writes `\x22`, or `\"` with `escape=json`.

use super::field::{Field, apache_field, nginx_field};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    Nginx,
    Apache,
    /// Used by both servers.
    Either,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) server: Server,
    /// Text before the first field.
    before: String,
    /// Fields with the text after each; the last one extends to the end of the line if that is
    /// empty.
    fields: Vec<(Field, String)>,
}

const COMMON: &str = "%h %l %u %t \"%r\" %>s %b";
const COMBINED: &str = "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\"";
const VHOST: &str = "%v:%{canonical}p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"";
const FIELDS_MAX: usize = 64;

impl Format {
    /// A format from the server's configuration, with or without the directive's name, or the name
    /// of a predefined format.
    pub(super) fn compile(text: &str) -> Result<Format, String> {
        let format = match text.trim() {
            "common" => COMMON.to_owned(),
            "combined" => COMBINED.to_owned(),
            "vhost_combined" => VHOST.to_owned(),
            other => bare(other),
        };
        let is_nginx = format.contains('$');
        if is_nginx == format.contains('%') {
            return Err(format!(
                "{text:?} is not a log format of nginx ($remote_addr …) or Apache (%h …), nor one of common, combined, vhost_combined"
            ));
        }
        let compiled = if is_nginx {
            compile(&format, Server::Nginx, nginx_field)
        } else {
            compile(&format, Server::Apache, apache_field)
        }?;
        let is_timed = compiled.fields.iter().any(|(field, _)| field.is_time());
        if !is_timed {
            return Err(format!(
                "{text:?} contains no time ($time_local, $time_iso8601 or $msec of nginx; %t of Apache)"
            ));
        }
        Ok(compiled)
    }

    /// The same for lines that both servers write.
    pub(super) fn built_in(text: &str) -> Option<Format> {
        let mut format = Format::compile(text).ok()?;
        format.server = Server::Either;
        Some(format)
    }

    /// The texts of a line's fields.
    pub(super) fn split<'l>(
        &self,
        line: &'l str,
        take: &mut dyn FnMut(&Field, &'l str) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut rest = line
            .strip_prefix(&*self.before)
            .ok_or_else(|| format!("the line does not start with {:?}", self.before))?;
        for (field, behind) in &self.fields {
            let end = if behind.is_empty() {
                Some(rest.len())
            } else {
                end_of(rest, behind, field.is_list())
            };
            let Some(end) = end else {
                return Err(format!("missing {behind:?} after {}", field.name()));
            };
            take(field, &rest[..end])?;
            rest = &rest[end + behind.len()..];
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err("text after the last field of the format".to_owned())
        }
    }
}

/// End of a field that is followed by `behind`.
fn end_of(rest: &str, behind: &str, is_list: bool) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + rest[from..].find(behind)?;
        let before = &rest.as_bytes()[..at];
        let slashes = before.iter().rev().take_while(|byte| **byte == b'\\');
        let is_escaped = behind.starts_with('"') && slashes.count() % 2 == 1;
        // With several upstream servers: `0.001, 0.002`, `0.001 : 0.002`.
        let goes_on = is_list
            && behind.starts_with(' ')
            && (before.ends_with(b",") || before.ends_with(b" :") || rest[at..].starts_with(" : "));
        if !is_escaped && !goes_on {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Strips `log_format main '…' '…';`, `LogFormat "…" name`.
fn bare(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("log_format") {
        let quote = if rest.contains('\'') { '\'' } else { '"' };
        return rest.split(quote).skip(1).step_by(2).collect();
    }
    let rest = text.strip_prefix("LogFormat").map(str::trim_start);
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix('"')) else {
        return text.to_owned();
    };
    let end = end_of(rest, "\"", false).unwrap_or(rest.len());
    rest[..end].replace("\\\"", "\"").replace("\\\\", "\\")
}

/// Parses a field at the start of a text.
type TakeField = fn(&str) -> Option<(Field, &str)>;

fn compile(format: &str, server: Server, take: TakeField) -> Result<Format, String> {
    let sign = if server == Server::Nginx { '$' } else { '%' };
    let mut compiled = Format {
        server,
        before: String::new(),
        fields: Vec::new(),
    };
    let mut rest = format;
    loop {
        let at = rest.find(sign).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(at);
        match compiled.fields.last_mut() {
            Some((_, after)) => after.push_str(text),
            None => compiled.before.push_str(text),
        }
        if behind.is_empty() {
            return Ok(compiled);
        }
        if let Some(after) = behind.strip_prefix("%%") {
            match compiled.fields.last_mut() {
                Some((_, text)) => text.push('%'),
                None => compiled.before.push('%'),
            }
            rest = after;
            continue;
        }
        let place = format.len() - behind.len();
        if compiled
            .fields
            .last()
            .is_some_and(|(_, text)| text.is_empty())
        {
            return Err(format!(
                "no separator between two fields at byte {place} of the format"
            ));
        }
        if compiled.fields.len() >= FIELDS_MAX {
            return Err(format!("more than {FIELDS_MAX} fields"));
        }
        let (field, after) = take(&behind[1..])
            .ok_or_else(|| format!("missing field name at byte {place} of the format"))?;
        compiled.fields.push((field, String::new()));
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(format: &str, line: &str) -> Result<Vec<String>, String> {
        let mut texts = Vec::new();
        let format = Format::compile(format)?;
        format.split(line, &mut |field, text| {
            texts.push(format!("{}={text}", field.name()));
            Ok(())
        })?;
        Ok(texts)
    }

    #[test]
    fn lines_are_split_at_what_stands_between_fields() {
        let check = |format: &str, line: &str, expected: &[&str]| {
            let seen = split(format, line).expect("a line in this format");
            assert_eq!(seen, expected, "{line}");
        };
        check(
            "%t \"%r\" \"%{User-Agent}i\"",
            "[1] \"GET /\" \"a \\\"b\\\\\"",
            &["time=[1]", "request=GET /", "other=a \\\"b\\\\"],
        );
        check(
            "log_format main '$msec \"$request\" '\n  'rt=$request_time $upstream_response_time end';",
            "1.5 \"GET /\" rt=0.1 0.2, 0.3 : 0.4 end",
            &[
                "time=1.5",
                "request=GET /",
                "length=0.1",
                "upstream_response=0.2, 0.3 : 0.4",
            ],
        );
        check(
            "LogFormat \"%t \\\"%r\\\" 100%% %D\" name",
            "[1] \"GET /\" 100% 7",
            &["time=[1]", "request=GET /", "length=7"],
        );
    }

    #[test]
    fn formats_that_tell_no_time_or_cannot_be_split_are_refused() {
        for bad in [
            "",
            "%h %l",
            "$remote_addr",
            "%t%h",
            "%t %",
            "abc",
            "$msec $",
            "%t $msec",
        ] {
            assert!(Format::compile(bad).is_err(), "{bad}");
        }
        assert!(split("%t \"%r\"", "[1] \"x\" more").is_err());
        assert!(split("%t \"%r\"", "[1] \"x").is_err());
    }
}
