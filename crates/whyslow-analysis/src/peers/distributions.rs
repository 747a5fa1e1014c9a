//! Tails of the two distributions that the tests need, from log-gamma and the error function.

/// Chance of more than `z` under the normal distribution.
pub(super) fn normal_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
}

/// Chance of `k` or more among `n` where each has the same chance, which itself was drawn from a
/// beta distribution with parameters `a` and `b`; 1 for a `k` that is no more than expected, which
/// is no evidence of anything.
///
/// The number of new values above the `a`-th greatest of `a + b - 1` others is distributed so if
/// all are alike, whatever their distribution (Johnson, Kemp, Kotz, "Univariate Discrete
/// Distributions", 6.2.2: negative hypergeometric, also called beta-binomial). Terms follow from
/// `P(j + 1) / P(j) = (n - j) (j + a) / ((j + 1) (n - j - 1 + b))`.
pub(super) fn beta_binomial_tail(k: u64, n: u64, (a, b): (f64, f64)) -> f64 {
    let count = n as f64;
    if k as f64 <= count * a / (a + b) {
        return 1.0;
    }
    if k > n {
        return 0.0;
    }
    let first = k as f64;
    let choose =
        libm::lgamma(count + 1.0) - libm::lgamma(first + 1.0) - libm::lgamma(count - first + 1.0);
    let log = choose + ln_beta(first + a, count - first + b) - ln_beta(a, b);
    let mut term = log.exp();
    let mut sum = 0.0;
    for j in k..=n {
        sum += term;
        if term <= sum * f64::EPSILON {
            break;
        }
        let j = j as f64;
        term *= (count - j) * (j + a) / ((j + 1.0) * (count - j - 1.0 + b));
    }
    sum.min(1.0)
}

/// Chance of `k` or more among `n` that each have this chance, by themselves.
pub(super) fn binomial_tail(k: u64, n: u64, chance: f64) -> f64 {
    if k > n {
        return 0.0;
    }
    let (count, first) = (n as f64, k as f64);
    let choose =
        libm::lgamma(count + 1.0) - libm::lgamma(first + 1.0) - libm::lgamma(count - first + 1.0);
    let log = choose + first * chance.ln() + (count - first) * (-chance).ln_1p();
    let mut term = log.exp();
    let mut sum = 0.0;
    for j in k..=n {
        sum += term;
        let j = j as f64;
        // Terms grow up to the mean.
        if j > count * chance && term <= sum * f64::EPSILON {
            break;
        }
        term *= (count - j) / (j + 1.0) * chance / (1.0 - chance);
    }
    sum.min(1.0)
}

fn ln_beta(a: f64, b: f64) -> f64 {
    libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-6,
            "{found} is not {expected}"
        );
    }

    #[test]
    fn the_normal_tail_is_that_of_tables() {
        close(normal_tail(0.0), 0.5);
        close(normal_tail(1.959_963_984_540_054), 0.025);
        close(normal_tail(-1.959_963_984_540_054), 0.975);
        close(normal_tail(6.0), 9.865_876_450_376_946e-10);
        close(normal_tail(20.0), 2.753_624_118_606_234e-89);
    }

    /// Expected are quotients of whole numbers: the arrangements of new and other values, counted.
    #[test]
    fn exceedances_are_distributed_as_counting_all_arrangements_tells() {
        for (k, n, a, b, expected) in [
            (1, 1, 1.0, 1.0, 0.5),
            (2, 3, 2.0, 4.0, 0.285_714_285_714_285_7),
            (5, 50, 8.0, 793.0, 0.000_334_318_925_420_111_26),
            (1, 50, 8.0, 793.0, 0.385_574_978_417_476_3),
            (10, 50, 9.0, 792.0, 6.126_750_331_168_83e-9),
            (50, 1000, 160.0, 15_841.0, 6.382_228_778_653_679e-18),
            (40, 199, 33.0, 3168.0, 5.859_795_246_518_559e-32),
            (3, 10, 1.0, 100.0, 0.000_556_018_904_642_757_9),
        ] {
            close(beta_binomial_tail(k, n, (a, b)), expected);
        }
    }

    #[test]
    fn a_chance_that_is_known_gives_the_binomial_tail() {
        for (k, n, chance, expected) in [
            (5, 50, 0.01, 0.000_145_689_268_071_826_95),
            (50, 1000, 0.01, 8.306_371_435_388_77e-20),
            (41, 199, 0.01, 1.351_001_905_088_541e-40),
            (1, 50, 0.01, 0.394_993_932_862_463_4),
        ] {
            let known = (1e9 * chance, 1e9 * (1.0 - chance));
            let found = beta_binomial_tail(k, n, known);
            assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
        }
    }

    /// Expected are sums of fractions of whole numbers.
    #[test]
    fn the_binomial_tail_is_the_sum_of_its_terms() {
        for (k, n, chance, expected) in [
            (0, 10, 0.2, 1.0),
            (5, 50, 0.2, 0.981_503_984_939_790_6),
            (6, 50, 0.2, 0.951_972_780_628_266_3),
            (50, 50, 0.2, 1.125_899_906_842_624_7e-35),
            (1800, 10_000, 0.2, 0.999_999_807_196_131_1),
            (2000, 10_000, 0.2, 0.503_989_367_942_045_5),
            (41, 199, 0.01, 1.351_001_905_088_541e-40),
        ] {
            close(binomial_tail(k, n, chance), expected);
        }
        assert_eq!(binomial_tail(51, 50, 0.2), 0.0);
    }

    #[test]
    fn the_ends_of_the_tail() {
        let peers = (8.0, 793.0);
        assert_eq!(beta_binomial_tail(0, 50, peers), 1.0);
        assert_eq!(beta_binomial_tail(51, 50, peers), 0.0);
        let all = beta_binomial_tail(50, 50, peers);
        assert!(all > 0.0 && all < 1e-50, "{all}");
        // Ten million requests end soon too.
        assert!(beta_binomial_tail(120_000, 10_000_000, (1e5, 9.9e6)) < 1e-100);
    }
}
