//! Path patterns: parts that vary between files become placeholders.
//!
//! Paths that do not begin with `/` are unchanged (sockets, pipes). Each component is split into
//! pieces: runs of letters and digits (ASCII), and single separators between them. First a UUID
//! (8-4-4-4-12 hexadecimal digits, as a whole between separators) becomes `<uuid>`. Then each piece
//! is matched in this order:
//! - only digits: `<n>`;
//! - 8 or more hexadecimal digits (of one case), with at least one digit: `<hex>`;
//! - 16 or more letters and digits, with at least two digits and two letters: `<id>` (session
//!   names, temporary names);
//! - letters followed by digits to the end, as in `file17`: the letters and `<n>`, unless there
//!   is one digit only, as in `libz1` or `ext4`;
//! - otherwise unchanged.
//!
//! Unchanged are: components of shared libraries (`.so`, `.so.6`), names of processor
//! architectures, and a version at the end (`python3.11`, `ld.8`: numbers below 100, each after a
//! dot).

use std::borrow::Cow;

/// `/tmp/<uuid>/<n>.txt` for `/tmp/0b2c…/17.txt`.
pub fn pattern_of(path: &str) -> Cow<'_, str> {
    if !path.starts_with('/') || !path.bytes().any(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(path);
    }
    let mut pattern = String::with_capacity(path.len());
    for (place, component) in path.split('/').enumerate() {
        if place > 0 {
            pattern.push('/');
        }
        push_component(&mut pattern, component);
    }
    Cow::Owned(pattern)
}

/// Components that all paths of a pattern have in common: these do not vary, whatever their names.
#[derive(Debug, Clone, Default)]
pub struct Common {
    /// By place; `None` if they differ. Empty without paths.
    components: Vec<Option<Box<str>>>,
    paths: u64,
}

impl Common {
    /// Adds a path of the pattern.
    pub fn add(&mut self, path: &str) {
        self.paths += 1;
        if self.paths == 1 {
            let components = path.split('/');
            self.components = components.map(|one| Some(one.into())).collect();
            return;
        }
        let mut others = path.split('/');
        for known in &mut self.components {
            if known.as_deref() != others.next() {
                *known = None;
            }
        }
    }

    /// The pattern with the common components as they are. A single path shows nothing about what
    /// varies.
    pub fn shown<'p>(&self, pattern: &'p str) -> Cow<'p, str> {
        let count = pattern.split('/').count();
        if self.paths < 2 || count != self.components.len() {
            return Cow::Borrowed(pattern);
        }
        let pairs = pattern.split('/').zip(&self.components);
        let components: Vec<&str> = pairs
            .map(|(varying, common)| common.as_deref().unwrap_or(varying))
            .collect();
        Cow::Owned(components.join("/"))
    }
}

/// The pool that a thread belongs to, by its name: numbers and UUIDs become `N`, so both
/// `request-handler-3` and `request-handler-12` become `request-handler-N`.
pub fn pool_of(name: &str) -> Cow<'_, str> {
    if !name.bytes().any(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(name);
    }
    let mut pool = String::with_capacity(name.len());
    let mut rest = name;
    let mut is_in_word = false;
    while let Some(next) = rest.chars().next() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let length = match uuid_length(rest).filter(|_| !is_in_word) {
            Some(length) => length,
            None => digits,
        };
        if length > 0 {
            pool.push('N');
            rest = &rest[length..];
            is_in_word = true;
        } else {
            pool.push(next);
            rest = &rest[next.len_utf8()..];
            is_in_word = next.is_alphanumeric();
        }
    }
    Cow::Owned(pool)
}

const ARCHITECTURES: [&str; 6] = ["x86_64", "i386", "i686", "aarch64", "amd64", "arm64"];

fn push_component(pattern: &mut String, component: &str) {
    let is_library = component.ends_with(".so") || component.contains(".so.");
    if is_library || names_an_architecture(component) {
        pattern.push_str(component);
        return;
    }
    let versions = version_suffix(component);
    let (mut rest, kept) = component.split_at(component.len() - versions);
    while !rest.is_empty() {
        if let Some(length) = uuid_length(rest) {
            pattern.push_str("<uuid>");
            rest = &rest[length..];
            continue;
        }
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        if length == 0 {
            let next = rest.chars().next().map_or(1, char::len_utf8);
            pattern.push_str(&rest[..next]);
            rest = &rest[next..];
        } else {
            push_piece(pattern, &rest[..length]);
            rest = &rest[length..];
        }
    }
    pattern.push_str(kept);
}

/// `x86_64-linux-gnu`, but not the number in `i6861`.
fn names_an_architecture(component: &str) -> bool {
    ARCHITECTURES.iter().any(|name| {
        let rest = component.strip_prefix(name);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    })
}

