//! The numerator of softmax as a whole number: `round(2^42 * exp(x))` for `x <= 0`, where x is the distance of a logit
//! to the greatest one over the temperature.
//!
//! Whole numbers make every later sum exact, so that the order of summation, the width of vectors and the number of
//! threads cannot change a draw. A token less probable than the best one by more than 2^-43 gets weight 0. 2^21 weights
//! add up to less than 2^64.

/// The weight of the most probable token.
pub const ONE: u64 = 1 << 42;

/// `1 / n!` for n from 13 down to 0.
const INVERSE_FACTORIALS: [f64; 14] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

/// ln 2 in two parts, the first with enough trailing zeros that its product with a small whole number is exact (fdlibm,
/// `e_exp.c`).
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Adding and subtracting it rounds to a whole number, ties to even: 1.5 * 2^52.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Adding it leaves a whole number below 2^52 in the low bits: 2^52.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// The weight of a logit at distance `x <= 0`. Only additions and multiplications of IEEE doubles in a fixed order: the
/// same bits on every machine, which the `exp` of a platform's library does not promise.
#[inline]
pub fn weight(x: f64) -> u64 {
    let [weight] = weights([x]);
    weight
}

/// [`weight`] of some distances, step by step for all of them, so that the compiler can use vectors.
#[inline(always)]
pub(super) fn weights<const N: usize>(x: [f64; N]) -> [u64; N] {
    // Below -40 the weight is 0 as well, and the exponent stays positive.
    let x = x.map(|x| if x > -40.0 { x } else { -40.0 });
    lanes::<42, N>(x).map(|exact| (exact + WHOLE).to_bits() - WHOLE.to_bits())
}

/// `2^SHIFT * exp(x)` of some numbers from -700 to 0.
#[inline(always)]
fn lanes<const SHIFT: u64, const N: usize>(x: [f64; N]) -> [f64; N] {
    let rounded = x.map(|x| x * std::f64::consts::LOG2_E + ROUNDER);
    let mut rest = [0.0; N];
    for ((rest, x), rounded) in rest.iter_mut().zip(x).zip(rounded) {
        let n = rounded - ROUNDER;
        *rest = (x - n * LN2_HIGH) - n * LN2_LOW;
    }
    let mut sums = [0.0; N];
    for coefficient in INVERSE_FACTORIALS {
        for (sum, rest) in sums.iter_mut().zip(rest) {
            *sum = *sum * rest + coefficient;
        }
    }
    for (sum, rounded) in sums.iter_mut().zip(rounded) {
        // The low bits of `rounded` are n: shifted into the exponent they make 2^(n + SHIFT).
        *sum *= f64::from_bits(rounded.to_bits().wrapping_add(SHIFT + 1023) << 52);
    }
    sums
}

/// `exp(x)` for `x <= 0`, to the last bits of a double; 0 below -700.
#[inline]
pub(super) fn exponential(x: f64) -> f64 {
    let [exact] = exponentials([x]);
    exact
}

/// The same of some numbers, step by step for all of them, so that the compiler can use vectors.
#[inline(always)]
pub(super) fn exponentials<const N: usize>(x: [f64; N]) -> [f64; N] {
    let mut exact = lanes::<0, N>(x.map(|x| if x > -700.0 { x } else { -700.0 }));
    for (exact, x) in exact.iter_mut().zip(x) {
        *exact = if x > -700.0 { *exact } else { 0.0 };
    }
    exact
}

/// The natural logarithm of `x >= 1`, to the last bits of a double: `x = 2^n * m` with m around 1, and
/// `ln m = 2 artanh((m - 1) / (m + 1))` by its series.
pub(super) fn logarithm(x: f64) -> f64 {
    let exponent = (x.to_bits() >> 52) as i64 - 1023;
    let fraction = f64::from_bits((x.to_bits() & ((1 << 52) - 1)) | (1023 << 52));
    let (n, m) = if fraction > std::f64::consts::SQRT_2 {
        (exponent + 1, fraction / 2.0)
    } else {
        (exponent, fraction)
    };
    let z = (m - 1.0) / (m + 1.0);
    let square = z * z;
    // |z| is below 0.172, so that what is left out is below 2^-60 of the whole.
    let series = (0..=10).rev().fold(0.0, |sum, index| {
        sum * square + 1.0 / f64::from(2 * index + 1)
    });
    n as f64 * LN2_HIGH + (2.0 * z * series + n as f64 * LN2_LOW)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // rows: RS-117
    #[test]
    fn the_ends_of_the_range() {
        assert_eq!(weight(0.0), ONE);
        assert_eq!(weight(-0.0), ONE);
        assert_eq!(weight(-30.0), 0);
        assert_eq!(weight(-1e300), 0);
        assert_eq!(weight(f64::NEG_INFINITY), 0);
        assert_eq!(weight(-std::f64::consts::LN_2), ONE / 2);
    }

    // rows: RS-122..125
    #[test]
    fn the_ends_of_the_range_of_doubles() {
        assert_eq!((exponential(0.0), exponential(-0.0)), (1.0, 1.0));
        assert_eq!((exponential(-701.0), exponential(-1e300)), (0.0, 0.0));
        assert_eq!(exponential(f64::NEG_INFINITY), 0.0);
        assert_eq!(
            (logarithm(1.0), logarithm(2.0)),
            (0.0, std::f64::consts::LN_2)
        );
    }

    /// What is rounded is rounded to the nearest: a token has a weight down to 2^-43, and none below.
    // rows: RS-117
    #[test]
    fn the_least_weights() {
        let at = |weight: f64| (weight / ONE as f64).ln();
        for (exact, expected) in [
            (2.51, 3),
            (2.49, 2),
            (1.51, 2),
            (1.49, 1),
            (0.51, 1),
            (0.49, 0),
        ] {
            assert_eq!(weight(at(exact)), expected, "of {exact}");
        }
    }

    proptest! {
        // rows: RS-122..125
        #[test]
        fn exponentials_and_logarithms_are_those_of_doubles(x in -690.0f64..=0.0, y in 1.0f64..1e9) {
            prop_assert!((exponential(x) / x.exp() - 1.0).abs() < 1e-14, "{} against {}", exponential(x), x.exp());
            for y in [y, 1.0 + y / 1e10] {
                prop_assert!((logarithm(y) - y.ln()).abs() <= 1e-15 * y.ln().max(0.1), "{} against {}", logarithm(y), y.ln());
            }
        }

        // rows: RS-117
        #[test]
        fn is_the_exponential_to_the_last_unit(x in -32.0f64..=0.0) {
            let exact = x.exp() * ONE as f64;
            // Where doubles tell the halves of units apart, the exponential of the platform is near enough for both.
            let off = if exact < 1e6 { 0.5 + 1e-6 } else { 1.0 };
            prop_assert!((weight(x) as f64 - exact).abs() <= off, "{} against {exact}", weight(x));
        }
    }
}
