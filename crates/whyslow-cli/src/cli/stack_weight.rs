use clap::ValueEnum;

/// What stacks are weighted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StackWeight {
    Offcpu,
    Samples,
    Time,
}
