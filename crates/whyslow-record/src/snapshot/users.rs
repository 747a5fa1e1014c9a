//! Names of users, from `/etc/passwd`.

use std::fs;
use std::path::Path;

use whyslow_model::spool::{Encoder, Kind};

use crate::clock;

/// Maximum number of users.
const USERS_MAX: usize = 10_000;

pub(super) fn all(encoder: &mut Encoder, file: &Path) {
    for (uid, name) in users(&fs::read(file).unwrap_or_default()) {
        encoder
            .begin(Kind::User, clock::monotonic(), (0, 0))
            .u32(uid)
            .text(name)
            .end();
    }
}

/// `root:x:0:0:…`; if a uid has several names, the first counts.
fn users(text: &[u8]) -> Vec<(u32, &[u8])> {
    let user = |line| {
        let mut fields = <[u8]>::split(line, |byte| *byte == b':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let uid = std::str::from_utf8(fields.nth(1)?).ok()?;
        Some((uid.parse().ok()?, name))
    };
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(user).take(USERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names_and_what_is_none_is_passed_over() {
        let text = b"root:x:0:0:root:/root:/bin/sh\n#x\n:x:1:\nw\xffb:x:33\n-:x:-1:1:\n\na:b\n";
        assert_eq!(users(text), [(0, &b"root"[..]), (33, b"w\xffb")]);
    }
}
