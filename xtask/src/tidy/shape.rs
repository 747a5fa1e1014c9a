//! Sizes of files and functions.

const FILE_LINES_MAX: usize = 1000;
const FILE_LINES_SECOND_LOOK: usize = 600;
/// Number of files that exceed the second limit without a reason: it may only decrease.
pub(super) const LONG_FILES_MAX: usize = 4;
const FUNCTION_LINES_MAX: usize = 70;
/// A function with at most this average arm length is a dispatch, which may be long.
const ARM_LINES_MAX: usize = 9;
/// Mark on the line above a longer file or function, followed by the reason.
const REASON: &str = "tidy: long because";

/// Checks files and functions; counts files over the second limit.
pub(super) fn check(
    name: &str,
    text: &str,
    long_files: &mut Vec<String>,
    complaints: &mut Vec<String>,
) {
    let limit = match name.rsplit('.').next() {
        Some("rs") => FILE_LINES_SECOND_LOOK,
        Some("c" | "ts") => 300,
        Some("sql") => 150,
        _ => return,
    };
    let lines = text.lines().count();
    let excused = text.contains(REASON);
    if lines > FILE_LINES_MAX.max(limit) && !excused {
        complaints.push(format!(
            "{name}: {lines} lines, at most {FILE_LINES_MAX} (or add `{REASON} …`)"
        ));
    } else if lines > limit && !excused {
        long_files.push(format!("{name}: {lines} lines, consider splitting it"));
    }
    if name.ends_with(".rs") {
        functions(name, text, complaints);
    }
}

/// Measures functions by rustfmt's layout: `fn` at some indentation to the `}` at the same one.
fn functions(name: &str, text: &str, complaints: &mut Vec<String>) {
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let body = line.trim_start();
        let indent = line.len() - body.len();
        if !is_function(body) {
            at += 1;
            continue;
        }
        let closing = format!("{}}}", " ".repeat(indent));
        let end = (at..lines.len())
            .find(|&i| lines[i].trim_end() == closing)
            .unwrap_or(at);
        let length = end - at + 1;
        let excused = at > 0 && lines[at - 1].contains(REASON);
        let dispatch =
            lines[at..=end].iter().filter(|l| l.contains("=>")).count() * ARM_LINES_MAX > length;
        let test = at > 0 && lines[at - 1].contains("#[test]");
        if length > FUNCTION_LINES_MAX && !dispatch && !excused && !test {
            complaints.push(format!(
                "{name}:{}: a function of {length} lines (at most {FUNCTION_LINES_MAX})",
                at + 1
            ));
        }
        at += 1;
    }
}

fn is_function(line: &str) -> bool {
    let mut rest = line;
    for prefix in [
        "pub(crate) ",
        "pub(super) ",
        "pub ",
        "const ",
        "async ",
        "unsafe ",
    ] {
        rest = rest.strip_prefix(prefix).unwrap_or(rest);
    }
    rest.starts_with("fn ") && !line.trim_end().ends_with(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(name: &str, text: &str) -> usize {
        let (mut long_files, mut complaints) = (Vec::new(), Vec::new());
        check(name, text, &mut long_files, &mut complaints);
        complaints.len() + long_files.len()
    }

    #[test]
    fn long_functions_and_files_are_seen() {
        let body = "    let a = 1;\n".repeat(80);
        assert_eq!(complaints("a.rs", &format!("fn f() {{\n{body}}}\n")), 1);
        assert_eq!(
            complaints(
                "a.rs",
                &format!("// tidy: long because x\nfn f() {{\n{body}}}\n")
            ),
            0
        );
        assert_eq!(complaints("a.rs", &"// x\n".repeat(601)), 1);
        assert_eq!(complaints("a.sql", &"-- x\n".repeat(151)), 1);
        assert_eq!(complaints("a.rs", "fn f() {\n}\n"), 0);
    }
}
