//! What is known at compile time about a position in a packet.

use super::plan::MAX_ALIGNMENT_BITS;

/// A position is `residue` modulo `modulus` (a power of two), in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) modulus: u32,
    pub(super) residue: u32,
}

impl Phase {
    pub(super) const PACKET_BEGIN: Phase = Phase {
        modulus: MAX_ALIGNMENT_BITS,
        residue: 0,
    };
    pub(super) const ANYWHERE: Phase = Phase {
        modulus: 1,
        residue: 0,
    };

    pub(super) fn advanced(self, bits: u64) -> Phase {
        let residue = (u64::from(self.residue) + bits) % u64::from(self.modulus);
        Phase {
            modulus: self.modulus,
            residue: residue as u32,
        }
    }

    /// At the next multiple of a power of two.
    pub(super) fn aligned(self, bits: u32) -> Phase {
        if self.modulus < bits {
            return Phase {
                modulus: bits,
                residue: 0,
            };
        }
        Phase {
            modulus: self.modulus,
            residue: self.residue.next_multiple_of(bits) % self.modulus,
        }
    }

    pub(super) fn is_multiple_of(self, bits: u32) -> bool {
        self.modulus >= bits && self.residue.is_multiple_of(bits)
    }

    /// What holds in both cases.
    pub(super) fn either(self, other: Phase) -> Phase {
        let mut modulus = self.modulus.min(other.modulus);
        while self.residue % modulus != other.residue % modulus {
            modulus /= 2;
        }
        Phase {
            modulus,
            residue: self.residue % modulus,
        }
    }
}
