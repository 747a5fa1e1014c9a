//! What is known of the moment of an event beside the event.

/// Contexts recorded with an event. Absent means unknown, never zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Context<'a> {
    pub tid: Option<i32>,
    pub pid: Option<i32>,
    pub ppid: Option<i32>,
    pub comm: Option<&'a [u8]>,
    pub prio: Option<i32>,
    /// What the CPU did, whoever ran on it.
    pub interrupt: Option<Interrupt>,
}

/// Whether a CPU served an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// It did not: the thread was at work.
    None,
    Soft,
    Hard,
}

impl Interrupt {
    const ALL: [(Self, &'static str); 3] = [
        (Interrupt::None, "none"),
        (Interrupt::Soft, "soft"),
        (Interrupt::Hard, "hard"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    pub fn of_name(name: &[u8]) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| known.as_bytes() == name);
        found.map(|(interrupt, _)| *interrupt)
    }
}
