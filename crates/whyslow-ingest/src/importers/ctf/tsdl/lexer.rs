//! Words, numbers, strings and punctuation of TSDL.

use std::borrow::Cow;
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// Includes keywords, which are reserved in some contexts only.
    Word(&'t str),
    Integer(u64),
    Text(Quoted<'t>),
    Sign(&'static str),
    End,
    /// An invalid token; nothing follows it.
    Bad(Unreadable<'t>),
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Integer(value) => write!(f, "{value}"),
            Token::Text(text) => write!(f, "{:?}", text.read()),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::End => f.write_str("the end of the text"),
            Token::Bad(what) => what.fmt(f),
        }
    }
}

/// The text between two quotes, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quoted<'t>(&'t [u8]);

impl<'t> Quoted<'t> {
    /// Without escapes; invalid Unicode is replaced.
    pub(super) fn read(self) -> Cow<'t, str> {
        let mut rest = self.0;
        let Some(mut length) = memchr::memchr(b'\\', rest) else {
            return match std::str::from_utf8(rest) {
                Ok(text) => text.into(),
                Err(_) => String::from_utf8_lossy(rest),
            };
        };
        let mut bytes = Vec::with_capacity(rest.len());
        loop {
            bytes.extend_from_slice(&rest[..length]);
            rest = &rest[(length + 1).min(rest.len())..];
            rest = &rest[unescape(rest, &mut bytes)..];
            if rest.is_empty() {
                return String::from_utf8_lossy(&bytes).into_owned().into();
            }
            length = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable<'t> {
    CommentEnd,
    CommentBegin,
    TextEnd,
    Dots,
    Integer(&'t str),
    Byte(u8),
}

impl fmt::Display for Unreadable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::CommentEnd => f.write_str("an unterminated comment"),
            Unreadable::CommentBegin => f.write_str("a comment end without a start"),
            Unreadable::TextEnd => f.write_str("an unterminated string"),
            Unreadable::Dots => f.write_str("an incomplete `...`"),
            Unreadable::Integer(word) => write!(f, "`{word}` is not a 64-bit integer"),
            Unreadable::Byte(byte) => write!(f, "unexpected byte {byte:#04x}"),
        }
    }
}

/// The text with a `?` for each non-ASCII byte, if it is not Unicode: words can then be cut out of
/// it without checking each.
pub(super) fn text_of_words(text: &[u8]) -> Cow<'_, str> {
    let readable = |byte: &u8| if byte.is_ascii() { *byte as char } else { '?' };
    match std::str::from_utf8(text) {
        Ok(text) => text.into(),
        Err(_) => text.iter().map(readable).collect::<String>().into(),
    }
}

pub(super) struct Lexer<'t> {
    text: &'t [u8],
    words: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    /// `words` is the result of [`text_of_words`].
    pub(super) fn new(text: &'t [u8], words: &'t str) -> Lexer<'t> {
        Lexer { text, words, at: 0 }
    }

    /// Whether all tokens were returned.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    pub(super) fn text(&self) -> &'t [u8] {
        self.text
    }

    /// Continues after text that need not be read again.
    pub(super) fn skip_to(&mut self, offset: usize) {
        self.at = offset;
    }

    /// The next token and its offset.
    pub(super) fn next(&mut self) -> (usize, Token<'t>) {
        let first = loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let blanks = rest
                .iter()
                .take_while(|byte| matches!(byte, b' ' | 0x09..=0x0D));
            self.at += blanks.count();
            match self.text.get(self.at) {
                Some(b'/') => match self.skip_comment() {
                    Ok(()) => {}
                    Err(fault) => return fault,
                },
                Some(&first) => break first,
                None => return (self.text.len(), Token::End),
            }
        };
        let begin = self.at;
        let token = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Token::Word(self.word()),
            b'0'..=b'9' => return self.integer(),
            b'"' | b'\'' => return self.quoted(first),
            _ => match sign(&self.text[begin..]) {
                Some(sign) => {
                    self.at += sign.len();
                    Token::Sign(sign)
                }
                None if &self.text[begin..] == b".." => return self.cut(Unreadable::Dots),
                None => Token::Bad(Unreadable::Byte(first)),
            },
        };
        (begin, token)
    }

    /// Skips a comment at the current position.
    fn skip_comment(&mut self) -> Result<(), (usize, Token<'t>)> {
        let rest = &self.text[self.at..];
        match rest {
            [b'/', b'/', ..] => {
                self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                Ok(())
            }
            [b'/', b'*', ..] => match memchr::memmem::find(&rest[2..], b"*/") {
                Some(length) => {
                    self.at += length + 4;
                    Ok(())
                }
                None => Err(self.cut(Unreadable::CommentEnd)),
            },
            [b'/'] => Err(self.cut(Unreadable::CommentBegin)),
            _ => Err((self.at, Token::Bad(Unreadable::Byte(b'/')))),
        }
    }

    fn word(&mut self) -> &'t str {
        let begin = self.at;
        let rest = &self.text[begin..];
        self.at += rest
            .iter()
            .take_while(|&&byte| IN_WORD[byte as usize])
            .count();
        &self.words[begin..self.at]
    }

    fn integer(&mut self) -> (usize, Token<'t>) {
        let begin = self.at;
        let written = self.word();
        if let &[digit @ b'0'..=b'9'] = written.as_bytes() {
            return (begin, Token::Integer(u64::from(digit - b'0')));
        }
        let digits = written.trim_end_matches(['u', 'U', 'l', 'L']);
        let value = if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            u64::from_str_radix(hex, 16)
        } else if digits.len() > 1 && digits.starts_with('0') {
            u64::from_str_radix(digits, 8)
        } else {
            digits.parse()
        };
        match value {
            Ok(value) => (begin, Token::Integer(value)),
            // A text that ends after `0x` is truncated, not wrong.
            Err(_) if self.is_at_end() => self.cut(Unreadable::Integer(written)),
            Err(_) => (begin, Token::Bad(Unreadable::Integer(written))),
        }
    }

    fn quoted(&mut self, quote: u8) -> (usize, Token<'t>) {
        let begin = self.at + 1;
        let mut at = begin;
        loop {
            let rest = &self.text[at.min(self.text.len())..];
            let Some(length) = memchr::memchr2(quote, b'\\', rest) else {
                return self.cut(Unreadable::TextEnd);
            };
            at += length;
            if rest[length] == quote {
                self.at = at + 1;
                let text = Quoted(&self.text[begin..at]);
                return (begin - 1, Token::Text(text));
            }
            // Escapes of several bytes contain neither quotes nor backslashes after the first byte.
            at += 2;
        }
    }

    /// Invalid at the end of the text, where it may be truncated.
    fn cut(&self, what: Unreadable<'t>) -> (usize, Token<'t>) {
        (self.text.len(), Token::Bad(what))
    }
}

