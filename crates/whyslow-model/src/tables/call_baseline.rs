use crate::Sym;

crate::table! {
    /// How long system calls took in the recording that this one was cut from: what is usual does not follow from a window. Without rows in others.
    CallBaselineRow = "call_baseline", Entity by id {
        /// Id.
        id: i64 [Id],
        /// Program: name of the process.
        comm: Sym,
        /// Name of the call.
        name: Sym,
        /// The call was about something that others fill or empty: a pipe, a socket, …
        waits: bool,
        /// The shortest of calls of about this length: those of a sixteenth of an octave of the logarithm.
        dur_ns: i64 [Duration],
        /// How many there were.
        count: i64 [Count],
    }
}
