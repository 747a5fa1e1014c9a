//! The development traces, stored as archives.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use whyslow_testkit::data_folder;

/// Archives of traces, by name; without data an empty list and a message.
pub(crate) fn archives() -> Vec<PathBuf> {
    let Some(root) = data_folder("ctf") else {
        return Vec::new();
    };
    let mut archives = vec![root.join("ours-web-incident/trace.tar.zst")];
    archives.retain(|archive| archive.exists());
    for entry in std::fs::read_dir(&root).expect("the data has a folder `ctf`") {
        let path = entry.expect("the folder can be read").path();
        if path.to_string_lossy().ends_with(".tar.xz") {
            archives.push(path);
        }
    }
    archives.sort();
    archives
}

pub(crate) fn open(archive: &Path) -> tar::Archive<Box<dyn Read>> {
    let file = File::open(archive).expect("the archive can be opened");
    let plain: Box<dyn Read> = if archive.extension().is_some_and(|kind| kind == "zst") {
        Box::new(zstd::Decoder::new(file).expect("the archive is zstd"))
    } else {
        Box::new(liblzma::read::XzDecoder::new(file))
    };
    tar::Archive::new(plain)
}
