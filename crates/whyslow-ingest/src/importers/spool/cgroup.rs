//! Cgroup paths, and the containers that they belong to.

/// Length of a container id.
const ID_LEN: usize = 64;

/// The most specific path in the lines of `/proc/PID/cgroup` (`4:memory:/docker/…`): that of a
/// container if there is one, else that of the unified hierarchy, of systemd, or of any controller.
pub(super) fn path(text: &[u8]) -> Option<&[u8]> {
    let line = |line| {
        let mut fields = <[u8]>::splitn(line, 3, |byte| *byte == b':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        path.starts_with(b"/").then_some((controllers, path))
    };
    let rank = |(controllers, path): &(&[u8], &[u8])| {
        let specificity = match *controllers {
            _ if path.len() <= 1 => 0,
            b"" => 3,
            b"name=systemd" => 2,
            _ => 1,
        };
        (container(path).is_some(), specificity)
    };
    let lines = text.split(|byte| *byte == b'\n').filter_map(line);
    // Among equals the first, in the order of the kernel.
    let best = lines.reduce(|best, line| {
        if rank(&line) > rank(&best) {
            line
        } else {
            best
        }
    });
    best.map(|(_, path)| path)
}

/// The id in `/docker/ID`, `…/docker-ID.scope`, `…/cri-containerd-ID.scope`, `…/crio-ID.scope`,
/// `…/libpod-ID.scope`, `/kubepods/…/podUID/ID`: the innermost one of nested containers. The
/// monitor process of a podman or CRI-O container (`…-conmon-ID`) is outside of it.
pub(super) fn container(path: &[u8]) -> Option<&[u8]> {
    let id = |part: &'_ [u8]| -> Option<usize> {
        let part = part.strip_suffix(b".scope").unwrap_or(part);
        let begin = part
            .iter()
            .rposition(|byte| *byte == b'-')
            .map_or(0, |at| at + 1);
        let is_id = part.len() - begin == ID_LEN
            && part[begin..]
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_watcher = part[..begin].ends_with(b"conmon-");
        (is_id && !is_watcher).then_some(begin)
    };
    let mut parts = path.rsplit(|byte| *byte == b'/');
    parts.find_map(|part| {
        let begin = id(part)?;
        part.get(begin..begin + ID_LEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> String {
        "0123456789abcdef".repeat(4)
    }

    #[test]
    fn containers_are_known_by_the_paths_of_those_who_run_them() {
        let id = id();
        let check = |path: &str, expected: bool| {
            let found = container(path.as_bytes());
            assert_eq!(found, expected.then_some(id.as_bytes()), "{path}");
        };
        check(&format!("/docker/{id}"), true);
        check(&format!("/system.slice/docker-{id}.scope"), true);
        check(&format!("/k8s.io/{id}"), true);
        check(&format!("/kubepods/burstable/pod7-8/{id}"), true);
        let pod = "/kubepods.slice/kubepods-pod7.slice";
        check(&format!("{pod}/cri-containerd-{id}.scope"), true);
        check(&format!("{pod}/crio-{id}.scope"), true);
        check(&format!("/machine.slice/libpod-{id}.scope/container"), true);
        check(&format!("/machine.slice/libpod-conmon-{id}.scope"), false);
        check(&format!("/docker/{}/docker/{id}/sub", "f".repeat(64)), true);
        check(&format!("/docker/{}", &id[1..]), false);
        check(&format!("/docker/{id}0"), false);
        check(&format!("/docker/{}", id.to_uppercase()), false);
        check("/", false);
        check("", false);
        check("/user.slice/user-1000.slice/session-2.scope", false);
    }

    #[test]
    fn of_several_hierarchies_the_one_that_tells_most_counts() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                path(text.as_bytes()),
                expected.map(str::as_bytes),
                "{text:?}"
            );
        };
        check("0::/\n", Some("/"));
        check("0::/init.scope\n", Some("/init.scope"));
        check("4:memory:/a\n1:name=systemd:/b\n0::/\n", Some("/b"));
        check("4:memory:/a\n1:name=systemd:/b\n0::/c\n", Some("/c"));
        check("9:x:/\n4:memory:/a:b\n5:cpu:/c\n0::/\n", Some("/a:b"));
        let docker = format!("/docker/{}", id());
        check(&format!("4:memory:{docker}\n0::/c\n"), Some(&docker));
        check("", None);
        check("4:memory\nx\n::\n:::\n0::relative\n", None);
    }
}
