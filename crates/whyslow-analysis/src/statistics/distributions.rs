//! Tail probabilities of distributions, from log-gamma and the error function.

/// Probability of more than `z` under the normal distribution.
pub fn normal_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
}

/// Probability of `k` or more among `n` with a common probability that has a beta distribution with
/// parameters `a` and `b`; 1 if `k` is not above the expected number, which is no evidence.
///
/// The number of new values above the `a`-th greatest of `a + b - 1` others has this distribution
/// if all are alike, whatever their distribution (Johnson, Kemp, Kotz, "Univariate Discrete
/// Distributions", 6.2.2: negative hypergeometric, also called beta-binomial). Terms follow from
/// `P(j + 1) / P(j) = (n - j) (j + a) / ((j + 1) (n - j - 1 + b))`.
pub(crate) fn beta_binomial_tail(k: u64, n: u64, (a, b): (f64, f64)) -> f64 {
    let count = n as f64;
    if k as f64 <= count * a / (a + b) {
        return 1.0;
    }
    if k > n {
        return 0.0;
    }
    let first = k as f64;
    let log = ln_choose(count, first) + ln_beta(first + a, count - first + b) - ln_beta(a, b);
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

/// Probability of `k` or more among `n` independent trials with this probability.
pub fn binomial_tail(k: u64, n: u64, chance: f64) -> f64 {
    if k == 0 || (chance >= 1.0 && k <= n) {
        return 1.0;
    }
    if k > n || chance <= 0.0 {
        return 0.0;
    }
    let (count, first) = (n as f64, k as f64);
    let log = ln_choose(count, first) + first * chance.ln() + (count - first) * (-chance).ln_1p();
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

/// Probability that `k` or more of `n` drawn without replacement are among the `marked` of `all`:
/// Fisher's exact test, one-sided, of `k` in `n` against `marked - k` in the rest.
///
/// Terms follow from `P(j + 1) / P(j) = (marked - j) (n - j) / ((j + 1) (all - marked - n + j + 1))`.
pub fn hypergeometric_tail(k: u64, n: u64, marked: u64, all: u64) -> f64 {
    let least = (n + marked).saturating_sub(all);
    if k <= least {
        return 1.0;
    }
    if k > n.min(marked) {
        return 0.0;
    }
    let [first, drawn, marked, all] = [k, n, marked, all].map(|count| count as f64);
    let log =
        ln_choose(marked, first) + ln_choose(all - marked, drawn - first) - ln_choose(all, drawn);
    let mode = (drawn + 1.0) * (marked + 1.0) / (all + 2.0);
    let (mut term, mut sum, mut j) = (log.exp(), 0.0, first);
    while j <= drawn.min(marked) {
        sum += term;
        if j > mode && term <= sum * f64::EPSILON {
            break;
        }
        term *= (marked - j) * (drawn - j) / ((j + 1.0) * (all - marked - drawn + j + 1.0));
        j += 1.0;
    }
    sum.min(1.0)
}

/// Probability of more than `x` under Fisher's F distribution with 2 and `2 m` degrees of freedom:
/// the ratio of one exponential value to the mean of `m` others (Johnson, Kotz, Balakrishnan,
/// "Continuous Univariate Distributions" 2, 27: in closed form for 2 degrees of freedom).
pub fn f_tail_of_two(x: f64, m: f64) -> f64 {
    (-m * (x.max(0.0) / m).ln_1p()).exp()
}

/// Probability of more than `x` under the chi-square distribution with `df` degrees of freedom.
///
/// The regularised incomplete gamma function `Q(df / 2, x / 2)`: by its power series (DLMF 8.7.1)
/// below the mean, by its continued fraction (DLMF 8.9.2, evaluated as by Lentz) above.
pub fn chi_square_tail(x: f64, df: f64) -> f64 {
    let (a, x) = (df / 2.0, x / 2.0);
    if x <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut at) = (1.0 / a, 1.0 / a, a);
        while term > sum * f64::EPSILON {
            at += 1.0;
            term *= x / at;
            sum += term;
        }
        return (1.0 - front * sum).clamp(0.0, 1.0);
    }
    let tiny = f64::MIN_POSITIVE / f64::EPSILON;
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / tiny, 1.0 / b);
    let mut fraction = d;
    for i in 1..10_000 {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = an * d + b;
        d = 1.0 / if d.abs() < tiny { tiny } else { d };
        c = b + an / c;
        c = if c.abs() < tiny { tiny } else { c };
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-14 {
            break;
        }
    }
    (front * fraction).clamp(0.0, 1.0)
}

