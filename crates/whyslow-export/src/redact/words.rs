//! Words within names, one by one.
//!
//! A name is split into runs of ASCII letters and digits, runs of non-ASCII characters, and single
//! characters in between, which stay. Path patterns are found in the same way
//! (`/tmp/<uuid>/<n>.txt`), and a replacement must not change the pattern of a word:
//!
//! - public words stay (`log`, `txt`, `usr`), also with a number appended (`part00017`: the number
//!   is replaced if it is long);
//!   is replaced if it is long);
//! - numbers of one or two digits stay, longer ones become others with the same number of digits
//!   (except 386 and 686, which denote processors and stay);
//! - UUIDs become UUIDs: digits become digits, letters become letters;
//! - words with digits keep their length and the positions of digits; hexadecimal words stay
//!   hexadecimal, others do not become so; letters and digits of `name17` are replaced separately,
//!   so that `name18` gets the same letters;
//! - words of one to three letters keep their length;
//! - longer words become ten pronounceable letters;
//! - non-ASCII runs become six Greek letters.

use std::net::Ipv4Addr;

use super::Redactor;
use super::public;

/// Longer numbers are replaced.
const DIGITS_MAX: usize = 2;
/// Longer words of letters become [`Redactor::token`].
const LETTERS_MAX: usize = 3;
/// Hexadecimal words with digits are a pattern from this length on, mixed words with two digits
/// from the next one on.
const HEX_MIN: usize = 4;
const MIXED_MIN: usize = 8;

const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
const UUID_LENGTH: usize = 36;

/// Which words stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Lexicon {
    /// Words that occur on many systems.
    Common,
    /// Words in host names: the smallest set.
    Hosts,
}

impl Lexicon {
    fn has(self, word: &str) -> bool {
        match self {
            Self::Common => public::is_public(word),
            Self::Hosts => public::is_public_label(word),
        }
    }
}

impl Redactor {
    pub(super) fn words(&self, text: &str, lexicon: Lexicon) -> String {
        if self.keep.name(text) {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = if let Some(length) = uuid_length(rest) {
                out.push_str(&self.uuid(&rest[..length]));
                length
            } else if let Some((address, mark, length)) = dotted(text, text.len() - rest.len()) {
                let new = self.ipv4(address).to_string();
                out.push_str(&new.replace('.', mark));
                length
            } else if first.is_ascii_alphanumeric() {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
                let word = &rest[..end.unwrap_or(rest.len())];
                out.push_str(&self.known_word(word, lexicon));
                word.len()
            } else if first.is_ascii() {
                out.push(first);
                1
            } else {
                let run = &rest[..rest.find(|c: char| c.is_ascii()).unwrap_or(rest.len())];
                out.push_str(&self.greek(run));
                run.len()
            };
            rest = &rest[length..];
        }
        out
    }

    /// Group by group: patterns do not treat a group of letters as a number.
    fn uuid(&self, uuid: &str) -> String {
        let group = |group: &str| self.shaped("mixed", group, |_| true);
        uuid.split('-').map(group).collect::<Vec<_>>().join("-")
    }

    /// Words are often repeated.
    fn known_word(&self, word: &str, lexicon: Lexicon) -> String {
        if let Some(known) = self.remembered(word, lexicon) {
            return known;
        }
        let new = self.word(word, lexicon);
        self.remember(word, lexicon, &new);
        new
    }

    fn word(&self, word: &str, lexicon: Lexicon) -> String {
        if lexicon.has(word) {
            return word.to_owned();
        }
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        if digits == word.len() {
            return self.number(word);
        }
        if digits == 0 {
            return self.letters(word);
        }
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        if word.len() - letters.len() == digits {
            let new = if lexicon.has(letters) {
                letters.to_owned()
            } else {
                self.few_letters(letters, !is_hex(letters))
            };
            return new + &self.number(&word[letters.len()..]);
        }
        let is_pattern =
            is_hex(word) && word.len() >= HEX_MIN || word.len() >= MIXED_MIN && digits >= 2;
        if is_pattern {
            let is_wanted = |new: &str| is_hex(word) || !is_hex(new);
            return self.shaped("mixed", word, is_wanted);
        }
        self.scattered(word, lexicon)
    }

