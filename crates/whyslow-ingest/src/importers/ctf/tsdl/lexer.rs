//! Words, numbers, texts and signs of TSDL.

use std::fmt;

use super::super::metadata::Fault;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// Keywords are words too: which ones are reserved depends on the place.
    Word(&'t str),
    Integer(u64),
    Text(String),
    Sign(&'static str),
    End,
    /// Something unreadable, by its description; nothing comes after it.
    Bad(String),
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Integer(value) => write!(f, "{value}"),
            Token::Text(text) => write!(f, "{text:?}"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::End => f.write_str("the end of the text"),
            Token::Bad(what) => f.write_str(what),
        }
    }
}

pub(super) struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t [u8]) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    /// Whether nothing but what was already handed out is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    pub(super) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// The next token and where it begins.
    pub(super) fn next(&mut self) -> (usize, Token<'t>) {
        self.read()
            .unwrap_or_else(|fault| (fault.offset, Token::Bad(fault.what)))
    }

    fn read(&mut self) -> Result<(usize, Token<'t>), Fault> {
        self.skip_blanks()?;
        let begin = self.at;
        let Some(&first) = self.text.get(begin) else {
            return Ok((begin, Token::End));
        };
        let token = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Token::Word(self.word()),
            b'0'..=b'9' => Token::Integer(self.integer()?),
            quote @ (b'"' | b'\'') => Token::Text(self.quoted(quote)?),
            b'+' => {
                self.at += 1;
                Token::Sign("+")
            }
            _ => Token::Sign(self.sign()?),
        };
        Ok((begin, token))
    }

    fn skip_blanks(&mut self) -> Result<(), Fault> {
        loop {
            let rest = &self.text[self.at..];
            match rest {
                [b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C, ..] => self.at += 1,
                [b'/', b'/', ..] => {
                    self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                }
                [b'/', b'*', ..] => match memchr::memmem::find(&rest[2..], b"*/") {
                    Some(length) => self.at += length + 4,
                    None => return Err(self.cut("a comment without end")),
                },
                [b'/'] => return Err(self.cut("a comment without begin")),
                _ => return Ok(()),
            }
        }
    }

    fn word(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let length = rest
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
            .unwrap_or(rest.len());
        self.at += length;
        std::str::from_utf8(&rest[..length]).expect("a word is ASCII")
    }

    fn integer(&mut self) -> Result<u64, Fault> {
        let begin = self.at;
        let written = self.word();
        let digits = written.trim_end_matches(['u', 'U', 'l', 'L']);
        let value = if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            u64::from_str_radix(hex, 16)
        } else if digits.len() > 1 && digits.starts_with('0') {
            u64::from_str_radix(digits, 8)
        } else {
            digits.parse()
        };
        value.map_err(|_| {
            let what = format!("`{written}` is not an integer of 64 bits");
            // A text cut behind `0x` is cut, not wrong.
            let at = if self.at == self.text.len() {
                self.at
            } else {
                begin
            };
            Fault::new(at, what)
        })
    }

    fn quoted(&mut self, quote: u8) -> Result<String, Fault> {
        let begin = self.at + 1;
        let mut bytes = Vec::new();
        let mut at = begin;
        loop {
            let rest = &self.text[at.min(self.text.len())..];
            let Some(length) = memchr::memchr2(quote, b'\\', rest) else {
                return Err(self.cut("a text without end"));
            };
            bytes.extend_from_slice(&rest[..length]);
            at += length + 1;
            if rest[length] == quote {
                self.at = at;
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            at += unescape(&self.text[at..], &mut bytes);
        }
    }

    fn sign(&mut self) -> Result<&'static str, Fault> {
        let rest = &self.text[self.at..];
        if rest == b".." {
            return Err(self.cut("`...` without its end"));
        }
        let sign = match rest {
            [b'.', b'.', b'.', ..] => "...",
            [b':', b'=', ..] => ":=",
            [b'-', b'>', ..] => "->",
            [b'{', ..] => "{",
            [b'}', ..] => "}",
            [b'[', ..] => "[",
            [b']', ..] => "]",
            [b'(', ..] => "(",
            [b')', ..] => ")",
            [b'<', ..] => "<",
            [b'>', ..] => ">",
            [b';', ..] => ";",
            [b':', ..] => ":",
            [b'=', ..] => "=",
            [b',', ..] => ",",
            [b'.', ..] => ".",
            [b'*', ..] => "*",
            [b'-', ..] => "-",
            _ => {
                let what = format!("unexpected byte {:#04x}", rest[0]);
                return Err(Fault::new(self.at, what));
            }
        };
        self.at += sign.len();
        Ok(sign)
    }

    /// A fault at the end of the text: more may have followed.
    fn cut(&self, what: &str) -> Fault {
        Fault::new(self.text.len(), what)
    }
}

