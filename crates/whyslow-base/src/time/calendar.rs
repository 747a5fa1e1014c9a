use whyslow_model::Ns;

use super::zone::Zone;

/// First and last timestamp of a recording and its zone, to resolve relative and partial times.
#[derive(Debug, Clone)]
pub struct Calendar {
    /// First timestamp of the recording.
    pub begin: Ns,
    /// Last timestamp of the recording.
    pub end: Ns,
    /// Zone in which times are parsed and shown.
    pub zone: Zone,
}
