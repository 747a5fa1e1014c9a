//! Context of an event, recorded in addition to its payload.

/// Context recorded with an event. Absent means unknown, never zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Context<'a> {
    /// Thread that was running.
    pub tid: Option<i32>,
    /// Its process.
    pub pid: Option<i32>,
    /// Parent of its process.
    pub ppid: Option<i32>,
    /// Its name.
    pub comm: Option<&'a [u8]>,
    /// Its kernel priority.
    pub prio: Option<i32>,
    /// Interrupt that the CPU was serving, regardless of the thread.
    pub interrupt: Option<Interrupt>,
}

/// Whether a CPU was serving an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// None: the thread itself was running.
    None,
    /// A softirq.
    Soft,
    /// A hard interrupt.
    Hard,
}

impl Interrupt {
    const ALL: [(Self, &'static str); 3] = [
        (Interrupt::None, "none"),
        (Interrupt::Soft, "soft"),
        (Interrupt::Hard, "hard"),
    ];

    /// Name in the text format.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Parses an [`Interrupt::name`]; `None` for any other text.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| known.as_bytes() == name);
        found.map(|(interrupt, _)| *interrupt)
    }
}
