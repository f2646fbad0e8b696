//! The rows of passes, as they are planned, answered and cut.

use proptest::prelude::*;

use super::*;

fn read(slot: u32, seed: u64) -> Read {
    Read {
        slot,
        params: Params::ARGMAX,
        key: Key {
            seed,
            position: slot + 1,
            slot: 0,
            draw: 0,
        },
        n_draws: 1,
        mask: None,
        is_late: false,
        probes: None,
    }
}

fn late(slot: u32) -> Read {
    Read {
        is_late: true,
        ..read(slot, 1)
    }
}

fn row<'a>(tokens: &'a [u32], kept: Option<&'a Arc<[f32]>>) -> RowResult<'a> {
    RowResult {
        tokens,
        readings: &[],
        kept,
    }
}

// rows: RS-071
#[test]
fn a_late_row_is_kept_until_its_mask_comes_and_its_tokens_stand_in_their_place() {
    let mut reads = Reads::new(vec![late(7), read(3, 2), late(5)]);
    let values: Arc<[f32]> = Arc::from([1.0, 2.0]);
    let (mask, other): (Arc<[u32]>, Arc<[u32]>) = (Arc::from([1, 1]), Arc::from([0, 1]));
    assert_eq!(reads.give_mask(3, mask.clone()), Err(MaskFault::NoRow));
    assert_eq!(reads.give_mask(1, mask.clone()), Err(MaskFault::NotLate));
    let kept = row(&[], Some(&values));
    let rows = [row(&[9], None), kept, kept];
    reads.answer(rows.into_iter());
    assert!(reads.is_done() && reads.next_draw().is_none());
    assert_eq!((reads.n_late(), reads.drawn()), (2, &[9][..]));
    assert_eq!(reads.give_mask(0, mask.clone()), Ok(()));
    assert_eq!(reads.give_mask(0, other.clone()), Err(MaskFault::Given));
    let (place, kept, how) = reads.next_draw().unwrap();
    assert_eq!(
        (place, kept, how.mask.clone()),
        (2, values.clone(), Some(mask))
    );
    assert!(reads.next_draw().is_none(), "it is drawn from once");
    assert!(reads.answer_late(2, &[4]));
    assert!(!reads.answer_late(2, &[4]));
    assert_eq!(reads.give_mask(2, other), Ok(()));
    assert_eq!(reads.next_draw().unwrap().0, 1);
    assert!(reads.answer_late(1, &[6, 8]));
    assert_eq!((reads.n_late(), reads.drawn()), (0, &[9, 6, 8, 4][..]));
    let outputs = reads.into_outputs();
    let tokens: Vec<&[u32]> = outputs.iter().map(|output| &output.tokens[..]).collect();
    assert_eq!(tokens, [&[4][..], &[9], &[6, 8]]);
    assert!(outputs.iter().all(|output| output.readings.is_empty()));
}

// rows: RS-071
#[test]
fn a_mask_that_comes_in_time_leaves_nothing_to_keep() {
    let mut reads = Reads::one(late(4));
    assert!(reads.within(0..5)[0].awaits_mask());
    assert_eq!(reads.give_mask(0, Arc::from([2, 1])), Ok(()));
    assert!(!reads.within(0..5)[0].awaits_mask());
    reads.answer([row(&[2], None)].into_iter());
    assert_eq!((reads.n_late(), reads.drawn()), (0, &[2][..]));
    assert!(!reads.follow(5), "its mask is that of one row");
}

// rows: RS-066
#[test]
fn what_follows_a_row_is_drawn_alike_one_slot_on() {
    let mask: Arc<[u32]> = Arc::from([1, 2]);
    let first = Read {
        mask: Some(mask),
        ..read(4, 9)
    };
    let expected = Read {
        mask: first.mask.clone(),
        ..read(5, 9)
    };
    assert_eq!(first.following(), expected);
}

// rows: RS-083
#[test]
fn one_row_is_read_once() {
    let mut reads = Reads::one(read(9, 3));
    assert_eq!((reads.next_slot(), reads.is_done()), (Some(9), false));
    assert_eq!(reads.within(0..9), &[]);
    assert_eq!(reads.within(0..10), &[read(9, 3)]);
    let rows = |tokens: &'static [u32]| [row(tokens, None)].into_iter();
    reads.answer(rows(&[5]));
    reads.answer(rows(&[6]));
    assert_eq!((reads.drawn(), reads.is_done()), (&[5][..], true));
    assert_eq!(
        (reads.within(0..10), reads.last()),
        (&[][..], Some(&read(9, 3)))
    );
    let output = RowOutput {
        tokens: vec![5],
        readings: Vec::new(),
    };
    assert_eq!(reads.into_outputs(), [output]);
}

// rows: RS-066
#[test]
fn what_follows_is_drawn_alike_and_not_answered() {
    let mut one = Reads::one(read(9, 3));
    one.answer([row(&[5], None)].into_iter());
    assert!(one.follow(10));
    assert_eq!(one.within(0..20), &[read(10, 3)]);
    assert!(one.drawn().is_empty());
    assert!(!Reads::new(vec![read(4, 1), read(9, 3)]).follow(10));
    assert!(!Reads::None.follow(10));
}