/// Bytes of words and numbers.
const IN_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

/// The punctuation at the start of the text.
fn sign(text: &[u8]) -> Option<&'static str> {
    Some(match text {
        [b'{', ..] => "{",
        [b'}', ..] => "}",
        [b';', ..] => ";",
        [b'=', ..] => "=",
        [b':', b'=', ..] => ":=",
        [b':', ..] => ":",
        [b'[', ..] => "[",
        [b']', ..] => "]",
        [b'(', ..] => "(",
        [b')', ..] => ")",
        [b'<', ..] => "<",
        [b'>', ..] => ">",
        [b',', ..] => ",",
        [b'.', b'.', b'.', ..] => "...",
        [b'.', b'.'] => return None,
        [b'.', ..] => ".",
        [b'*', ..] => "*",
        [b'+', ..] => "+",
        [b'-', b'>', ..] => "->",
        [b'-', ..] => "-",
        _ => return None,
    })
}

/// Appends the value of an escape sequence; returns its length after the backslash.
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
        let mut lexer = Lexer::new(text.as_bytes(), text);
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
        let text = r#""a\"b\\c\n\x41\101d" "" "\q" '"' "e\\""#;
        let mut lexer = Lexer::new(text.as_bytes(), text);
        for expected in ["a\"b\\c\nAAd", "", "q", "\"", "e\\"] {
            check_text(&mut lexer, expected);
        }
        assert_eq!(lexer.next().1, Token::End);
    }

    fn check_text(lexer: &mut Lexer<'_>, expected: &str) {
        let Token::Text(text) = lexer.next().1 else {
            panic!("no text where {expected:?} is");
        };
        assert_eq!(text.read(), expected);
    }

    #[test]
    fn a_text_that_is_not_unicode_is_kept_readable() {
        let text = b"\"caf\xE9\" \"caf\xE9\\n\" word";
        let words = text_of_words(text);
        let mut lexer = Lexer::new(text, &words);
        check_text(&mut lexer, "caf\u{FFFD}");
        check_text(&mut lexer, "caf\u{FFFD}\n");
        assert_eq!(lexer.next(), (text.len() - 4, Token::Word("word")));
    }

    #[test]
    fn what_is_cut_fails_at_the_end() {
        for text in ["\"abc", "/* abc", "\"abc\\", "0x"] {
            let mut lexer = Lexer::new(text.as_bytes(), text);
            assert_eq!(lexer.next().0, text.len(), "in {text}");
        }
    }

    #[test]
    fn an_integer_too_large_tells_its_place() {
        let text = "  18446744073709551616 ";
        let mut lexer = Lexer::new(text.as_bytes(), text);
        assert_eq!(lexer.next().0, 2);
    }
}
