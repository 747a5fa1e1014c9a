//! Embeds the compressed web pages of `serve` in the program, if they have been built.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

const NAMES: [&str; 4] = ["index.html", "app.js", "app.css", "queries.json"];

fn main() {
    let folder =
        Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../web/dist");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    println!("cargo::rerun-if-changed=build.rs");
    // cargo cannot watch missing files: then `./dev ui` triggers the rebuild.
    if folder.exists() {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let mut list = String::from("static ASSETS: &[Asset] = &[");
    // All or none: a page without its script would be blank.
    let found: Vec<(&str, Vec<u8>)> = NAMES
        .iter()
        .filter_map(|name| Some((*name, fs::read(folder.join(name)).ok()?)))
        .collect();
    if found.len() == NAMES.len() {
        for (name, bytes) in found {
            println!("cargo::rerun-if-changed={}", folder.join(name).display());
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&bytes).expect("writing to memory");
            let gzip = encoder.finish().expect("writing to memory");
            let place = out.join(format!("{name}.gz"));
            fs::write(&place, &gzip).expect("OUT_DIR is writable");
            let etag = format!("\"{:08x}-{:x}\"", crc(&gzip), bytes.len());
            let place = place.to_str().expect("OUT_DIR is UTF-8");
            let _ = write!(
                list,
                "Asset {{ name: {name:?}, gzip: include_bytes!({place:?}), etag: {etag:?} }},"
            );
        }
    }
    list.push_str("];");
    fs::write(out.join("assets.rs"), list).expect("OUT_DIR is writable");
}

/// The CRC-32 in the trailer of a gzip file, before the length.
fn crc(gzip: &[u8]) -> u32 {
    let at = gzip.len() - 8;
    u32::from_le_bytes([gzip[at], gzip[at + 1], gzip[at + 2], gzip[at + 3]])
}
