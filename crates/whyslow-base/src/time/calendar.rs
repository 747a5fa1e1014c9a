use whyslow_model::Ns;

use super::zone::Zone;

/// First and last time of a recording and its zone: what relative and partial times refer to.
#[derive(Debug, Clone)]
pub struct Calendar {
    pub begin: Ns,
    pub end: Ns,
    pub zone: Zone,
}
