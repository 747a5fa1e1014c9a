//! Compiles the BPF programs, and generates typed access to them.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;

/// Names of the skeletons.
const SOURCES: [&str; 3] = ["recorder", "outliers", "lookups"];
/// The programs use compare-and-exchange.
const CPU: &str = "-mcpu=v3";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=src/bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let arch = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => {
            return Err(
                format!("cannot build the BPF programs: unsupported architecture {other}").into(),
            );
        }
    };
    for name in SOURCES {
        let arguments = [&format!("-D__TARGET_ARCH_{arch}"), CPU, "-Wall", "-Werror"];
        let object = out.join(format!("{name}.bpf.o"));
        let skeleton = out.join(format!("{name}.skel.rs"));
        SkeletonBuilder::new()
            .source(format!("src/bpf/{name}.bpf.c"))
            .clang_args(arguments)
            .obj(&object)
            .reference_obj(true)
            .build_and_generate(&skeleton)?;
        compress(&object, &skeleton)?;
    }
    Ok(())
}

/// Includes the object in compressed form: an eighth of the size, decompressed only in recorders.
fn compress(object: &Path, skeleton: &Path) -> Result<(), Box<dyn Error>> {
    let bytes = fs::read(object)?;
    let compressed = object.with_extension("o.zst");
    fs::write(&compressed, zstd::encode_all(&bytes[..], 19)?)?;
    let text = fs::read_to_string(skeleton)?;
    let data = text
        .find("#[unsafe(link_section")
        .ok_or("the skeleton does not contain its object where it is expected")?;
    let include = format!(
        "static DATA: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {{ \
         zstd::decode_all(&include_bytes!(\"{}\")[..]).expect(\"compressed by the build script\") }});\n}}\n",
        compressed.display()
    );
    fs::write(skeleton, format!("{}{include}", &text[..data]))?;
    Ok(())
}
