//! Statistics that all tests share: tail probabilities, correction for multiple tests, and random
//! numbers that are the same on every machine.

mod correction;
mod dice;
mod distributions;
mod ranks;

pub use correction::adjusted;
pub use dice::Dice;
pub(crate) use distributions::beta_binomial_tail;
pub use distributions::{
    binomial_tail, chi_square_tail, f_tail_of_two, hypergeometric_tail, normal_tail,
};
pub use ranks::rank_test;
