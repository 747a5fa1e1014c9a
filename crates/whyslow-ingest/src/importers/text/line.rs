//! Splits a line into its fields.

use whyslow_model::Ns;

/// Fields of the current line; buffers are reused for the next one.
#[derive(Debug, Default)]
pub struct Line {
    /// Unescaped values, one after another.
    values: Vec<u8>,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    key: Box<str>,
    begin: usize,
    end: usize,
    in_context: bool,
}

/// Longer lines are rejected.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// The line before its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head<'t> {
    pub(super) ts: Ns,
    pub(super) cpu: Option<i32>,
    pub(super) name: &'t str,
}

impl Line {
    /// Parses `time [cpu] (context) name fields`.
    pub(super) fn read<'t>(&mut self, text: &'t str) -> Result<Head<'t>, String> {
        self.values.clear();
        self.fields.clear();
        let (time, rest) = word(text);
        let ts = time_of(time).ok_or_else(|| format!("`{time}` is not a time"))?;
        let (cpu_text, rest) = word(rest);
        let cpu = cpu_of(cpu_text)?;
        let mut rest = rest.trim_start();
        if let Some(context) = rest.strip_prefix('(') {
            rest = self.read_fields(context, true)?;
            rest = rest.strip_prefix(')').ok_or("unterminated context")?;
        }
        let (name, rest) = word(rest);
        if name.is_empty() {
            return Err("missing event name".to_owned());
        }
        self.read_rest(rest)?;
        Ok(Head { ts, cpu, name })
    }

    /// Parses a line of fields only.
    pub(super) fn read_rest(&mut self, rest: &str) -> Result<(), String> {
        let rest = self.read_fields(rest, false)?;
        if rest.is_empty() {
            Ok(())
        } else {
            Err(format!("`{rest}` is not a field"))
        }
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.fields.clear();
    }

    /// The first field: key and value.
    pub(super) fn first(&self) -> Option<(&str, &[u8])> {
        let field = self.fields.first()?;
        Some((&field.key, &self.values[field.begin..field.end]))
    }

    /// Value of a field of the event.
    pub(super) fn bytes(&self, key: &str) -> Option<&[u8]> {
        self.find(key, false)
    }

    /// Value of a field of the context.
    pub(super) fn context(&self, key: &str) -> Option<&[u8]> {
        self.find(key, true)
    }

    fn find(&self, key: &str, in_context: bool) -> Option<&[u8]> {
        let mut fields = self.fields.iter();
        let field = fields.find(|field| field.in_context == in_context && *field.key == *key)?;
        Some(&self.values[field.begin..field.end])
    }

    fn read_fields<'t>(&mut self, text: &'t str, in_context: bool) -> Result<&'t str, String> {
        let mut rest = text.trim_start();
        while !rest.is_empty() && !rest.starts_with(')') {
            let (key, value) = rest
                .split_once('=')
                .filter(|(key, _)| !key.is_empty() && !key.contains([' ', '\t', '"', '(', ')']))
                .ok_or_else(|| format!("`{rest}` is not a field"))?;
            let begin = self.values.len();
            rest = self.read_value(value)?.trim_start();
            self.fields.push(Field {
                key: key.into(),
                begin,
                end: self.values.len(),
                in_context,
            });
        }
        Ok(rest)
    }

    fn read_value<'t>(&mut self, text: &'t str) -> Result<&'t str, String> {
        let Some(quoted) = text.strip_prefix('"') else {
            let end = text
                .find([' ', '\t', '"', '\\', '(', ')'])
                .unwrap_or(text.len());
            self.values.extend_from_slice(&text.as_bytes()[..end]);
            return Ok(&text[end..]);
        };
        let bytes = quoted.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => return Ok(&quoted[at + 1..]),
                b'\\' => at += self.read_escape(&bytes[at + 1..])? + 1,
                byte => {
                    self.values.push(byte);
                    at += 1;
                }
            }
        }
        Err("unterminated quoted value".to_owned())
    }

    /// Appends the value of an escape sequence; returns its length after the backslash.
    fn read_escape(&mut self, rest: &[u8]) -> Result<usize, String> {
        let byte = match rest {
            [b'n', ..] => b'\n',
            [b'r', ..] => b'\r',
            [b't', ..] => b'\t',
            [b'\\', ..] => b'\\',
            [b'"', ..] => b'"',
            [b'x', high, low, ..] => {
                let digit = |byte: &u8| (*byte as char).to_digit(16);
                let (high, low) = (digit(high), digit(low));
                let (Some(high), Some(low)) = (high, low) else {
                    return Err("`\\x` without two hexadecimal digits".to_owned());
                };
                self.values.push((high * 16 + low) as u8);
                return Ok(3);
            }
            _ => return Err("unknown escape sequence".to_owned()),
        };
        self.values.push(byte);
        Ok(1)
    }
}

fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    text.split_at(end)
}

fn cpu_of(text: &str) -> Result<Option<i32>, String> {
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let cpu = inner.and_then(|number| number.parse().ok());
    match cpu.filter(|cpu| *cpu >= 0) {
        None if inner != Some("-") => Err(format!("`{text}` is not a CPU")),
        cpu => Ok(cpu),
    }
}

/// Seconds with up to nine decimals.
pub(super) fn time_of(text: &str) -> Option<Ns> {
    const NS_PER_S: i64 = 1_000_000_000;
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text),
    };
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(decimals) || decimals.len() > 9 {
        return None;
    }
    let scale = 10_i64.pow(9 - decimals.len() as u32);
    let decimals = decimals.parse::<i64>().ok()? * scale;
    let seconds = seconds.parse::<i64>().ok()?.checked_mul(NS_PER_S)?;
    Some(sign * seconds.checked_add(decimals)?)
}
