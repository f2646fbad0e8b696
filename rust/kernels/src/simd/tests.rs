//! Every lane operation gives the same bits on every instruction set.

use proptest::prelude::*;

use super::{Isa, Kernel, LANES, Portable, Simd, all_isas};

/// All operations on one set of operands: a row of result bits for each.
struct Everything {
    a: [f32; LANES],
    b: [f32; LANES],
    c: [f32; LANES],
    n: usize,
}

/// NaN of any payload is one value here: which of two payloads survives is not promised.
fn bits(x: f32) -> u32 {
    if x.is_nan() {
        f32::NAN.to_bits()
    } else {
        x.to_bits()
    }
}

/// `dot_bf16` in the environment that it needs; its operands are read inside.
#[inline(always)]
fn dot_bf16<S: Simd>(s: S, acc: &[f32; LANES], x: u32, w: &[u32; LANES]) -> S::V {
    s.flushing(
        #[inline(always)]
        || s.dot_bf16(s.load(acc), x, s.load_words(w)),
    )
}

impl Kernel for Everything {
    type Output = Vec<Vec<u32>>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Vec<Vec<u32>> {
        let (a, b, c) = (s.load(&self.a), s.load(&self.b), s.load(&self.c));
        let words = s.load_words(&self.b.map(f32::to_bits));
        let some = s.load_some(&self.a[..self.n]);
        let halves: [u16; LANES] = self.a.map(|x| (x.to_bits() >> 16) as u16);
        let vectors = [
            s.add(a, b),
            s.sub(a, b),
            s.mul(a, b),
            s.div(a, b),
            s.fma(a, b, c),
            s.max(a, b),
            s.min(a, b),
            s.zero_below(a, b, c),
            some,
            s.load_bf16_some(&halves[..self.n]),
            s.dot_f32(c, self.a[0].to_bits(), words),
            dot_bf16(s, &self.c, self.a[0].to_bits(), &self.b.map(f32::to_bits)),
            s.splat(self.a[1]),
        ];
        let mut rows: Vec<Vec<u32>> = vectors
            .into_iter()
            .map(|v| {
                let mut lanes = [0.0; LANES];
                s.store(v, &mut lanes);
                lanes.iter().map(|&x| bits(x)).collect()
            })
            .collect();
        let mut partial = [7.0; LANES];
        s.store_some(a, &mut partial[..self.n]);
        rows.push(partial.iter().map(|&x| bits(x)).collect());
        let mut narrow = [7u16; LANES];
        s.store_bf16_some(a, &mut narrow[..self.n]);
        rows.push(
            narrow
                .iter()
                .map(|&x| bits(f32::from_bits(u32::from(x) << 16)))
                .collect(),
        );
        rows.push(vec![bits(s.sum(a)), bits(s.greatest(a))]);
        rows
    }
}

/// Floats of all kinds; denormals and the edge of the normal range far more often than chance.
fn any_float() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => any::<u32>().prop_map(f32::from_bits),
        4 => -4.0f32..4.0,
        2 => (0u32..0x0100_0010, any::<bool>()).prop_map(|(bits, sign)| f32::from_bits(bits | u32::from(sign) << 31)),
        1 => Just(0.0f32),
        1 => Just(-0.0f32),
    ]
}

fn lanes() -> impl Strategy<Value = [f32; LANES]> {
    prop::collection::vec(any_float(), LANES).prop_map(|v| std::array::from_fn(|lane| v[lane]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn all_instruction_sets_agree(a in lanes(), b in lanes(), c in lanes(), n in 0..=LANES) {
        let expected = Portable.vectorize(|| Everything { a, b, c, n }.run(Portable));
        for isa in all_isas() {
            let found = isa.run(Everything { a, b, c, n });
            prop_assert_eq!(&expected, &found, "instruction set {}", isa.code());
        }
    }
}

/// A bfloat16 pair and an accumulator; returns the first lane.
struct Pair {
    acc: f32,
    x: u32,
    w: u32,
}

impl Kernel for Pair {
    type Output = u32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> u32 {
        let mut lanes = [0.0; LANES];
        s.store(
            dot_bf16(s, &[self.acc; LANES], self.x, &[self.w; LANES]),
            &mut lanes,
        );
        lanes[0].to_bits()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Sums around the least normal number, where flushing and rounding meet.
    #[test]
    fn bfloat16_products_agree_at_the_edge_of_the_normal_range(
        acc in 0x007f_fff0u32..0x0080_0010, minus in any::<bool>(),
        x in 0x3f80u32..0x4080, w in 0x0001u32..0x0180, x_even in 0x3000u32..0x4000, w_even in 0x0080u32..0x1000, sign in any::<bool>(),
    ) {
        let acc = f32::from_bits(acc | u32::from(minus) << 31);
        let (x, w) = (x << 16 | x_even, (w | u32::from(sign) << 15) << 16 | w_even);
        let expected = Pair { acc, x, w }.run(Portable);
        for isa in all_isas() {
            prop_assert_eq!(expected, isa.run(Pair { acc, x, w }), "instruction set {}", isa.code());
        }
    }
}

#[test]
fn an_unknown_instruction_set_is_an_error() {
    assert!(Isa::choose(9).is_err());
    assert_eq!(Isa::choose(Isa::PORTABLE).unwrap().code(), Isa::PORTABLE);
}

#[test]
fn the_instruction_sets_of_this_cpu_answer_with_their_codes() {
    for code in [Isa::PORTABLE, Isa::AVX512, Isa::AVX2] {
        match Isa::choose(code) {
            Ok(isa) => assert_eq!(isa.code(), code),
            Err(error) => assert!(error.message.contains("portable"), "{}", error.message),
        }
    }
}

struct Across([f32; LANES]);

impl Kernel for Across {
    type Output = (f32, f32);

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> (f32, f32) {
        let v = s.load(&self.0);
        (s.sum(v), s.greatest(v))
    }
}

#[test]
fn all_lanes_are_summed_and_compared() {
    for isa in all_isas() {
        for greatest in 0..LANES {
            let mut lanes = [-1.0; LANES];
            lanes[greatest] = 40.0;
            assert_eq!(isa.run(Across(lanes)), (25.0, 40.0), "lane {greatest}");
        }
    }
}
