//! Text wrapped to a width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Lines of at most `width` columns. The first line starts with `lead`, the others are indented by
/// its width. Words that are wider than a line are broken.
pub(super) fn wrapped(lead: &str, text: &str, width: usize) -> Vec<String> {
    let indent = lead.width();
    let room = width.saturating_sub(indent).max(8);
    let mut lines: Vec<String> = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for word in text.split(' ') {
        for (number, piece) in pieces(word, room).into_iter().enumerate() {
            let wide = piece.width();
            let space = usize::from(!line.is_empty() && number == 0);
            let is_full = used + space + wide > room;
            if is_full && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
                used = 0;
            } else if space == 1 {
                line.push(' ');
                used += 1;
            }
            line.push_str(piece);
            used += wide;
        }
    }
    lines.push(line);
    let blank = " ".repeat(indent);
    for (number, line) in lines.iter_mut().enumerate() {
        let start = if number == 0 { lead } else { &blank };
        line.insert_str(0, start);
        line.truncate(line.trim_end().len());
    }
    lines
}

/// The same, cut after `count` lines; what is cut is marked.
pub(super) fn limited(
    lead: &str,
    text: &str,
    (width, count): (usize, usize),
    is_ascii: bool,
) -> Vec<String> {
    let mut lines = wrapped(lead, text, width);
    if lines.len() > count {
        lines.truncate(count);
        let mark = if is_ascii { " ..." } else { " …" };
        if let Some(last) = lines.last_mut() {
            while last.width() + mark.width() > width {
                let end = last.trim_end().rfind(' ').unwrap_or(0);
                let is_word = last[..end].trim().is_empty();
                last.truncate(if is_word {
                    last.len() - last.chars().last().map_or(0, char::len_utf8)
                } else {
                    end
                });
            }
            last.push_str(mark);
        }
    }
    lines
}

/// A command over several lines, each continued with a backslash, so that it can be pasted.
pub(super) fn command(lead: &str, command: &str, width: usize) -> Vec<String> {
    // Two columns for the backslash.
    let mut lines = Vec::new();
    let indent = lead.width();
    let room = width.saturating_sub(indent + 2).max(8);
    let mut line = String::new();
    for word in command.split(' ') {
        if !line.is_empty() && line.width() + 1 + word.width() > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    let (last, blank) = (lines.len() - 1, " ".repeat(indent));
    for (number, line) in lines.iter_mut().enumerate() {
        let start = if number == 0 { lead } else { &blank };
        let end = if number < last { " \\" } else { "" };
        *line = format!("{start}{line}{end}");
    }
    lines
}

/// A word in pieces of at most `room` columns.
fn pieces(word: &str, room: usize) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut begin, mut used) = (0, 0);
    for (place, c) in word.char_indices() {
        let wide = c.width().unwrap_or(0);
        if used + wide > room {
            found.push(&word[begin..place]);
            (begin, used) = (place, 0);
        }
        used += wide;
    }
    found.push(&word[begin..]);
    found
}

/// Text of at most `room` columns, shortened in the middle.
pub(super) fn shortened(text: &str, room: usize, is_ascii: bool) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mark = if is_ascii { "..." } else { "…" };
    let Some(left) = room.checked_sub(mark.width()) else {
        return String::new();
    };
    // The end of a path identifies it better than its start.
    let (head, tail) = (left - left * 2 / 3, left * 2 / 3);
    let mut used = 0;
    let first: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= head
        })
        .collect();
    let mut used = 0;
    let last: Vec<char> = text
        .chars()
        .rev()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= tail
        })
        .collect();
    let last: String = last.into_iter().rev().collect();
    format!("{first}{mark}{last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_width() {
        let text = "a word, and a path of /very/long/folders/that/do/not/fit/in/one/line, and more";
        for width in [20, 24, 40, 80] {
            for line in wrapped("   WHY   ", text, width) {
                assert!(line.width() <= width, "{width}: {line}");
            }
            for line in limited("   WHY   ", text, (width, 2), false) {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
        assert_eq!(wrapped("1  ", "one two", 80), ["1  one two"]);
        assert_eq!(
            wrapped("1  ", "one two three", 11),
            ["1  one two", "   three"]
        );
        assert_eq!(
            limited("1  ", "one two three", (11, 1), true),
            ["1  one ..."]
        );
    }

    #[test]
    fn a_command_on_several_lines_can_be_pasted() {
        let lines = command("NEXT  ", "whyslow explain storm.wsl -w op:14812", 30);
        assert_eq!(
            lines,
            ["NEXT  whyslow explain \\", "      storm.wsl -w op:14812"]
        );
        let one = command("NEXT  ", "whyslow explain a.wsl", 80);
        assert_eq!(one, ["NEXT  whyslow explain a.wsl"]);
    }

    #[test]
    fn the_end_of_a_path_is_kept() {
        assert_eq!(shortened("/srv/www/sessions/a", 12, false), "/srv…sions/a");
        assert_eq!(shortened("/srv/www/sessions/a", 12, true), "/sr...ions/a");
        assert_eq!(shortened("short", 12, true), "short");
        assert_eq!(shortened("short", 2, true), "");
    }
}