fn push_piece(pattern: &mut String, piece: &str) {
    let count = |test: fn(&u8) -> bool| piece.bytes().filter(test).count();
    let digits = count(u8::is_ascii_digit);
    let lower = piece
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let upper = piece
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'));
    let letters = piece.trim_end_matches(|c: char| c.is_ascii_digit());
    if digits == piece.len() {
        pattern.push_str("<n>");
    } else if (lower || upper) && piece.len() >= 8 && digits > 0 {
        pattern.push_str("<hex>");
    } else if piece.len() >= 16 && digits >= 2 && piece.len() - digits >= 2 {
        pattern.push_str("<id>");
    } else if piece.len() - letters.len() == digits && digits >= 2 {
        pattern.push_str(letters);
        pattern.push_str("<n>");
    } else {
        pattern.push_str(piece);
    }
}

/// Length of the version at the end of a component: `.11`, `.1.2`.
fn version_suffix(component: &str) -> usize {
    let Some(dot) = component.get(1..).and_then(|rest| rest.find('.')) else {
        return 0;
    };
    let suffix = &component[dot + 1..];
    let is_version = |piece: &str| {
        matches!(piece.len(), 1 | 2) && piece.bytes().all(|byte| byte.is_ascii_digit())
    };
    if suffix[1..].split('.').all(is_version) {
        suffix.len()
    } else {
        0
    }
}

fn uuid_length(text: &str) -> Option<usize> {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    const LENGTH: usize = 36;
    let bytes = text.as_bytes();
    let mut place = 0;
    for (index, group) in GROUPS.iter().enumerate() {
        if index > 0 {
            if bytes.get(place) != Some(&b'-') {
                return None;
            }
            place += 1;
        }
        let digits = bytes.get(place..place + group)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        place += group;
    }
    let ends = bytes
        .get(LENGTH)
        .is_none_or(|byte| !byte.is_ascii_alphanumeric());
    ends.then_some(LENGTH)
}

#[cfg(test)]
mod tests {
    use super::pattern_of;

    #[test]
    fn threads_of_a_pool_differ_in_numbers() {
        for (name, pool) in [
            (
                "data-plane-kafka-request-handler-3",
                "data-plane-kafka-request-handler-N",
            ),
            ("http-nio-8080-exec-12", "http-nio-N-exec-N"),
            ("pool-1-thread-1", "pool-N-thread-N"),
            ("worker 0b2c9f6e-1d3a-4e5b-8c7d-9a0b1c2d3e4f", "worker N"),
            ("kworker/u8:2", "kworker/uN:N"),
            ("main", "main"),
            ("f\u{e4}den-7", "f\u{e4}den-N"),
            ("", ""),
        ] {
            assert_eq!(super::pool_of(name), pool, "{name}");
        }
    }

    #[test]
    fn what_differs_becomes_a_placeholder() {
        for (path, pattern) in [
            (
                "/tmp/3f2504e0-4f89-11d3-9a0c-0305e82c3301/17.txt",
                "/tmp/<uuid>/<n>.txt",
            ),
            ("/proc/4711/fd/3", "/proc/<n>/fd/<n>"),
            (
                "/var/lib/php5/sess_0ifir2hangm8ggaljdphl9o5b5",
                "/var/lib/php5/sess_<id>",
            ),
            (
                "/.git/objects/ab/0123456789abcdef",
                "/.git/objects/ab/<hex>",
            ),
            ("/data/part-00017.log", "/data/part-<n>.log"),
            ("/data/file17", "/data/file<n>"),
            ("/tmp/i6861", "/tmp/i<n>"),
            ("/usr/lib/i686/cmov", "/usr/lib/i686/cmov"),
            ("/data/00000000000000000000.log", "/data/<n>.log"),
            ("/tmp/ccX1aB.s", "/tmp/ccX1aB.s"),
        ] {
            assert_eq!(pattern_of(path), pattern, "{path}");
        }
    }

    #[test]
    fn names_with_a_meaning_stay() {
        for path in [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/usr/lib/libz.so.1.2.11",
            "/lib/libc-2.19.so",
            "/usr/lib/python3.11",
            "/usr/share/man/man8/ld.8",
            "/sys/fs/ext4",
            "/etc/passwd",
            "socket:[12345]",
            "10.0.0.1:443",
            "/deadbeef",
            "/",
            "",
        ] {
            assert_eq!(pattern_of(path), path, "{path}");
        }
    }

    #[test]
    fn components_that_all_paths_have_in_common_are_literal() {
        let check = |paths: &[&str], shown: &str| {
            let mut common = super::Common::default();
            for path in paths {
                common.add(path);
            }
            assert_eq!(common.shown(&pattern_of(paths[0])), shown, "{paths:?}");
        };
        check(
            &["/srv/node17/tmp/f001", "/srv/node17/tmp/f002"],
            "/srv/node17/tmp/f<n>",
        );
        check(
            &["/srv/node17/tmp/f001", "/srv/node18/tmp/f001"],
            "/srv/node<n>/tmp/f001",
        );
        check(&["/srv/node17/tmp/f001"], "/srv/node<n>/tmp/f<n>");
        check(&["/a/b", "/a/b"], "/a/b");
    }

    #[test]
    fn every_text_has_a_pattern() {
        for path in ["/é1.x", "/.", "/..", "/1.", "/.1", "/1.2.", "//9", "/a.100"] {
            pattern_of(path);
        }
        assert_eq!(pattern_of("/a.100"), "/a.<n>");
    }
}
