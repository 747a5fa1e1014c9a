//! How to reach the server from the machine that the user sits at, if that is another one.

use std::fs;

use whyslow_render::quoted;

const SSH_PORT: &str = "22";
/// Maximum number of ancestors whose environment is read.
const ANCESTORS_MAX: usize = 16;

/// Options and target for ssh (`-p 2222 ann@10.0.0.2`), if the user is connected by ssh.
///
/// sudo removes `SSH_CONNECTION` from the environment, but the shell that started it still has it:
/// call this before the process is confined.
pub(crate) fn target() -> Option<String> {
    let own = |name: &str| std::env::var(name).ok();
    target_in(&own).or_else(|| {
        let is_by_sudo = std::env::var_os("SUDO_USER").is_some();
        let mut above = ancestors().filter(|_| is_by_sudo);
        above.find_map(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            target_in(&|name| value_in(&environment, name))
        })
    })
}

/// The same from the variables of one process.
fn target_in(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let connection = variable("SSH_CONNECTION")?;
    let mut words = connection.split_whitespace().skip(2);
    let (host, port) = (words.next()?, words.next()?);
    let user = ["SUDO_USER", "USER"].iter().find_map(|name| variable(name));
    let user = user.filter(|user| !user.is_empty());
    let user = user.map_or_else(String::new, |user| format!("{user}@"));
    let port = match port {
        SSH_PORT => String::new(),
        port => format!("-p {} ", quoted(port)),
    };
    Some(format!("{port}{}", quoted(&format!("{user}{host}"))))
}

/// The value of a variable in `/proc/PID/environ`.
fn value_in(environment: &[u8], name: &str) -> Option<String> {
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    })
}

/// The parent of this process, its parent, …
fn ancestors() -> impl Iterator<Item = u32> {
    let parents = std::iter::successors(parent_of("self"), |pid| parent_of(&pid.to_string()));
    parents.take_while(|pid| *pid > 1).take(ANCESTORS_MAX)
}

fn parent_of(process: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target_of(environment: &str) -> Option<String> {
        target_in(&|name| value_in(environment.as_bytes(), name))
    }

    #[test]
    fn the_target_is_the_address_that_the_user_connected_to() {
        let check = |environment: &str, want: Option<&str>| {
            assert_eq!(target_of(environment).as_deref(), want, "{environment:?}");
        };
        check(
            "SSH_CONNECTION=10.0.0.1 5000 10.0.0.2 22\0USER=ann\0",
            Some("ann@10.0.0.2"),
        );
        check(
            "USER=ann\0SSH_CONNECTION=10.0.0.1 5000 10.0.0.2 2222",
            Some("-p 2222 ann@10.0.0.2"),
        );
        // The user of the login, not the one that sudo changed to.
        check(
            "USER=root\0SUDO_USER=ann\0SSH_CONNECTION=10.0.0.1 5000 10.0.0.2 22",
            Some("ann@10.0.0.2"),
        );
        check(
            "SSH_CONNECTION=10.0.0.1 5000 10.0.0.2 22\0",
            Some("10.0.0.2"),
        );
        check("SSH_CONNECTION=10.0.0.1\0USER=ann\0", None);
        check("SSH_CONNECTIONS=a b c d\0", None);
        check("", None);
    }

    #[test]
    fn the_parent_of_this_process_is_found() {
        let parent = ancestors().next();
        assert!(parent.is_none_or(|pid| pid == std::os::unix::process::parent_id()));
    }
}
