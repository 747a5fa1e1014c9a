//! Splits the arguments of a call as printed by strace.
//!
//! Arguments are separated by commas, except inside strings, structures, lists and descriptor
//! annotations (`3</tmp/a,b>`). A truncated string ends with `"...`; comments are enclosed in `/*`
//! and `*/`.

/// Arguments of real calls are not nested more deeply.
const DEPTH_MAX: usize = 64;

/// Iterates over the trimmed arguments; ends at the closing parenthesis of the call, or at the end
/// of the text.
pub(super) struct Args<'t> {
    text: &'t str,
    at: usize,
    unclosed: Unclosed,
    /// The text after the closing parenthesis, once reached.
    after: Option<&'t str>,
    is_over: bool,
}

impl<'t> Args<'t> {
    /// From the text after the opening parenthesis.
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            unclosed: Unclosed::default(),
            after: None,
            is_over: false,
        }
    }

    /// The text after the call, once all arguments were taken.
    pub(super) fn after(&self) -> Option<&'t str> {
        self.after
    }
}

impl<'t> Iterator for Args<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        if self.is_over {
            return None;
        }
        let begin = self.at;
        let (end, stop) = extent(self.text, begin, &mut self.unclosed);
        let argument = self.text[begin..end].trim();
        match stop {
            Stop::Comma => self.at = end + 1,
            Stop::Close => {
                self.is_over = true;
                self.after = Some(&self.text[end + 1..]);
            }
            Stop::End => self.is_over = true,
        }
        // `getpid()` has no arguments.
        (stop == Stop::Comma || !argument.is_empty()).then_some(argument)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Comma,
    Close,
    End,
}

/// Unclosed brackets and comments, so that the text is not searched to its end for each of them.
#[derive(Debug, Default)]
struct Unclosed {
    /// After the first unclosed annotation: the end of each one that is closed.
    angles: Option<Vec<(usize, usize)>>,
    /// No further comment is closed.
    comments: bool,
}

impl Unclosed {
    fn annotation_end(&mut self, bytes: &[u8], begin: usize) -> usize {
        if let Some(pairs) = &self.angles {
            let found = pairs.binary_search_by_key(&begin, |(open, _)| *open);
            return found.map_or(begin, |place| pairs[place].1);
        }
        let end = annotation_end(bytes, begin);
        if end == begin {
            self.angles = Some(pairs(bytes, begin));
        }
        end
    }

    fn comment_end(&mut self, bytes: &[u8], begin: usize) -> usize {
        if self.comments {
            return begin;
        }
        let found = bytes[begin..].windows(2).position(|two| two == b"*/");
        self.comments = found.is_none();
        found.map_or(begin, |found| begin + found + 1)
    }
}

/// Pairs of matching angle brackets, in order of the first.
fn pairs(bytes: &[u8], begin: usize) -> Vec<(usize, usize)> {
    let (mut open, mut pairs) = (Vec::new(), Vec::new());
    for at in begin..bytes.len() {
        match bytes[at] {
            b'<' => open.push(at),
            b'>' if bytes[at - 1] != b'-' => pairs.extend(open.pop().map(|open| (open, at))),
            _ => {}
        }
    }
    pairs.sort_unstable();
    pairs
}

/// End of the argument that starts at `begin`, and what ends it.
fn extent(text: &str, begin: usize, unclosed: &mut Unclosed) -> (usize, Stop) {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (begin, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'<' if is_annotation(bytes, at) => at = unclosed.annotation_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => at = unclosed.comment_end(bytes, at),
            b'(' | b'[' | b'{' if depth < DEPTH_MAX => depth += 1,
            b')' if depth == 0 => return (at, Stop::Close),
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return (at, Stop::Comma),
            _ => {}
        }
        at += 1;
    }
    (text.len(), Stop::End)
}

/// The quote that ends the string, or the last byte.
fn string_end(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len() - 1
}

/// After a number or a name, as in `AT_FDCWD</tmp>`; otherwise it is an operator.
fn is_annotation(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| bytes[before]);
    before.is_some_and(|byte| byte.is_ascii_alphanumeric()) && bytes.get(at + 1) != Some(&b'<')
}

/// The angle bracket that ends the annotation; that of an arrow (`->`) does not. In names they are
/// escaped.
fn annotation_end(bytes: &[u8], begin: usize) -> usize {
    let mut depth = 0_usize;
    for at in begin..bytes.len() {
        match bytes[at] {
            b'<' => depth += 1,
            b'>' if bytes[at - 1] != b'-' => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    // In a truncated line, the rest may be an argument.
    begin
}

/// The bytes of a string, and whether strace truncated it.
pub(super) fn string(text: &str) -> Option<(Vec<u8>, bool)> {
    let inner = text.strip_prefix('"')?;
    let bytes = inner.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some((out, inner[at + 1..].starts_with("..."))),
            b'\\' => at += unescaped(&bytes[at + 1..], &mut out)?,
            byte => out.push(byte),
        }
        at += 1;
    }
}