    pub(super) fn number(&self, digits: &str) -> String {
        // `i386` and `i686` are processors, which patterns keep: no other number may become one.
        let is_processor = |digits: &str| matches!(digits, "386" | "686");
        if digits.len() <= DIGITS_MAX || is_processor(digits) {
            return digits.to_owned();
        }
        self.shaped("number", digits, |new| !is_processor(new))
    }

    fn letters(&self, word: &str) -> String {
        if word.len() <= LETTERS_MAX && !public::is_public(word) {
            return self.few_letters(word, false);
        }
        // These parts of names identify logs; the rest of the name is hidden.
        let token = self.token(word);
        if word.starts_with("trace") {
            return format!("trace{token}");
        }
        match ["log", "out"].iter().find(|part| word.contains(**part)) {
            Some(part) => token + part,
            None => token,
        }
    }

    /// Replaces letters by the same number of letters. Letters of hexadecimal numbers stay
    /// hexadecimal; where it matters, others do not become hexadecimal.
    fn few_letters(&self, letters: &str, is_never_hex: bool) -> String {
        // Not a public word that had to be replaced, since public words appear elsewhere unchanged.
        if public::is_public(letters) {
            return self.token(letters);
        }
        let is_wanted = |new: &str| !(public::is_public(new) || is_never_hex && is_hex(new));
        let purpose = match (is_never_hex, is_hex(letters)) {
            (true, _) => "letters, not hexadecimal",
            (false, true) => "letters, hexadecimal",
            (false, false) => "letters",
        };
        if is_never_hex {
            self.permuted(purpose, letters, &radixes(letters, false), is_wanted)
        } else {
            // The hexadecimal words are permuted among themselves, and so are the others.
            let is_like = |new: &str| is_wanted(new) && is_hex(new) == is_hex(letters);
            self.permuted(
                purpose,
                letters,
                &radixes(letters, is_hex(letters)),
                is_like,
            )
        }
    }

    /// A mix of letters and digits: each kind is replaced separately.
    fn scattered(&self, word: &str, lexicon: Lexicon) -> String {
        let is_digit = |byte: &u8| byte.is_ascii_digit();
        let letters: String = word.chars().filter(char::is_ascii_alphabetic).collect();
        let new = match (public::is_public(&letters), lexicon) {
            (true, Lexicon::Common) => letters,
            (true, Lexicon::Hosts) => return self.token(word),
            (false, _) => self.few_letters(&letters, !is_hex(&letters)),
        };
        let mut new = new.chars();
        let mut out = String::with_capacity(word.len());
        for run in word.as_bytes().chunk_by(|a, b| is_digit(a) == is_digit(b)) {
            let run = std::str::from_utf8(run).unwrap_or_default();
            if run.starts_with(|c: char| c.is_ascii_digit()) {
                out.push_str(&self.number(run));
            } else {
                out.extend(new.by_ref().take(run.len()));
            }
        }
        out
    }

    /// Digits for digits, letters for letters, hexadecimal for hexadecimal.
    fn shaped(&self, purpose: &str, word: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        self.permuted(purpose, word, &radixes(word, is_hex(word)), is_wanted)
    }

    fn permuted(
        &self,
        purpose: &str,
        word: &str,
        radixes: &[u32],
        is_wanted: impl Fn(&str) -> bool,
    ) -> String {
        let mut digits: Vec<u32> = word.bytes().map(digit).collect();
        let written = |digits: &[u32]| -> String {
            let pairs = digits.iter().zip(word.bytes());
            pairs.map(|(digit, like)| letter(*digit, like)).collect()
        };
        self.cipher().digits(purpose, radixes, &mut digits, |new| {
            is_wanted(&written(new))
        });
        written(&digits)
    }

