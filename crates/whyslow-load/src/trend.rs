//! Whether the share of slow requests changes with the number of threads of a sweep.
//!
//! The test of Cochran (*Biometrics* 10, 1954) and Armitage (*Biometrics* 11, 1955) for a trend in
//! proportions: with scores `t`, requests `n` and slow requests `r` of each stage, `N` requests in
//! all, and the common share `p`,
//!
//! ```text
//! z = sum(t (r - n p)) / sqrt(p (1 - p) (sum(n t^2) - sum(n t)^2 / N))
//! ```
//!
//! has a normal distribution if there is no trend. The score of a stage is the logarithm of its
//! number of threads, because sweeps usually double it.

/// With fewer slow, or other, requests, the distribution is not normal.
const REQUESTS_MIN: u64 = 5;
/// Two-sided 5 % level.
const LEVEL_Z: f64 = 1.96;

/// A stage of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) threads: u32,
    pub(crate) count: u64,
    pub(crate) slow: u64,
}

impl Stage {
    fn share(&self) -> String {
        let percent = 100.0 * self.slow as f64 / self.count as f64;
        format!("{percent:.1} % with {}", self.threads)
    }
}

/// The verdict in words; `None` without two stages of different numbers of threads.
pub(crate) fn verdict(stages: &[Stage]) -> Option<String> {
    let mut stages: Vec<Stage> = stages
        .iter()
        .copied()
        .filter(|stage| stage.count > 0)
        .collect();
    stages.sort_by_key(|stage| stage.threads);
    let (first, last) = (stages.first()?, stages.last()?);
    if first.threads == last.threads {
        return None;
    }
    let shares = format!("{}, {}", first.share(), last.share());
    let slow: u64 = stages.iter().map(|stage| stage.slow).sum();
    let all: u64 = stages.iter().map(|stage| stage.count).sum();
    if all - slow < REQUESTS_MIN {
        return Some(format!(
            "almost all requests are slow with each number of threads ({shares})"
        ));
    }
    if slow < REQUESTS_MIN {
        return Some(format!(
            "too few slow requests to show whether their share changes with the number of threads \
             ({shares}): {slow} of {all}"
        ));
    }
    let z = cochran_armitage(&stages);
    let what = if z >= LEVEL_Z {
        "the share of slow requests increases with the number of threads"
    } else if z <= -LEVEL_Z {
        "the share of slow requests decreases with the number of threads"
    } else {
        "no change of the share of slow requests with the number of threads is shown"
    };
    Some(format!(
        "{what} ({shares}; Cochran-Armitage test, z = {z:.2}, significant from ±1.96)"
    ))
}

/// Positive if the share increases with the number of threads.
fn cochran_armitage(stages: &[Stage]) -> f64 {
    let score = |stage: &Stage| f64::from(stage.threads.max(1)).ln();
    let sum = |of: &dyn Fn(&Stage) -> f64| stages.iter().map(of).sum::<f64>();
    let all = sum(&|stage| stage.count as f64);
    let share = sum(&|stage| stage.slow as f64) / all;
    let off = sum(&|stage| score(stage) * (stage.slow as f64 - stage.count as f64 * share));
    let scores = sum(&|stage| stage.count as f64 * score(stage));
    let squares = sum(&|stage| stage.count as f64 * score(stage).powi(2));
    let variance = share * (1.0 - share) * (squares - scores * scores / all);
    if variance > 0.0 {
        off / variance.sqrt()
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(of: &[(u32, u64, u64)]) -> Vec<Stage> {
        let one = |(threads, count, slow): &(u32, u64, u64)| Stage {
            threads: *threads,
            count: *count,
            slow: *slow,
        };
        of.iter().map(one).collect()
    }

    /// By hand: scores 0, 1, 2 times ln 2; p = 60/300; the sum is (0 - 0 + 2 * 10) ln 2 with the
    /// first stage 10 below; variance 0.16 (100 + 400 - 300^2 / 300) = 32 times ln 2 squared.
    #[test]
    fn a_trend_has_the_deviate_of_the_formula() {
        let z = cochran_armitage(&stages(&[(1, 100, 10), (2, 100, 20), (4, 100, 30)]));
        assert!((z - 20.0 / 32.0f64.sqrt()).abs() < 1e-9, "{z}");
        // Two stages: the square is Pearson's chi-square without correction, 8.
        let z = cochran_armitage(&stages(&[(1, 100, 10), (4, 100, 25)]));
        let chi_square =
            200.0 * f64::from(10 * 75 - 25 * 90).powi(2) / (100.0 * 100.0 * 35.0 * 165.0);
        assert!((z * z - chi_square).abs() < 1e-9, "{z}");
    }

    #[test]
    fn the_verdict_is_in_words() {
        let of = |stages_of: &[(u32, u64, u64)]| verdict(&stages(stages_of)).unwrap_or_default();
        let more = of(&[(1, 100, 10), (2, 100, 20), (4, 100, 30)]);
        assert!(more.contains("increases with"), "{more}");
        assert!(more.contains("10.0 % with 1, 30.0 % with 4"), "{more}");
        assert!(more.contains("z = 3.54"), "{more}");
        let less = of(&[(4, 100, 10), (1, 100, 30)]);
        assert!(less.contains("decreases with"), "{less}");
        let same = of(&[(1, 100, 10), (2, 100, 12), (4, 100, 11)]);
        assert!(same.contains("no change"), "{same}");
        let few = of(&[(1, 100, 0), (2, 100, 0), (4, 100, 3)]);
        assert!(few.contains("too few slow requests"), "{few}");
        let all = of(&[(1, 100, 99), (4, 100, 100)]);
        assert!(all.contains("almost all"), "{all}");
        assert_eq!(verdict(&stages(&[(2, 100, 10), (2, 100, 30)])), None);
        assert_eq!(verdict(&[]), None);
    }
}