// rows: RS-093..094 RS-101
#[test]
fn rows_are_answered_in_the_order_of_their_tokens_and_told_in_that_of_the_program() {
    let mut reads = Reads::new(vec![read(7, 1), read(3, 2), read(7, 3)]);
    let readings = [Reading::Entropy(1.0)];
    let first = RowResult {
        readings: &readings,
        ..row(&[1, 2], None)
    };
    reads.answer([first].into_iter());
    assert_eq!((reads.next_slot(), reads.drawn()), (Some(7), &[1, 2][..]));
    reads.answer([row(&[], None), row(&[4], None), row(&[5], None)].into_iter());
    assert!(reads.is_done());
    let outputs = reads.into_outputs();
    let tokens: Vec<&[u32]> = outputs.iter().map(|output| &output.tokens[..]).collect();
    assert_eq!(tokens, [&[][..], &[1, 2], &[4]]);
    // The one at 3 reads nothing: only what was asked for is told.
    assert!(outputs.iter().all(|output| output.readings.is_empty()));
}

// rows: RS-094 RS-126
#[test]
fn what_is_read_of_a_token_is_read_of_one_row() {
    let entropy = [Probe::Entropy];
    let probing = |slot, probes: &[Probe]| Read {
        n_draws: 0,
        probes: Some(Arc::from(probes)),
        ..read(slot, 0)
    };
    let drawing = Read {
        n_draws: 1,
        ..probing(7, &[Probe::Logits])
    };
    let asked = [
        probing(7, &entropy),
        read(7, 5),
        drawing,
        probing(3, &[Probe::Entropy, Probe::Logits]),
        probing(3, &entropy),
        late(3),
    ];
    let mut reads = Reads::new(asked.to_vec());
    let rows = reads.within(0..8);
    let all = |read: &Read| read.probes.as_deref().unwrap_or_default().to_vec();
    let (logits, entropies) = (Probe::Logits, Probe::Entropy);
    assert_eq!(
        rows.iter().map(|row| row.slot).collect::<Vec<_>>(),
        [3, 7, 7]
    );
    assert_eq!(
        all(&rows[0]),
        [entropies.clone(), logits.clone(), entropies.clone()]
    );
    assert_eq!(
        (all(&rows[1]), all(&rows[2])),
        (vec![entropies, logits], vec![])
    );
    assert!(rows[0].is_late);
    let mask: Arc<[u32]> = Arc::from([0, 1]);
    assert_eq!(reads.give_mask(3, mask.clone()), Err(MaskFault::NotLate));
    assert_eq!(reads.give_mask(5, mask), Ok(()));
    let (one, two) = (
        [1.0, 2.0, 3.0].map(Reading::Entropy),
        [4.0, 5.0].map(Reading::Entropy),
    );
    let rows = [(&[9][..], &one[..]), (&[8], &two), (&[6], &[])];
    let rows = rows.map(|(tokens, readings)| RowResult {
        readings,
        ..row(tokens, None)
    });
    reads.answer(rows.into_iter());
    let outputs = reads.into_outputs();
    let output = |tokens: &[u32], readings: &[Reading]| RowOutput {
        tokens: tokens.to_vec(),
        readings: readings.to_vec(),
    };
    let expected = [
        output(&[], &two[..1]),
        output(&[8], &[]),
        output(&[6], &two[1..]),
        output(&[], &one[..2]),
        output(&[], &one[2..]),
        output(&[9], &[]),
    ];
    assert_eq!(outputs, expected);
}

// rows: RS-094
#[test]
fn the_hidden_state_of_a_token_is_a_row_of_its_own() {
    let probes: Arc<[Probe]> = Arc::from([Probe::Entropy, Probe::Embedding]);
    let both = Read {
        probes: Some(probes),
        ..read(4, 1)
    };
    let mut reads = Reads::one(both.clone());
    assert_eq!(reads.last(), Some(&both));
    let kept: Vec<Keep> = reads.within(0..9).iter().map(Read::kept).collect();
    assert_eq!(kept, [Keep::Embedding, Keep::Logits]);
    let (entropy, state) = (
        [Reading::Entropy(1.0)],
        [Reading::Embedding(Arc::from([2.0]))],
    );
    let rows = [(&[][..], &state[..]), (&[7], &entropy)];
    let rows = rows.map(|(tokens, readings)| RowResult {
        readings,
        ..row(tokens, None)
    });
    reads.answer(rows.into_iter());
    assert_eq!((reads.drawn(), reads.is_done()), (&[7][..], true));
    assert!(!Reads::one(both.clone()).follow(5));
    let readings = [entropy, state].concat();
    let tokens = vec![7];
    assert_eq!(reads.into_outputs(), [RowOutput { tokens, readings }]);
    // One that is nothing else is one row.
    let alone = Read {
        n_draws: 0,
        probes: Some(Arc::from([Probe::Embedding])),
        ..both
    };
    assert_eq!(Reads::one(alone.clone()).within(0..9), [alone]);
}

proptest! {
    /// Rows lie by their slots, those of one token in the order of the program, and every one is within one of two
    /// neighbouring chunks.
    // rows: RS-093..094
    #[test]
    fn rows_lie_by_their_slots(slots in prop::collection::vec(0u32..12, 0..20), cut in 0u32..13) {
        let asked: Vec<Read> = slots.iter().zip(0..).map(|(&slot, seed)| read(slot, seed)).collect();
        let reads = Reads::new(asked.clone());
        let mut expected = asked;
        expected.sort_by_key(|read| (read.slot, read.key.seed));
        prop_assert_eq!(reads.next_slot(), expected.first().map(|read| read.slot));
        prop_assert_eq!(reads.last(), expected.last());
        let both = [reads.within(0..cut), reads.within(cut..12)].concat();
        prop_assert_eq!(&both, &expected);
        prop_assert!(reads.within(0..cut).iter().all(|read| read.slot < cut));
    }
}
