//! Nothing. Naming an example (or test) among the targets of a build makes cargo resolve the
//! features of dependencies as it does for the tests. So the program that `./dev demo` builds is the
//! one that `./dev test` needs, and no dependency is compiled twice:
//!
//!     cargo build --workspace --bin whyslow --example same_features

fn main() {}
