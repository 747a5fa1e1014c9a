use whyslow_model::Ns;

use super::zone::Zone;

/// First and last time of a recording and its zone: what relative and partial times refer to.
#[derive(Debug, Clone)]
pub struct Calendar {
    /// First time of the recording.
    pub begin: Ns,
    /// Last time of the recording.
    pub end: Ns,
    /// Zone in which times are read and shown.
    pub zone: Zone,
}
