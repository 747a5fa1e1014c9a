//! Recording ids: the same id whenever and wherever a recording is pushed.
//!
//! The id is derived from the recorded data (source digests and time range), not from the
//! recording's files: importing a trace again with a later version gives the same id. Its form is
//! that of a ULID (48 bits of ms since the epoch, 80 bits of a hash, 26 characters of Crockford
//! base 32), so names sort by time.

use whyslow_store::RecordingInfo;

/// Characters of an id.
pub(crate) const LENGTH: usize = 26;
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CONTEXT: &str = "whyslow recording in a lake 1";

/// The id of a recording. `digest` is the digest of its files, used if it has no sources. Pushing
/// it under another `host` gives another id.
pub fn recording_id(info: &RecordingInfo, digest: &str, host: Option<&str>) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    let mut update = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    let is_known =
        !info.sources.is_empty() && info.sources.iter().all(|source| !source.digest.is_empty());
    if is_known {
        info.sources
            .iter()
            .for_each(|source| update(&source.digest));
    } else {
        update(digest);
    }
    // A slice of a recording is a different recording.
    update(&format!("{}..{}", info.begin_ns, info.end_ns));
    if let Some(cut) = &info.cut {
        update(&cut.digest);
    }
    if let Some(host) = host {
        update(host);
    }
    let hash = hasher.finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&hash.as_bytes()[..10]);
    ulid(info.begin_ns.div_euclid(1_000_000), random)
}

/// 26 characters that sort by time; times out of range are clamped.
pub(crate) fn ulid(ms: i64, random: [u8; 10]) -> String {
    let ms = ms.clamp(0, (1 << 48) - 1) as u128;
    let mut bytes = [0; 16];
    bytes[6..].copy_from_slice(&random);
    let value = (ms << 80) | u128::from_be_bytes(bytes);
    let digit = |place: usize| {
        let shift = 5 * (LENGTH - 1 - place);
        ALPHABET[((value >> shift) & 31) as usize] as char
    };
    (0..LENGTH).map(digit).collect()
}

/// Start time of the recording with this id, in ms since the epoch; `None` if it is not an id.
pub(crate) fn ms_of(id: &str) -> Option<i64> {
    const DIGITS: usize = 10;
    let digit = |byte: u8| ALPHABET.iter().position(|known| *known == byte);
    let mut digits = id.bytes().take(DIGITS).map(digit);
    let ms = digits.try_fold(0, |ms, digit| Some((ms << 5) | digit? as i64));
    ms.filter(|_| is_id(id))
}

/// Whether a text is a valid id.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == LENGTH
        && text.bytes().all(|byte| ALPHABET.contains(&byte))
        && text.as_bytes()[0] <= b'7'
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_store::SourceInfo;

    #[test]
    fn the_form_is_that_of_ulids() {
        // This time is the example of the ULID specification.
        assert!(ulid(1_469_918_176_385, [0; 10]).starts_with("01ARYZ6S41"));
        assert_eq!(ulid(0, [0; 10]), "0".repeat(26));
        assert_eq!(ulid(i64::MAX, [255; 10]), format!("7{}", "Z".repeat(25)));
        assert_eq!(
            ms_of(&ulid(1_469_918_176_385, [9; 10])),
            Some(1_469_918_176_385)
        );
        assert_eq!((ms_of("01ARYZ6S41"), ms_of("")), (None, None));
        assert!(is_id(&ulid(-1, [7; 10])));
        assert!(!is_id("01ARYZ6S41") && !is_id(&"U".repeat(26)));
    }

    #[test]
    fn what_was_recorded_decides_and_not_how_it_was_imported() {
        let info = RecordingInfo {
            sources: vec![SourceInfo {
                digest: "ab".into(),
                ..SourceInfo::default()
            }],
            begin_ns: 5_000_000,
            end_ns: 7_000_000,
            ..RecordingInfo::default()
        };
        let id = recording_id(&info, "x", None);
        assert_ne!(recording_id(&info, "x", Some("web-2")), id);
        let later = RecordingInfo {
            written_by: "whyslow 9".into(),
            ..info.clone()
        };
        assert_eq!(recording_id(&later, "y", None), id);
        let other = RecordingInfo {
            end_ns: 8_000_000,
            ..info.clone()
        };
        assert_ne!(recording_id(&other, "x", None), id);
        let unknown = RecordingInfo {
            sources: Vec::new(),
            ..info
        };
        assert_ne!(
            recording_id(&unknown, "x", None),
            recording_id(&unknown, "y", None)
        );
    }
}
