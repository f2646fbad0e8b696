//! Functions of fixed operations: the platform's own differ between machines.

use crate::simd::{LANES, Simd};

/// Below this, e^x is taken as 0: it would be near or under the least normal number.
const EXP_LEAST: f32 = -87.0;
/// Above this, e^x would overflow; such an argument is taken as this.
const EXP_GREATEST: f32 = 88.0;
/// 1.5 * 2^23: adding it rounds to an integer, which then stands in the lowest bits.
const ROUNDER: f32 = 12_582_912.0;

/// e^x to about 1 unit in the last place (Cephes `expf`: reduction by ln 2 in two parts, polynomial of degree 6).
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::V) -> S::V {
    let least = s.splat(EXP_LEAST);
    let clamped = s.min(s.splat(EXP_GREATEST), s.max(least, x));
    let shifted = s.fma(clamped, s.splat(std::f32::consts::LOG2_E), s.splat(ROUNDER));
    let n = s.sub(shifted, s.splat(ROUNDER));
    let r = s.fma(n, s.splat(-0.693_359_4), clamped);
    let r = s.fma(n, s.splat(2.121_944_4e-4), r);
    let mut p = s.splat(1.987_569_1e-4);
    for coefficient in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        0.5,
    ] {
        p = s.fma(p, r, s.splat(coefficient));
    }
    let square = s.mul(r, r);
    let p = s.add(s.fma(p, square, r), s.splat(1.0));
    s.zero_below(x, least, s.mul(p, s.pow2(shifted)))
}

/// x / (1 + e^-x).
#[inline(always)]
pub(crate) fn silu<S: Simd>(s: S, x: S::V) -> S::V {
    let e = exp(s, s.sub(s.splat(0.0), x));
    s.div(x, s.add(s.splat(1.0), e))
}

/// The factor 1 / sqrt(mean of squares + epsilon); lanes sum every sixteenth element, then as [`Simd::sum`] does.
#[inline(always)]
pub(crate) fn inverse_rms<S: Simd>(s: S, x: &[f32], epsilon: f32) -> f32 {
    let mut squares = s.splat(0.0);
    for group in x.chunks(LANES) {
        let v = s.load_some(group);
        squares = s.fma(v, v, squares);
    }
    1.0 / (s.sum(squares) / x.len() as f32 + epsilon).sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::{Isa, Kernel, all_isas};

    struct Function {
        x: [f32; LANES],
        silu: bool,
    }

    impl Kernel for Function {
        type Output = [f32; LANES];

        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> [f32; LANES] {
            let x = s.load(&self.x);
            let mut out = [0.0; LANES];
            s.store(if self.silu { silu(s, x) } else { exp(s, x) }, &mut out);
            out
        }
    }

    /// The function on the portable lanes, and the one whose bits differ from that if there is one.
    fn on_both(x: f32, silu: bool) -> (f32, f32) {
        let function = || Function {
            x: [x; LANES],
            silu,
        };
        let portable = Isa::choose(Isa::PORTABLE).unwrap().run(function())[0];
        let found = all_isas().into_iter().map(|isa| isa.run(function())[0]);
        let other = found
            .into_iter()
            .find(|found| found.to_bits() != portable.to_bits());
        (portable, other.unwrap_or(portable))
    }

    proptest! {
        #[test]
        fn exp_is_close_and_the_same_everywhere(x in -86.9f32..87.9) {
            let (portable, best) = on_both(x, false);
            let exact = f64::from(x).exp();
            prop_assert_eq!(portable.to_bits(), best.to_bits());
            prop_assert!((f64::from(portable) / exact - 1.0).abs() < 1.5e-7, "exp({x}) = {portable}, not {exact}");
        }

        #[test]
        fn silu_is_close_and_the_same_everywhere(x in -60.0f32..60.0) {
            let (portable, best) = on_both(x, true);
            let exact = f64::from(x) / (1.0 + (-f64::from(x)).exp());
            prop_assert_eq!(portable.to_bits(), best.to_bits());
            prop_assert!((f64::from(portable) - exact).abs() <= 5e-7 * exact.abs() + 1e-30, "silu({x}) = {portable}, not {exact}");
        }
    }

    #[test]
    fn the_ends_of_the_range() {
        for (x, expected) in [
            (f32::NEG_INFINITY, 0.0),
            (-1e30, 0.0),
            (-87.5, 0.0),
            (0.0, 1.0),
        ] {
            assert_eq!(on_both(x, false), (expected, expected), "exp({x})");
        }
        let (portable, best) = on_both(f32::NAN, false);
        assert!(portable.is_nan() && best.is_nan());
        let (portable, best) = on_both(f32::NAN, true);
        assert!(portable.is_nan() && best.is_nan());
    }
}
