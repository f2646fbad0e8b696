//! Contents, pools, store and lanes against their oracles.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{TestRunner, contextualize_config};

use super::content::Traits;
use super::modelled_lanes::{N_VARIANTS, Written, content_of, written};
use super::{modelled_lanes, modelled_store};
use crate::batch::Adapter;

/// Runs cases, each of which answers how often things happened; each of them has to happen in some case, for otherwise
/// nothing is proven of it.
fn check<S: Strategy, const N: usize>(
    n_cases: u32,
    cases: &S,
    run: impl Fn(S::Value) -> Result<[u64; N], TestCaseError>,
) {
    let config = ProptestConfig {
        max_shrink_iters: 20_000,
        source_file: Some(file!()),
        ..ProptestConfig::with_cases(n_cases)
    };
    let all = RefCell::new([0; N]);
    let outcome = TestRunner::new(contextualize_config(config)).run(cases, |case| {
        for (sum, n) in all.borrow_mut().iter_mut().zip(run(case)?) {
            *sum += n;
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let all = all.into_inner();
    assert!(all.iter().all(|&n| n > 0), "{all:?}");
}

#[test]
fn lanes_read_back_what_was_written() {
    let cases = (
        modelled_lanes::sizes(),
        prop::collection::vec(modelled_lanes::op(), 1..120),
    );
    check(2000, &cases, |(sizes, ops)| modelled_lanes::run(sizes, ops));
}

#[test]
fn the_store_keeps_what_was_written() {
    let cases = (
        modelled_store::sizes(),
        prop::collection::vec(modelled_store::op(), 1..120),
    );
    check(2000, &cases, |(sizes, ops)| modelled_store::run(sizes, ops));
}

/// Slots from `first` on, nearly alike.
fn slots(first: u32) -> impl Strategy<Value = Vec<Written>> {
    let variants = prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => 0..N_VARIANTS], 0..6);
    variants.prop_map(move |variants| {
        (first..)
            .zip(variants)
            .map(|(slot, variant)| written(slot, variant))
            .collect()
    })
}

proptest! {
    #[test]
    fn pools_give_each_thing_out_once(
        sizes in modelled_store::sizes(), ops in prop::collection::vec(modelled_store::pool_op(), 1..80),
    ) {
        modelled_store::run_pools(sizes, ops)?;
    }

    #[test]
    fn contents_are_equal_exactly_when_all_that_was_written_is(left in slots(3), right in slots(3)) {
        let (one, other) = (content_of(&left, 3), content_of(&right, 3));
        prop_assert_eq!(one == other, left == right);
        for (index, (token, traits)) in (0..).zip(&left) {
            prop_assert_eq!(one.tokens()[index as usize], *token);
            prop_assert_eq!(&one.traits(index, 3 + index), traits);
        }
        let plain = left.iter().zip(3..).all(|((_, traits), slot)| *traits == Traits::plain(slot));
        prop_assert_eq!(one.is_plain(), plain);
    }

    /// However a content came about, it is the one that is written at once.
    #[test]
    fn contents_have_one_form(all in slots(3), cut in 0usize..7, from in 0usize..7, n_pushed in 0u32..4, variant in 0..N_VARIANTS) {
        let (cut, from) = (cut.min(all.len()), from.min(all.len()));
        let whole = content_of(&all, 3);
        let mut joined = content_of(&all[..cut], 3);
        joined.extend(&whole, cut as u32..whole.len() + 2, 3);
        prop_assert_eq!(&joined, &whole);
        prop_assert_eq!(whole.part(from as u32..whole.len() + 2, 3), content_of(&all[from..], 3 + from as u32));
        joined.truncate(from as u32, 3);
        prop_assert_eq!(&joined, &content_of(&all[..from], 3));
        let mut pushed = all[..from].to_vec();
        let adapter = written(0, variant).1.adapter;
        for (index, token) in (0..).zip(0..n_pushed) {
            let slot = 3 + joined.len();
            let adapter = if index == 0 { Adapter::default() } else { adapter };
            joined.push(token, adapter, slot);
            pushed.push((token, Traits { adapter, ..Traits::plain(slot) }));
        }
        prop_assert_eq!(&joined, &content_of(&pushed, 3));
        for (_, traits) in &mut pushed {
            traits.adapter = adapter;
        }
        prop_assert_eq!(joined.with_adapter(adapter, 3), content_of(&pushed, 3));
    }
}
