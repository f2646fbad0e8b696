//! Every output of a linear depends on its own row and column alone, and is right.

use proptest::prelude::*;

use super::*;
use crate::simd::all_isas;

/// Repeatable numbers in -1..1 whose bits fill the mantissa.
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1u64 << 23) as f32) - 1.0
        })
        .collect()
}

/// The numbers as the linear stores them, and their words.
fn stored(x: &[f32], dtype: Dtype) -> (Vec<f32>, Vec<u8>) {
    match dtype {
        Dtype::F32 => (x.to_vec(), x.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Dtype::Bf16 => {
            let halves: Vec<u16> = x.iter().map(|x| (x.to_bits() >> 16) as u16).collect();
            let widened = halves
                .iter()
                .map(|&half| f32::from_bits(u32::from(half) << 16))
                .collect();
            (
                widened,
                halves.iter().flat_map(|half| half.to_le_bytes()).collect(),
            )
        }
    }
}

struct Case {
    linear: Linear,
    w: Vec<f32>,
    x: Vec<f32>,
    x_words: Vec<u32>,
}

fn case(m: usize, n: usize, k: usize, dtype: Dtype) -> Case {
    let (w, w_bytes) = stored(&numbers(n * k, 1), dtype);
    let (x, x_bytes) = stored(&numbers(m * k, 2), dtype);
    let linear = Linear::pack(
        &[Part {
            bytes: &w_bytes,
            n_rows: n,
            dtype,
        }],
        k,
        dtype,
    )
    .unwrap();
    let x_words = x_bytes
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    Case {
        linear,
        w,
        x,
        x_words,
    }
}

fn apply(case: &Case, rows: std::ops::Range<usize>, n_threads: usize, isa: u32) -> Vec<u32> {
    let n = case.linear.n_outputs();
    let words = n_words(case.linear.n_inputs(), case.linear.dtype());
    let mut y = vec![0.0; rows.len() * n];
    let mut pool = Pool::new(n_threads).unwrap();
    let outputs = Outputs {
        y: &mut y,
        stride: n,
        accumulate: false,
    };
    case.linear
        .apply(
            &mut pool,
            Isa::choose(isa).unwrap(),
            &case.x_words[rows.start * words..],
            rows.len(),
            outputs,
        )
        .unwrap();
    y.iter().map(|y| y.to_bits()).collect()
}

fn check_invariance(isa: u32, m: usize, n: usize, k: usize, dtype: Dtype) {
    let case = case(m, n, k, dtype);
    let whole = apply(&case, 0..m, 2, isa);
    for n_rows in (1..=m.min(64)).chain([m]) {
        for start in [0, m - n_rows] {
            let some = apply(&case, start..start + n_rows, 1 + n_rows % 2, isa);
            assert_eq!(
                some,
                whole[start * n..(start + n_rows) * n],
                "{isa} {dtype:?} {n}x{k}: rows {start}..{} of {m}",
                start + n_rows
            );
        }
    }
}

#[test]
fn rows_do_not_depend_on_the_batch_or_the_threads() {
    for dtype in [Dtype::Bf16, Dtype::F32] {
        for (n, k) in [(64, 64), (200, 258), (512, 384)] {
            check_invariance(Isa::AUTO, 512, n, k, dtype);
            if Isa::choose(Isa::AVX2).is_ok() {
                check_invariance(Isa::AVX2, 512, n, k, dtype);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_result_is_close_to_an_exact_sum_and_the_same_on_every_instruction_set(
        m in 1usize..130, n in 1usize..200, half_k in 1usize..150, bf16 in any::<bool>(),
    ) {
        let (k, dtype) = (2 * half_k, if bf16 { Dtype::Bf16 } else { Dtype::F32 });
        let case = case(m, n, k, dtype);
        let best = apply(&case, 0..m, 2, Isa::AUTO);
        for isa in all_isas() {
            prop_assert_eq!(&best, &apply(&case, 0..m, 1, isa.code()), "instruction set {}", isa.code());
        }
        for (r, row) in best.chunks_exact(n).enumerate() {
            for (c, &found) in row.iter().enumerate() {
                let pairs = case.x[r * k..][..k].iter().zip(&case.w[c * k..][..k]);
                let exact: f64 = pairs.map(|(&x, &w)| f64::from(x) * f64::from(w)).sum();
                prop_assert!((f64::from(f32::from_bits(found)) - exact).abs() < 1e-6 * k as f64, "row {r}, column {c}");
            }
        }
    }
}

#[test]
fn accumulating_adds_to_what_stands_there() {
    let case = case(3, 70, 32, Dtype::F32);
    let plain = apply(&case, 0..3, 1, Isa::AUTO);
    let mut y = vec![1.5; 3 * 70];
    let outputs = Outputs {
        y: &mut y,
        stride: 70,
        accumulate: true,
    };
    case.linear
        .apply(
            &mut Pool::new(1).unwrap(),
            Isa::choose(Isa::AUTO).unwrap(),
            &case.x_words,
            3,
            outputs,
        )
        .unwrap();
    for (sum, plain) in y.iter().zip(plain) {
        assert_eq!(*sum, 1.5 + f32::from_bits(plain));
    }
}

#[test]
fn parts_are_stacked_and_widened() {
    let values = numbers(5 * 4, 3);
    let (widened, halves) = stored(&values, Dtype::Bf16);
    let (_, floats) = stored(&widened, Dtype::F32);
    let parts = [
        Part {
            bytes: &halves[..24],
            n_rows: 3,
            dtype: Dtype::Bf16,
        },
        Part {
            bytes: &floats[32..],
            n_rows: 3,
            dtype: Dtype::F32,
        },
    ];
    let linear = Linear::pack(&parts, 4, Dtype::F32).unwrap();
    let x: Vec<u32> = [1.0f32, 0.0, 0.0, 0.0]
        .iter()
        .map(|x| x.to_bits())
        .collect();
    let mut y = vec![0.0; 6];
    let outputs = Outputs {
        y: &mut y,
        stride: 6,
        accumulate: false,
    };
    linear
        .apply(
            &mut Pool::new(1).unwrap(),
            Isa::choose(Isa::AUTO).unwrap(),
            &x,
            1,
            outputs,
        )
        .unwrap();
    assert_eq!(y, [0, 1, 2, 2, 3, 4].map(|row| widened[row * 4]));
}

#[test]
fn what_does_not_fit_is_refused() {
    let bytes = [0u8; 24];
    let part = |n_rows, dtype| {
        [Part {
            bytes: &bytes,
            n_rows,
            dtype,
        }]
    };
    assert!(Linear::pack(&part(3, Dtype::Bf16), 4, Dtype::Bf16).is_ok());
    assert!(Linear::pack(&part(2, Dtype::Bf16), 4, Dtype::Bf16).is_err());
    assert!(Linear::pack(&part(4, Dtype::Bf16), 3, Dtype::Bf16).is_err());
    assert!(Linear::pack(&part(2, Dtype::F32), 3, Dtype::Bf16).is_err());
    assert!(Linear::pack(&part(0, Dtype::F32), 4, Dtype::F32).is_err());
}

/// Weights and inputs of denormals and of numbers around the least normal one, where flushing and rounding meet.
#[test]
fn denormals_are_the_same_on_every_instruction_set() {
    let (m, n, k) = (7, 70, 260);
    let tiny = |len: usize, seed: u64| -> Vec<u8> {
        numbers(len, seed)
            .iter()
            .flat_map(|x| {
                ((((x.to_bits() >> 9) & 0x01ff) | (x.to_bits() >> 16 & 0x8000)) as u16)
                    .to_le_bytes()
            })
            .collect()
    };
    let mut bytes = tiny(n * k, 1);
    // Every fifth weight is about one, so that products of denormals do not all vanish.
    for pair in bytes.chunks_exact_mut(2).step_by(5) {
        pair[1] = 0x3f;
    }
    let part = Part {
        bytes: &bytes,
        n_rows: n,
        dtype: Dtype::Bf16,
    };
    let linear = Linear::pack(&[part], k, Dtype::Bf16).unwrap();
    let x_words: Vec<u32> = tiny(m * k, 2)
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let case = Case {
        linear,
        w: Vec::new(),
        x: Vec::new(),
        x_words,
    };
    let expected = apply(&case, 0..m, 1, Isa::PORTABLE);
    assert!(
        expected.iter().any(|&y| y << 1 != 0),
        "some sums are not zero"
    );
    for isa in all_isas() {
        assert_eq!(expected, apply(&case, 0..m, 2, isa.code()));
    }
}