    /// Ten letters that can stand for anything; equal texts get the same letters.
    pub(super) fn token(&self, text: &str) -> String {
        // Without `l`, since `log` identifies logs, and only with letters that form pronounceable
        // words.
        const CONSONANTS: &[u8; 18] = b"bcdfghjkmnprstvwyz";
        const VOWELS: &[u8; 5] = b"aeiou";
        let mut bytes = [0; 20];
        self.cipher()
            .bytes("token", text.as_bytes())
            .fill(&mut bytes);
        let pick = |letters: &[u8], bytes: &[u8]| {
            let number = u16::from_le_bytes([bytes[0], bytes[1]]);
            char::from(letters[usize::from(number) % letters.len()])
        };
        let syllables = bytes.chunks_exact(4);
        syllables
            .flat_map(|bytes| [pick(CONSONANTS, &bytes[..2]), pick(VOWELS, &bytes[2..])])
            .collect()
    }

    fn greek(&self, text: &str) -> String {
        const LETTERS: [char; 24] = [
            'α', 'β', 'γ', 'δ', 'ε', 'ζ', 'η', 'θ', 'ι', 'κ', 'λ', 'μ', 'ν', 'ξ', 'ο', 'π', 'ρ',
            'σ', 'τ', 'υ', 'φ', 'χ', 'ψ', 'ω',
        ];
        let mut bytes = [0; 6];
        self.cipher()
            .bytes("greek", text.as_bytes())
            .fill(&mut bytes);
        let letter = |byte: u8| LETTERS[usize::from(byte) % LETTERS.len()];
        bytes.into_iter().map(letter).collect()
    }
}

fn is_hex(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Number of possible characters in each position.
fn radixes(word: &str, is_hex: bool) -> Vec<u32> {
    let radix = |byte: u8| match byte {
        b'0'..=b'9' => 10,
        _ if is_hex => 6,
        _ => 26,
    };
    word.bytes().map(radix).collect()
}

fn digit(byte: u8) -> u32 {
    u32::from(match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'z' => byte - b'a',
        b'A'..=b'Z' => byte - b'A',
        _ => 0,
    })
}

fn letter(digit: u32, like: u8) -> char {
    let first = match like {
        b'0'..=b'9' => b'0',
        b'a'..=b'z' => b'a',
        b'A'..=b'Z' => b'A',
        other => other,
    };
    char::from(first + digit as u8)
}

/// Four numbers that may be an address, as in `ip-10-0-1-23`: the address, the separator, the
/// length.
fn dotted(text: &str, at: usize) -> Option<(Ipv4Addr, &str, usize)> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let rest = &text[at..];
    let before = text.as_bytes()[..at].last();
    if !rest.starts_with(|c: char| c.is_ascii_digit()) || before.is_some_and(is_word) {
        return None;
    }
    let first = rest.bytes().take_while(u8::is_ascii_digit).count();
    let mark = rest
        .get(first..first + 1)
        .filter(|mark| matches!(*mark, "." | "-" | "_"))?;
    let mut length = 0;
    let mut octets = [0; 4];
    for (place, octet) in octets.iter_mut().enumerate() {
        if place > 0 {
            length += rest[length..].starts_with(mark).then_some(1)?;
        }
        let digits = rest[length..]
            .bytes()
            .take_while(u8::is_ascii_digit)
            .count();
        *octet = rest[length..length + digits].parse().ok()?;
        length += digits;
    }
    let ends = |number: &str| number.starts_with(|c: char| c.is_ascii_alphanumeric());
    let after = &rest[length..];
    let goes_on = ends(after) || after.strip_prefix(mark).is_some_and(ends);
    (!goes_on).then(|| (Ipv4Addr::from(octets), mark, length))
}

fn uuid_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes().get(..UUID_LENGTH)?;
    let mut groups = bytes.split(|byte| *byte == b'-');
    let is_like = UUID_GROUPS.iter().all(|length| {
        groups
            .next()
            .is_some_and(|group| group.len() == *length && group.iter().all(u8::is_ascii_hexdigit))
    });
    let ends = text.as_bytes().get(UUID_LENGTH);
    let ends = ends.is_none_or(|byte| !byte.is_ascii_alphanumeric());
    (is_like && groups.next().is_none() && ends).then_some(UUID_LENGTH)
}
