//! Peers are the devices of one driver, recognised by name.
//!
//! Devices of different drivers are not comparable: a loop device is a file in memory, and a
//! machine with spinning disks may boot from flash.

/// Names that the kernel forms from a prefix and letters: `sda`, `sdaa`, `vdb`.
const LETTERED: [&str; 5] = ["sd", "vd", "xvd", "hd", "dasd"];

/// `sd` for `sdaa`, `nvme` for `nvme0n1`, the major number for a device without a name.
pub fn driver(name: &str) -> &str {
    if let Some((major, _)) = name.split_once(':') {
        return major;
    }
    let digits_at = name.find(|c: char| c.is_ascii_digit());
    let stem = &name[..digits_at.unwrap_or(name.len())];
    let lettered = LETTERED.into_iter().find(|prefix| {
        let letters = stem.strip_prefix(prefix);
        letters.is_some_and(|rest| !rest.is_empty() && rest.len() <= 3)
    });
    lettered.unwrap_or(stem)
}

#[cfg(test)]
mod tests {
    use super::driver;

    #[test]
    fn drivers_are_told_by_names() {
        for (name, expected) in [
            ("sda", "sd"),
            ("sdaa", "sd"),
            ("vdb", "vd"),
            ("xvda", "xvd"),
            ("nvme0n1", "nvme"),
            ("nvme11n2", "nvme"),
            ("loop7", "loop"),
            ("mmcblk0", "mmcblk"),
            ("dm-0", "dm-"),
            ("md127", "md"),
            ("sr0", "sr"),
            ("8:16", "8"),
            ("unknown", "unknown"),
            ("", ""),
        ] {
            assert_eq!(driver(name), expected, "{name}");
        }
    }
}
