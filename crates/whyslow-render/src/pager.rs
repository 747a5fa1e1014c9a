use std::io::{self, Write};
use std::process::{Command, Stdio};

const DEFAULT: &str = "less -FRX";

/// Shows the text in the user's pager, or directly on the terminal if there is none.
pub(super) fn show(text: &str) -> io::Result<()> {
    let pager = ["WHYSLOW_PAGER", "PAGER"]
        .iter()
        .find_map(|name| std::env::var(name).ok())
        .unwrap_or_else(|| DEFAULT.into());
    let pager = pager.trim();
    if pager.is_empty() || pager == "cat" {
        return io::stdout().write_all(text.as_bytes());
    }
    let child = Command::new("sh")
        .args(["-c", pager])
        .stdin(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        return io::stdout().write_all(text.as_bytes());
    };
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(text.as_bytes()) {
            // The user quit the pager before the end.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            other => other?,
        }
    }
    let status = child.wait()?;
    // The shell exits with 127 if the pager does not exist.
    if status.code() == Some(127) {
        return io::stdout().write_all(text.as_bytes());
    }
    Ok(())
}
