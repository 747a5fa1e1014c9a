//! Compiles the programs for the kernel and makes typed access to them.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

/// By name of the skeleton, with what the compiler has to be told.
const SOURCES: [(&str, &[&str]); 2] = [
    ("recorder", &[]),
    // Compares and exchanges.
    ("outliers", &["-mcpu=v3"]),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=src/bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let arch = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => return Err(format!("the recorder does not know the registers of {other}").into()),
    };
    for (name, options) in SOURCES {
        let arguments = [&format!("-D__TARGET_ARCH_{arch}"), "-Wall", "-Werror"];
        SkeletonBuilder::new()
            .source(format!("src/bpf/{name}.bpf.c"))
            .clang_args(arguments.iter().chain(options))
            .build_and_generate(out.join(format!("{name}.skel.rs")))?;
    }
    Ok(())
}
