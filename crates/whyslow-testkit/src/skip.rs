use std::fmt::Display;
use std::process::Command;

use crate::Need;
use crate::need::is_required;

/// Needs that this machine must meet: comma-separated names, or `all`.
const VARIABLE: &str = "WHYSLOW_REQUIRE";

/// Prints why a test, or a part of one, is skipped; the caller then returns.
///
/// # Panics
/// If `WHYSLOW_REQUIRE` lists the need, or an unknown need.
#[track_caller]
#[allow(clippy::print_stdout, reason = "a skipped test shows why")]
pub fn skip(need: Need, reason: impl Display) {
    let names = std::env::var(VARIABLE).unwrap_or_default();
    assert!(!is_required(&names, need), "{}", refusal(need, &reason));
    println!("skipped: {reason} [{}]", need.name());
}

/// Whether the program can be started with `argument` (`--version`); skips if not.
#[track_caller]
pub fn skip_unless_installed(need: Need, program: &str, argument: &str) -> bool {
    let is_installed = Command::new(program).arg(argument).output().is_ok();
    if !is_installed {
        skip(need, format_args!("{program} is not installed"));
    }
    is_installed
}

fn refusal(need: Need, reason: &dyn Display) -> String {
    format!(
        "required by {VARIABLE} but skipped: {reason} [{}]",
        need.name()
    )
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;

    /// Runs the test below in its own process, since tests share environment variables.
    fn skipped_with(required: Option<&str>) -> (bool, String) {
        let program = std::env::current_exe().expect("this test");
        let mut command = Command::new(program);
        command.args([
            "--exact",
            "--ignored",
            "--show-output",
            "skip::tests::a_test_that_skips",
        ]);
        match required {
            Some(required) => command.env(VARIABLE, required),
            None => command.env_remove(VARIABLE),
        };
        let Output { status, stdout, .. } = command.output().expect("it starts");
        (
            status.success(),
            String::from_utf8_lossy(&stdout).into_owned(),
        )
    }

    /// Not a test itself: run by the tests below.
    #[test]
    #[ignore = "skips or fails depending on its environment"]
    fn a_test_that_skips() {
        skip(Need::Tools, "fio is not installed");
    }

    #[test]
    fn a_skip_passes_and_shows_its_reason() {
        for required in [None, Some(""), Some("live,data"), Some("machine")] {
            let (passed, output) = skipped_with(required);
            assert!(passed, "{required:?}: {output}");
            let line = "\nskipped: fio is not installed [tools]\n";
            assert!(output.contains(line), "{required:?}: {output}");
        }
    }

    #[test]
    fn a_skip_of_something_required_fails() {
        for required in ["tools", "live, tools", "all"] {
            let (passed, output) = skipped_with(Some(required));
            assert!(!passed, "{required}: {output}");
            let line = "required by WHYSLOW_REQUIRE but skipped: fio is not installed [tools]";
            assert!(output.contains(line), "{required}: {output}");
            assert!(!output.contains("\nskipped: "), "{required}: {output}");
        }
    }

    #[test]
    fn a_misspelt_need_fails() {
        let (passed, output) = skipped_with(Some("tool"));
        assert!(
            !passed && output.contains("unknown need `tool`"),
            "{output}"
        );
    }
}