/// Appends what the escape after a backslash means; how many bytes it took.
fn unescape(rest: &[u8], bytes: &mut Vec<u8>) -> usize {
    let Some(&kind) = rest.first() else {
        return 0;
    };
    let digits = |from: usize, most: usize, radix: u32| {
        rest[from..]
            .iter()
            .take(most)
            .take_while(|byte| (**byte as char).is_digit(radix))
            .count()
    };
    let (from, length, radix) = match kind {
        b'x' => (1, digits(1, 2, 16), 16),
        b'0'..=b'7' => (0, digits(0, 3, 8), 8),
        _ => (0, 0, 10),
    };
    if length > 0 {
        let written = std::str::from_utf8(&rest[from..from + length]).expect("digits are ASCII");
        let value = u32::from_str_radix(written, radix).expect("three digits fit");
        bytes.push(value as u8);
        return from + length;
    }
    bytes.push(match kind {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0C,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0B,
        other => other,
    });
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[Token<'_>]) {
        let mut lexer = Lexer::new(text.as_bytes());
        for token in expected {
            assert_eq!(&lexer.next().1, token, "in {text}");
        }
        assert_eq!(lexer.next().1, Token::End);
    }

    #[test]
    fn numbers_are_decimal_octal_or_hexadecimal() {
        use Token::{Integer, Sign};
        check(
            "0 017 0xfF 12ull",
            &[Integer(0), Integer(15), Integer(255), Integer(12)],
        );
        check("1...5", &[Integer(1), Sign("..."), Integer(5)]);
        check("-2", &[Sign("-"), Integer(2)]);
        let max = u64::MAX.to_string();
        check(&max, &[Integer(u64::MAX)]);
    }

    #[test]
    fn comments_and_line_ends_are_blanks() {
        check(
            "/* one\r\n */a// two\r\nb/**/",
            &[Token::Word("a"), Token::Word("b")],
        );
    }

    #[test]
    fn texts_know_the_escapes_of_c() {
        check(
            r#""a\"b\\c\n\x41\101" "" "\q""#,
            &[
                Token::Text("a\"b\\c\nAA".to_owned()),
                Token::Text(String::new()),
                Token::Text("q".to_owned()),
            ],
        );
    }

    #[test]
    fn a_text_that_is_not_unicode_is_kept_readable() {
        let mut lexer = Lexer::new(b"\"caf\xE9\"");
        assert_eq!(lexer.next().1, Token::Text("caf\u{FFFD}".to_owned()));
    }

    #[test]
    fn what_is_cut_fails_at_the_end() {
        for text in ["\"abc", "/* abc", "\"abc\\", "0x"] {
            let mut lexer = Lexer::new(text.as_bytes());
            assert_eq!(lexer.next().0, text.len(), "in {text}");
        }
    }

    #[test]
    fn an_integer_too_large_tells_its_place() {
        let mut lexer = Lexer::new(b"  18446744073709551616 ");
        assert_eq!(lexer.next().0, 2);
    }
}
