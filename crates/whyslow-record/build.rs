//! Compiles the programs for the kernel and makes typed access to them.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

const SOURCE: &str = "src/bpf/recorder.bpf.c";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=src/bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("recorder.skel.rs");
    let arch = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => return Err(format!("the recorder does not know the registers of {other}").into()),
    };
    SkeletonBuilder::new()
        .source(SOURCE)
        .clang_args([
            format!("-D__TARGET_ARCH_{arch}"),
            "-Wall".into(),
            "-Werror".into(),
        ])
        .build_and_generate(&out)?;
    Ok(())
}