fn ln_choose(n: f64, k: f64) -> f64 {
    libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)
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

    /// Expected values are quotients of integers: counted arrangements of new and other values.
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

    /// Expected values are sums of fractions of integers.
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

    /// Expected values are quotients of integers; 41 of 199 and 0 of 196 are a bad disk and a good
    /// one.
    #[test]
    fn drawing_without_putting_back_is_counted() {
        for (k, n, marked, all, expected) in [
            (41, 199, 41, 395, 6.331_534_072_265_141e-14),
            (1, 10, 5, 50, 0.689_437_217_994_531_3),
            (3, 10, 5, 50, 0.048_260_303_196_209_1),
            (20, 60, 100, 1000, 2.470_685_490_974_945e-7),
            (5, 5, 5, 1000, 1.212_078_422_050_565_2e-13),
        ] {
            close(hypergeometric_tail(k, n, marked, all), expected);
        }
        assert_eq!(hypergeometric_tail(0, 10, 5, 50), 1.0);
        // Of 50 with 45 marked, at least 5 are among any 10.
        assert_eq!(hypergeometric_tail(5, 10, 45, 50), 1.0);
        assert_eq!(hypergeometric_tail(6, 10, 5, 50), 0.0);
    }

    /// With an even number of degrees of freedom it is a sum of Poisson terms, with one the error
    /// function.
    #[test]
    fn the_chi_square_tail_is_that_of_other_functions() {
        for (x, df, expected) in [
            (1.0, 2.0, 0.606_530_659_712_633_4),
            (3.0, 4.0, 0.557_825_400_371_074_5),
            (100.0, 4.0, 9.836_624_225_615_98e-21),
            (5.0, 10.0, 0.891_178_018_914_151_4),
            (20.0, 10.0, 0.029_252_688_076_961_086),
            (80.0, 100.0, 0.929_664_933_340_606_8),
            (200.0, 100.0, 1.178_450_072_097_940_5e-8),
            (0.5, 1.0, 0.479_500_122_186_953_7),
            (3.841_458_820_694_124, 1.0, 0.05),
            (30.0, 1.0, 4.320_463_057_827_492e-8),
            (11.344_866_730_144_37, 3.0, 0.01),
        ] {
            close(chi_square_tail(x, df), expected);
        }
        assert_eq!(chi_square_tail(0.0, 3.0), 1.0);
    }

    /// Probability that one of `m` values is at least `x` times their mean, by simulation.
    #[test]
    fn the_tail_of_a_ratio_of_times_is_that_of_drawn_ones() {
        let mut dice = super::super::Dice::new(1);
        let (m, x, runs) = (10, 3.0, 40_000);
        let over = (0..runs).filter(|_| {
            let mean = (0..m).map(|_| dice.exponential()).sum::<f64>() / f64::from(m);
            dice.exponential() > x * mean
        });
        let (found, expected) = (
            over.count() as f64 / f64::from(runs),
            f_tail_of_two(x, 10.0),
        );
        assert!((found - expected).abs() < 0.005, "{found} {expected}");
    }

    #[test]
    fn the_ends_of_the_tail() {
        let peers = (8.0, 793.0);
        assert_eq!(beta_binomial_tail(0, 50, peers), 1.0);
        assert_eq!(beta_binomial_tail(51, 50, peers), 0.0);
        let all = beta_binomial_tail(50, 50, peers);
        assert!(all > 0.0 && all < 1e-50, "{all}");
        // Ten million requests are fast, too.
        assert!(beta_binomial_tail(120_000, 10_000_000, (1e5, 9.9e6)) < 1e-100);
    }
}
