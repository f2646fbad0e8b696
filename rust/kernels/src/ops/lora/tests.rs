//! What an adapter adds to a row depends on the row, the adapter and the perturbation alone, and is right.

use super::*;
use crate::simd::all_isas;

const N_ROWS: usize = 11;
const SHAPE: LowRankShape = LowRankShape {
    rank: 5,
    n_inputs: 70,
    n_outputs: 301,
};
/// The columns of y before and behind those of the linear.
const COLUMN: usize = 3;
const Y_WIDTH: usize = SHAPE.n_outputs + 8;
const BY: Perturbation = Perturbation {
    a: NoiseStream { seed: 9, number: 4 },
    b: NoiseStream { seed: 9, number: 5 },
    sigma: 0.25,
};

/// Numbers whose bits fit bfloat16.
fn numbers(n: usize, number: u32) -> Vec<f32> {
    let mut out = vec![0.0; n];
    NoiseStream { seed: 1, number }.fill(0, &mut out);
    for value in &mut out {
        *value = f32::from_bits(value.to_bits() & 0xffff_0000);
    }
    out
}

fn change(a: &[f32], b: &[f32], dtype: Dtype) -> LowRank {
    let bytes = |values: &[f32]| -> Vec<u8> {
        match dtype {
            Dtype::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Dtype::Bf16 => (values.iter())
                .flat_map(|x| ((x.to_bits() >> 16) as u16).to_le_bytes())
                .collect(),
        }
    };
    LowRank::new(SHAPE, 0.5, dtype, &bytes(a), &bytes(b)).unwrap()
}

fn factors() -> (Vec<f32>, Vec<f32>) {
    let a = numbers(SHAPE.rank * SHAPE.n_inputs, 2);
    let b = numbers(SHAPE.n_outputs * SHAPE.rank, 3);
    (a, b)
}

/// The bits of y, which was 1 everywhere, after what some rows are changed by.
fn added(change: &LowRank, by: Option<Perturbation>, rows: &[&[u32]], isa: Isa) -> Vec<u32> {
    let x = numbers(N_ROWS * SHAPE.n_inputs, 1);
    let mut y = vec![1.0f32; N_ROWS * Y_WIDTH];
    let groups: Vec<LowRankRows<'_>> = rows
        .iter()
        .map(|rows| LowRankRows {
            change,
            perturbation: by,
            rows,
        })
        .collect();
    let target = Target {
        x: &x,
        x_width: SHAPE.n_inputs,
        y: &mut y,
        y_width: Y_WIDTH,
        column: COLUMN,
    };
    apply(&mut Pool::new(3).unwrap(), isa, &groups, target).unwrap();
    y.into_iter().map(f32::to_bits).collect()
}

fn portable() -> Isa {
    Isa::choose(Isa::PORTABLE).unwrap()
}

#[test]
fn it_is_the_product_of_both_factors() {
    let (a, b) = factors();
    let x = numbers(N_ROWS * SHAPE.n_inputs, 1);
    let found = added(
        &change(&a, &b, Dtype::F32),
        None,
        &[&[0, 2, 3, 7, 10]],
        portable(),
    );
    for row in 0..N_ROWS {
        for at in 0..Y_WIDTH {
            let found = f64::from(f32::from_bits(found[row * Y_WIDTH + at]));
            let is_changed =
                [0, 2, 3, 7, 10].contains(&row) && (COLUMN..COLUMN + SHAPE.n_outputs).contains(&at);
            let mut expected = 1.0;
            let rank = if is_changed { SHAPE.rank } else { 0 };
            for rank_idx in 0..rank {
                let product: f64 = (0..SHAPE.n_inputs)
                    .map(|k| {
                        f64::from(x[row * SHAPE.n_inputs + k])
                            * f64::from(a[rank_idx * SHAPE.n_inputs + k])
                    })
                    .sum();
                expected += 0.5 * product * f64::from(b[(at - COLUMN) * SHAPE.rank + rank_idx]);
            }
            assert!(
                (found - expected).abs() < 1e-3,
                "row {row}, column {at}: {found}, {expected}"
            );
        }
    }
}

#[test]
fn the_bits_of_a_row_depend_on_no_group_thread_or_instruction_set() {
    let (a, b) = factors();
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let change = change(&a, &b, dtype);
        for by in [None, Some(BY)] {
            let rows: Vec<u32> = (0..N_ROWS as u32).collect();
            let alone: Vec<&[u32]> = rows.chunks(1).collect();
            let expected = added(&change, by, &alone, portable());
            for isa in all_isas() {
                for groups in [rows.chunks(N_ROWS), rows.chunks(4), rows.chunks(3)] {
                    let groups: Vec<&[u32]> = groups.collect();
                    assert_eq!(added(&change, by, &groups, isa), expected);
                }
            }
        }
    }
}

#[test]
fn a_perturbation_is_the_sum_of_weights_and_noise() {
    let (mut a, mut b) = factors();
    let perturbed = added(&change(&a, &b, Dtype::Bf16), Some(BY), &[&[4]], portable());
    for (weights, stream) in [(&mut a, BY.a), (&mut b, BY.b)] {
        let mut noise = vec![0.0; weights.len()];
        stream.fill(0, &mut noise);
        for (weight, noise) in weights.iter_mut().zip(noise) {
            *weight += BY.sigma * noise;
        }
    }
    let written = added(&change(&a, &b, Dtype::F32), None, &[&[4]], portable());
    assert_eq!(perturbed, written);
}

#[test]
fn factors_of_another_shape_are_refused() {
    let bytes = vec![0; 4 * SHAPE.rank * SHAPE.n_inputs];
    assert!(LowRank::new(SHAPE, 1.0, Dtype::F32, &bytes, &bytes).is_err());
}
