//! The sampler once more, naively, from its rules: the whole row is sorted, and every step is a loop over it. It takes
//! nothing of the engine but the types of parameters and keys.

use pie_core::sampling::{Key, Params};

const ONE: f64 = 4_398_046_511_104.0;

/// The token that is drawn from a row; none where the mask allows nothing. An empty mask is no restriction.
pub fn drawn(logits: &[f32], params: &Params, mask: &[bool], key: Key) -> Option<u32> {
    let kept = kept(logits, params, mask);
    let total: u128 = kept.iter().map(|&(_, weight)| u128::from(weight)).sum();
    let target = (u128::from(random(key)) * total) >> 64;
    let mut sum = 0;
    let chosen = kept.iter().find(|&&(_, weight)| {
        sum += u128::from(weight);
        sum > target
    });
    chosen.map(|&(token, _)| token)
}

/// The tokens that may be drawn, in the order of their ids, each with its weight: the whole number nearest to 2^42
/// times its probability over that of the most probable one.
pub fn kept(logits: &[f32], params: &Params, mask: &[bool]) -> Vec<(u32, u64)> {
    let is_allowed = |token: usize| mask.is_empty() || mask.get(token) == Some(&true);
    let mut order: Vec<usize> = (0..logits.len()).filter(|&id| is_allowed(id)).collect();
    order.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).unwrap().then(a.cmp(&b)));
    if params.temperature == 0.0 || params.top_k == 1 {
        order.truncate(1);
        return order.iter().map(|&token| (token as u32, 1)).collect();
    }
    let top = order.first().map_or(0.0, |&best| f64::from(logits[best]));
    let weigh =
        |token: usize| weight((f64::from(logits[token]) - top) / f64::from(params.temperature));
    let mut kept: Vec<(u32, u64)> = order
        .iter()
        .map(|&token| (token as u32, weigh(token)))
        .collect();
    if params.top_k > 0 {
        kept.truncate(params.top_k as usize);
    }
    if params.top_p < 1.0 {
        let total: u64 = kept.iter().map(|&(_, weight)| weight).sum();
        let wanted = (f64::from(params.top_p) * total as f64).ceil() as u64;
        let mut sum = 0;
        let n_before = kept.iter().take_while(|&&(_, weight)| {
            let is_short = sum < wanted;
            sum += weight;
            is_short
        });
        let n = n_before.count();
        kept.truncate(n);
    }
    let least = (f64::from(params.min_p) * ONE).ceil() as u64;
    kept.retain(|&(_, weight)| weight >= least);
    kept.sort_unstable_by_key(|&(token, _)| token);
    kept
}

/// `round(2^42 exp(x))` for x <= 0: a Taylor polynomial of degree 13 around the nearest multiple of ln 2, by Horner's
/// rule in doubles. That is the definition, to the bit: `exp` of a library differs between machines.
fn weight(x: f64) -> u64 {
    let x = x.max(-40.0);
    let n = (x * std::f64::consts::LOG2_E).round_ties_even();
    let rest = (x - n * 6.931_471_803_691_238e-1) - n * 1.908_214_929_270_587_7e-10;
    let sum = (0..=13u32).rev().fold(0.0, |sum, power| {
        let factorial: f64 = (1..=power).map(f64::from).product();
        sum * rest + 1.0 / factorial
    });
    (sum * 2f64.powi(n as i32 + 42)).round_ties_even() as u64
}

/// The first two words of a block of Philox4x32-10 at (position, slot, draw, 0) under the seed.
fn random(key: Key) -> u64 {
    let (mut a, mut b, mut c, mut d) = (key.position, key.slot, key.draw, 0u32);
    let (mut low, mut high) = (key.seed as u32, (key.seed >> 32) as u32);
    for _ in 0..10 {
        let (left, right) = (u64::from(a) * 0xd251_1f53, u64::from(c) * 0xcd9e_8d57);
        (a, b, c, d) = (
            (right >> 32) as u32 ^ b ^ low,
            right as u32,
            (left >> 32) as u32 ^ d ^ high,
            left as u32,
        );
        (low, high) = (
            low.wrapping_add(0x9e37_79b9),
            high.wrapping_add(0xbb67_ae85),
        );
    }
    u64::from(a) | u64::from(b) << 32
}
