//! Host names, command lines, free text, and the contents of known files.

use super::Redactor;
use super::words::Lexicon;

impl Redactor {
    pub(super) fn host(&self, host: &str) -> String {
        self.address(host)
            .unwrap_or_else(|| self.words(host, Lexicon::Hosts))
    }

    /// The program by its path, options by the words in their names, everything else as one token.
    pub(super) fn command(&self, line: &str) -> String {
        let words = shell_words(line);
        let mut new = Vec::with_capacity(words.len());
        for (place, word) in words.iter().enumerate() {
            new.push(match word {
                // Titles that programs set for themselves: `sshd: alice [priv]`.
                _ if place == 0 => self.path(word),
                _ if word.starts_with('-') => self.option(word),
                _ => self.argument(word),
            });
        }
        new.join(" ")
    }

    fn option(&self, option: &str) -> String {
        match option.split_once('=') {
            Some((name, value)) => {
                let name = self.words(name, Lexicon::Common);
                format!("{name}={}", self.argument(value))
            }
            None => self.words(option, Lexicon::Common),
        }
    }

    /// An argument of a program or a function.
    pub(super) fn argument(&self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        if text.starts_with('/') {
            return self.path(text);
        }
        if self.keep.name(text) {
            return text.to_owned();
        }
        self.address(text).unwrap_or_else(|| self.token(text))
    }

    /// Word by word, so that public words stay readable.
    pub(super) fn free(&self, text: &str) -> String {
        let parts = text.split_inclusive(char::is_whitespace);
        parts
            .map(|part| {
                let word = part.trim_end();
                self.piece(word) + &part[word.len()..]
            })
            .collect()
    }

    fn piece(&self, word: &str) -> String {
        if let Some((name, value)) = word.split_once('=') {
            return format!(
                "{}={}",
                self.words(name, Lexicon::Common),
                self.piece(value)
            );
        }
        let is_mark = |c: char| {
            matches!(
                c,
                ',' | ';' | '.' | ':' | '"' | '\'' | '(' | ')' | '<' | '>'
            )
        };
        let core = word.trim_matches(is_mark);
        let begin = word.len() - word.trim_start_matches(is_mark).len();
        let new = if core.starts_with('/') {
            self.path(core)
        } else {
            self.address(core)
                .unwrap_or_else(|| self.words(core, Lexicon::Common))
        };
        // For a word of punctuation only, both ends overlap.
        let end = (begin + core.len()).min(word.len());
        format!("{}{new}{}", &word[..begin.min(end)], &word[end..])
    }

    /// Messages of the import itself stay; quotations from a source do not.
    pub(super) fn log(&self, text: &str) -> String {
        let is_count = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_name = |name: &str| {
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        let is_own = || {
            if let Some((count, doc)) = text.split_once(" times: ") {
                return is_count(count)
                    && whyslow_model::stat::ALL.iter().any(|stat| stat.doc == doc);
            }
            if let Some((name, count)) = text.split_once(": ") {
                return is_name(name) && count.strip_suffix(" events").is_some_and(is_count);
            }
            let late = text.strip_prefix("by at most ");
            late.and_then(|late| late.strip_suffix(" ns"))
                .is_some_and(is_count)
        };
        if is_own() {
            text.to_owned()
        } else {
            self.free(text)
        }
    }

    /// `/etc/resolv.conf`, `/etc/nsswitch.conf`, `/etc/hosts`; comments are removed.
    pub(super) fn resolver(&self, text: &str) -> String {
        let line = |line: &str| {
            let line = line.split(['#', ';']).next().unwrap_or("");
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else {
                return String::new();
            };
            let (first, each): (String, fn(&Self, &str) -> String) = match first {
                "nameserver" | "sortlist" => (first.to_owned(), Self::host),
                "domain" | "search" => (first.to_owned(), Self::host),
                "options" => (first.to_owned(), Self::resolver_option),
                _ => match self.address(first) {
                    Some(address) => (address, Self::host),
                    None => (self.words(first, Lexicon::Common), |redactor, word| {
                        redactor.words(word, Lexicon::Common)
                    }),
                },
            };
            let rest = words.map(|word| each(self, word));
            std::iter::once(first)
                .chain(rest)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let ends = if text.ends_with('\n') { "\n" } else { "" };
        let lines: Vec<String> = text.lines().map(line).collect();
        lines.join("\n") + ends
    }

    /// The numbers of options, such as timeouts, stay.
    fn resolver_option(&self, option: &str) -> String {
        match option.split_once(':') {
            Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("{}:{number}", self.words(name, Lexicon::Common))
            }
            _ => self.words(option, Lexicon::Common),
        }
    }
}

/// The words of a command line, split as in a shell; an open quote ends at the end of the line.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
