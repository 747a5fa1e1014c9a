//! Compresses the pages that `serve` shows into the program, if they were built.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

const NAMES: [&str; 4] = ["index.html", "app.js", "app.css", "questions.json"];

fn main() {
    let folder = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../web/dist");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=build.rs");
    // What is not there cannot be waited for: then `./dev ui` says that there are pages now.
    if folder.exists() {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let mut list = String::from("static ASSETS: &[Asset] = &[");
    // All or none: a page without its script would only be blank.
    let found: Vec<(&str, Vec<u8>)> = NAMES
        .iter()
        .filter_map(|name| Some((*name, fs::read(folder.join(name)).ok()?)))
        .collect();
    if found.len() == NAMES.len() {
        for (name, bytes) in found {
            println!("cargo::rerun-if-changed={}", folder.join(name).display());
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&bytes).expect("memory takes it");
            let gzip = encoder.finish().expect("memory takes it");
            let place = out.join(format!("{name}.gz"));
            fs::write(&place, &gzip).expect("the build's folder takes it");
            let etag = format!("\"{:08x}-{:x}\"", crc(&gzip), bytes.len());
            let place = place.to_str().expect("cargo's folders have names in UTF-8");
            let _ = write!(
                list,
                "Asset {{ name: {name:?}, gzip: include_bytes!({place:?}), etag: {etag:?} }},"
            );
        }
    }
    list.push_str("];");
    fs::write(out.join("assets.rs"), list).expect("the build's folder takes it");
}

/// The checksum that gzip has at its end: four bytes before the length.
fn crc(gzip: &[u8]) -> u32 {
    let at = gzip.len() - 8;
    u32::from_le_bytes([gzip[at], gzip[at + 1], gzip[at + 2], gzip[at + 3]])
}
