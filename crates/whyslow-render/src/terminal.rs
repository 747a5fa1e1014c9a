//! Properties of standard output: terminal or not, width, character set, colours.

use std::io::IsTerminal;

use whyslow_base::args::ColorChoice;

/// Size if the terminal does not report one.
const FALLBACK: (usize, usize) = (80, 24);

/// Columns and rows of the terminal on standard output; `None` for a file or a pipe.
pub(super) fn size() -> Option<(usize, usize)> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    match rustix::termios::tcgetwinsize(&stdout) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            Some((size.ws_col.into(), size.ws_row.into()))
        }
        _ => Some(FALLBACK),
    }
}

/// Whether standard output is a terminal.
pub fn is_on_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether to colour output to standard output (`to_terminal`) or to a pager.
pub fn wants_color(choice: ColorChoice, to_terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR") => false,
        ColorChoice::Auto => {
            let forced = std::env::var_os("CLICOLOR_FORCE")
                .is_some_and(|value| value != "0" && !value.is_empty());
            let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
            forced || (to_terminal && !dumb)
        }
    }
}

/// Whether the locale supports more than ASCII.
pub(super) fn locale_is_utf8() -> bool {
    let value = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    // Containers and services often have no locale, and their output goes to journals and browsers
    // that read UTF-8: only an explicit other locale counts.
    value.is_none_or(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}
