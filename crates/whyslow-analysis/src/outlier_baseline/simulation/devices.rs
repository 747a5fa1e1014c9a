//! Simulated devices, the first of which may be a bad one.

use super::dice::{Dice, Family};

pub(super) const DEVICES: usize = 17;

/// Fault of the first device.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    None,
    /// This share of requests takes this multiple of the time.
    Some(f64, f64),
    /// Each request does, independently, with this probability.
    Each(f64, f64),
    All(f64),
}

/// Times of each device's requests.
pub(super) fn times(
    family: Family,
    requests: usize,
    fault: Fault,
    dice: &mut Dice,
) -> Vec<Vec<f64>> {
    let one = |device: usize| {
        let time = |request: usize| {
            let time = family.draw(dice);
            let (is_slow, times) = match fault {
                Fault::None => (false, 1.0),
                Fault::Some(share, times) => ((request as f64) < share * requests as f64, times),
                Fault::Each(chance, times) => (dice.happens(chance), times),
                Fault::All(times) => (true, times),
            };
            if device == 0 && is_slow {
                time * times
            } else {
                time
            }
        };
        (0..requests).map(time).collect()
    };
    (0..DEVICES).map(one).collect()
}
