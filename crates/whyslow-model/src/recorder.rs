//! Facts of a recording about its own recorder: keys of the table `metadata`.

/// Process id of the recorder.
pub const RECORDER_PID: &str = "recorder_pid";
/// CPU time of the recorder's process while it recorded, in ns. Its BPF programs are charged to the
/// threads that they interrupt.
pub const RECORDER_CPU: &str = "recorder_cpu_ns";
/// Time from the start to the end of the recording, in ns, for [`RECORDER_CPU`].
pub const RECORDER_ELAPSED: &str = "recorder_elapsed_ns";

/// CPU time of the recorder per elapsed time, from the values of the facts: 1 is one CPU.
pub fn cpu_share(cpu: Option<&str>, elapsed: Option<&str>) -> Option<f64> {
    let cpu: u64 = cpu?.parse().ok()?;
    let elapsed: u64 = elapsed?.parse().ok().filter(|elapsed| *elapsed > 0)?;
    Some(cpu as f64 / elapsed as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_needs_both_facts() {
        assert_eq!(cpu_share(Some("48"), Some("1000")), Some(0.048));
        assert_eq!(cpu_share(Some("48"), None), None);
        assert_eq!(cpu_share(None, Some("1000")), None);
        assert_eq!(cpu_share(Some("48"), Some("0")), None);
        assert_eq!(cpu_share(Some("x"), Some("1000")), None);
    }
}
