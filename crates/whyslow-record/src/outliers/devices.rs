//! Current names and numbers of block devices.

use std::fs;
use std::path::Path;

const BY_NUMBER: &str = "/sys/dev/block";
const BY_NAME: &str = "/sys/class/block";

/// Major and minor number of a kernel `dev_t` with 20 minor bits.
fn parts(dev: u32) -> (u32, u32) {
    (dev >> 20, dev & 0xf_ffff)
}

/// `sda`, or `8:0` if there is no such device (any more).
pub fn device_name(dev: u32) -> String {
    let (major, minor) = parts(dev);
    let link = fs::read_link(Path::new(BY_NUMBER).join(format!("{major}:{minor}")));
    let name = link.ok().and_then(|link| {
        let name = link.file_name()?.to_str()?;
        // The kernel writes ! for / in device names.
        Some(name.replace('!', "/"))
    });
    name.unwrap_or_else(|| format!("{major}:{minor}"))
}

/// Number of the disk with this name; of a partition such as `sda1`, that of its disk.
pub fn device_by_name(name: &str) -> Option<u32> {
    if name.is_empty() || name.starts_with('.') {
        return None;
    }
    let folder = Path::new(BY_NAME).join(name.replace('/', "!"));
    let folder = if folder.join("partition").exists() {
        folder.canonicalize().ok()?.parent()?.to_owned()
    } else {
        folder
    };
    let text = fs::read_to_string(folder.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    Some(major << 20 | minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_those_of_the_kernel() {
        let Ok(folder) = fs::read_dir(BY_NAME) else {
            return;
        };
        for entry in folder.flatten() {
            let is_disk = !entry.path().join("partition").exists();
            let name = entry.file_name().to_string_lossy().replace('!', "/");
            if let Some(dev) = device_by_name(&name).filter(|_| is_disk) {
                assert_eq!(device_name(dev), name);
            }
        }
        assert_eq!(device_by_name("no such device"), None);
        assert_eq!(device_by_name("../../etc"), None);
        assert_eq!(device_name(4095 << 20 | 0x4d), "4095:77");
    }
}
