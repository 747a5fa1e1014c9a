//! Compiles the BPF programs, and generates typed access to them.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

/// Names of the skeletons.
const SOURCES: [&str; 3] = ["recorder", "outliers", "lookups"];
/// The programs use compare-and-exchange.
const CPU: &str = "-mcpu=v3";

fn main() -> Result<(), Box<dyn std::error::Error>> {
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
        SkeletonBuilder::new()
            .source(format!("src/bpf/{name}.bpf.c"))
            .clang_args(arguments)
            .build_and_generate(out.join(format!("{name}.skel.rs")))?;
    }
    Ok(())
}
