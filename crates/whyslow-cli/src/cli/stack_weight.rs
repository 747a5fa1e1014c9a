use clap::ValueEnum;

/// What is counted in stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StackWeight {
    Offcpu,
    Samples,
    Time,
}