/// Appends the byte of an escape sequence; returns its length after the backslash.
pub(super) fn unescaped(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let first = *rest.first()?;
    let plain = match first {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'f' => 0x0c,
        b'v' => 0x0b,
        b'x' => {
            let digits = std::str::from_utf8(rest.get(1..3)?).ok()?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            return Some(3);
        }
        b'0'..=b'7' => {
            let octal = rest.iter().take(3);
            let digits = octal.take_while(|byte| matches!(byte, b'0'..=b'7'));
            let (count, value) = digits.fold((0, 0_u32), |(count, value), digit| {
                (count + 1, value * 8 + u32::from(digit - b'0'))
            });
            out.push(value as u8);
            return Some(count);
        }
        other => other,
    };
    out.push(plain);
    Some(1)
}

/// A number with its annotation: `3</etc/passwd>`, `AT_FDCWD</tmp>`.
pub(super) fn annotated(text: &str) -> (&str, Option<&str>) {
    let Some(begin) = text
        .find('<')
        .filter(|at| is_annotation(text.as_bytes(), *at))
    else {
        return (text, None);
    };
    let end = annotation_end(text.as_bytes(), begin);
    let inner = (end > begin).then(|| &text[begin + 1..end]);
    (&text[..begin], inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_told_apart() {
        let check = |text: &str, want: &[&str], after: Option<&str>| {
            let mut args = Args::new(text);
            let found: Vec<&str> = args.by_ref().collect();
            assert_eq!(found, want, "{text}");
            assert_eq!(args.after(), after, "{text}");
        };
        check(") = 5", &[], Some(" = 5"));
        check(
            "3, \"a, b)\", 10) = 5",
            &["3", "\"a, b)\"", "10"],
            Some(" = 5"),
        );
        check(
            "3</tmp/a,b)>, [{fd=3}, {fd=4}], 0) = 0",
            &["3</tmp/a,b)>", "[{fd=3}, {fd=4}]", "0"],
            Some(" = 0"),
        );
        check(
            "5<TCP:[127.0.0.1:60437->127.0.0.1:44450]>, NULL) = 0",
            &["5<TCP:[127.0.0.1:60437->127.0.0.1:44450]>", "NULL"],
            Some(" = 0"),
        );
        check(
            "\"/bin/x\", [\"x\"], 0x7f /* 35 vars */) = 0",
            &["\"/bin/x\"", "[\"x\"]", "0x7f /* 35 vars */"],
            Some(" = 0"),
        );
        check(
            "{f(1, 2)}, \"\\\")\"...) = 0",
            &["{f(1, 2)}", "\"\\\")\"..."],
            Some(" = 0"),
        );
        check("3, \"abc", &["3", "\"abc"], None);
        check("3, ", &["3"], None);
        check("1<<2, 4) = 0", &["1<<2", "4"], Some(" = 0"));
        check("3<cut, 4) = 0", &["3<cut", "4"], Some(" = 0"));
        check("\"", &["\""], None);
        check("/*", &["/*"], None);
        check("1<a<b>, 2 /* 3) = 0", &["1<a<b>", "2 /* 3"], Some(" = 0"));
    }

    #[test]
    fn what_nothing_closes_is_not_searched_for_again_and_again() {
        for sign in ["1<", "/*", "1<a>1<", "\"\\"] {
            // With a search for each of them this would take minutes.
            let text = sign.repeat(1 << 18);
            assert_eq!(Args::new(&text).count(), 1, "{sign}");
        }
    }

    #[test]
    fn strings_are_what_they_stand_for() {
        let check = |text: &str, want: &[u8], is_cut: bool| {
            assert_eq!(string(text), Some((want.to_vec(), is_cut)), "{text}");
        };
        check(r#""/etc/passwd""#, b"/etc/passwd", false);
        check(r#""a\n\t\"\\b"..."#, b"a\n\t\"\\b", true);
        check(r#""\303\2444\0x\x41""#, b"\xc3\xa44\0xA", false);
        for wrong in ["", "\"", "x", r#""\x4""#, r#""\"#] {
            assert_eq!(string(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_known_of_a_number_stands_behind_it() {
        let check = |text: &str, want| assert_eq!(annotated(text), want, "{text}");
        check("3", ("3", None));
        check("3</etc/passwd>", ("3", Some("/etc/passwd")));
        check("3</tmp/x>(deleted)", ("3", Some("/tmp/x")));
        check("AT_FDCWD</tmp>", ("AT_FDCWD", Some("/tmp")));
        check("1<<2", ("1<<2", None));
        check("3<cut", ("3", None));
    }
}
