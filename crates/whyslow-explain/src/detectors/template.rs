//! Path patterns: paths that differ only in numbers and ids have the same pattern.

/// The path with the variable parts of each component replaced by `*`: runs of digits, and ids of
/// hexadecimal digits.
pub fn of_path(path: &str) -> String {
    let parts: Vec<String> = path.split('/').map(component).collect();
    parts.join("/")
}

fn component(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let mut rest = part;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if end == 0 {
            let c = rest.chars().next().unwrap_or('-');
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        // Some groups of a UUID consist of letters only.
        let length = uuid(rest).unwrap_or(end);
        let (word, after) = rest.split_at(length);
        rest = after;
        let word = if length > end {
            "*".to_owned()
        } else {
            of_word(word)
        };
        if !(word == "*" && out.ends_with('*')) {
            out.push_str(&word);
        }
    }
    // Separators within an id belong to it.
    while out.contains("*-*") {
        out = out.replace("*-*", "*");
    }
    out
}

/// Length of the UUID that the text starts with (RFC 9562, section 4).
fn uuid(text: &str) -> Option<usize> {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let mut at = 0;
    for (number, length) in GROUPS.into_iter().enumerate() {
        if number > 0 {
            text[at..].strip_prefix('-')?;
            at += 1;
        }
        let group = text.as_bytes().get(at..at + length)?;
        group.iter().all(u8::is_ascii_hexdigit).then_some(())?;
        at += length;
    }
    let next = text[at..].bytes().next();
    (!next.is_some_and(|byte| byte.is_ascii_alphanumeric())).then_some(at)
}

fn of_word(word: &str) -> String {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    // An id: hexadecimal with digits in it, or a long mixture, as in mkstemp names and session ids.
    let is_mixed = word.len() >= 8 && digits >= 2 && word.len() > digits;
    if (is_hex && digits > 0 && word.len() >= 4) || is_mixed {
        return "*".into();
    }
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        match c {
            '0'..='9' if out.ends_with('*') => {}
            '0'..='9' => out.push('*'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::of_path;

    #[test]
    fn what_varies_is_a_star_and_what_does_not_stays() {
        let check = |path: &str, expected: &str| assert_eq!(of_path(path), expected, "{path}");
        check(
            "/tmp/d7a1f0c2-9d52-4a6e-8a7b-0f1c2d3e4f50/17.txt",
            "/tmp/*/*.txt",
        );
        check(
            "/tmp/dbcafeed-dead-4a6e-abcd-0f1c2d3e4f50-7/17.txt",
            "/tmp/*/*.txt",
        );
        check("/tmp/dead-beef/é", "/tmp/dead-beef/é");
        check(
            "/var/lib/php/sessions/sess_u77dj8kh3nvicqm50rjug6kbct",
            "/var/lib/php/sessions/sess_*",
        );
        check("/data/00000000000000170210.log", "/data/*.log");
        check("/var/log/app.log.3", "/var/log/app.log.*");
        check("/etc/passwd", "/etc/passwd");
        check(
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/usr/lib/x*_*-linux-gnu/libc.so.*",
        );
        check("/home/deadbeef/cafe", "/home/deadbeef/cafe");
    }
}
