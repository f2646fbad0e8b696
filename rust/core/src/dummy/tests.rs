//! What the dummy driver must notice, and what it must not.

use super::*;
use crate::batch::{Adapter, ArenaBuilder, Masks, Pages, Positions, Row, Sequence};
use crate::ids::{BatchId, ContextId, HostSlot, PageId, RequestId};
use crate::sampling::{Key, Params};

const V: u32 = 11;

const KEY: Key = Key {
    seed: 0,
    position: 0,
    slot: 0,
    draw: 0,
};

fn driver() -> Driver {
    Driver::new("m", V, 8, 4)
}

/// Runs one sequence that asks for the row of its last token.
fn run(
    driver: &mut Driver,
    tokens: &[u32],
    before: u32,
    pages: &[u32],
    reread: bool,
) -> Result<Computed, DriverFailure> {
    let mut builder = ArenaBuilder::new(4);
    let pages: Vec<PageId> = pages.iter().copied().map(PageId).collect();
    builder.add_sequence(&Sequence {
        context: ContextId(1),
        request: RequestId(1),
        tokens,
        positions: Positions::From(before),
        masks: Masks::Causal,
        adapter: Adapter::default(),
        media: 0,
        pages: Pages::default(),
        last_pages: &pages,
        replaced: None,
        length: before + tokens.len() as u32,
        reread,
        follows: None,
    });
    builder.add_row(&Row {
        token_idx: tokens.len() as u32 - 1,
        params: Params::ARGMAX,
        key: KEY,
        n_draws: 1,
        mask: &[],
        keep: Keep::Draws,
    });
    driver.run(&builder.finish(BatchId(1)))
}

#[test]
fn chunks_and_pages_do_not_matter() {
    let whole = run(&mut driver(), &[1, 2, 3, 4, 5, 6], 0, &[0, 1], false).unwrap();
    assert_eq!(whole.logits.len(), V as usize);
    assert!(whole.logits.iter().all(|logit| (-8.0..8.0).contains(logit)));
    let mut other = driver();
    run(&mut other, &[1, 2, 3], 0, &[5], false).unwrap();
    run(&mut other, &[4, 5], 3, &[5, 2], false).unwrap();
    assert_eq!(run(&mut other, &[6], 5, &[5, 2], false).unwrap(), whole);
}

#[test]
fn tokens_order_model_and_stale_slots_matter() {
    let whole = run(&mut driver(), &[1, 2, 3], 0, &[0], false).unwrap();
    assert_ne!(
        run(&mut driver(), &[2, 1, 3], 0, &[0], false).unwrap(),
        whole
    );
    assert_ne!(
        run(&mut Driver::new("n", V, 8, 4), &[1, 2, 3], 0, &[0], false).unwrap(),
        whole
    );
    let mut stale = driver();
    run(&mut stale, &[1, 7], 0, &[0], false).unwrap();
    assert_ne!(run(&mut stale, &[3], 2, &[0], false).unwrap(), whole);
}

#[test]
fn a_reread_gives_the_same_row_and_writes_nothing() {
    let mut driver = driver();
    let row = run(&mut driver, &[1, 2, 3], 0, &[0], false).unwrap();
    assert_eq!(run(&mut driver, &[3], 2, &[0], true).unwrap(), row);
    // Another token at the slot shows that the slot keeps what it held.
    assert_ne!(run(&mut driver, &[4], 2, &[0], true).unwrap(), row);
    let next = run(&mut driver, &[9], 3, &[0], false).unwrap();
    let mut undisturbed = self::driver();
    run(&mut undisturbed, &[1, 2, 3], 0, &[0], false).unwrap();
    assert_eq!(run(&mut undisturbed, &[9], 3, &[0], false).unwrap(), next);
}

/// Pages of `tokens` from page 0 on, every row of one token wanted once.
fn add(builder: &mut ArenaBuilder, tokens: &[u32], before: u32, pages: &[u32], masks: Masks<'_>) {
    let pages: Vec<PageId> = pages.iter().copied().map(PageId).collect();
    builder.add_sequence(&Sequence {
        context: ContextId(1),
        request: RequestId(1),
        tokens,
        positions: Positions::From(before),
        masks,
        adapter: Adapter::default(),
        media: 0,
        pages: Pages::default(),
        last_pages: &pages,
        replaced: None,
        length: before + tokens.len() as u32,
        reread: false,
        follows: None,
    });
    for token_idx in 0..tokens.len() as u32 {
        builder.add_row(&Row {
            token_idx,
            params: Params::ARGMAX,
            key: KEY,
            n_draws: 1,
            mask: &[],
            keep: Keep::Draws,
        });
    }
}

fn row_of(computed: &Computed, row: usize) -> &[f32] {
    &computed.logits[row * V as usize..][..V as usize]
}

#[test]
fn every_row_that_is_wanted_is_that_of_its_token() {
    let mut builder = ArenaBuilder::new(4);
    add(&mut builder, &[1, 2, 3], 0, &[0], Masks::Causal);
    let whole = driver().run(&builder.finish(BatchId(1))).unwrap();
    for n in 1..=3 {
        let prefix = run(&mut driver(), &[1, 2, 3][..n], 0, &[0], false).unwrap();
        assert_eq!(row_of(&whole, n - 1), prefix.logits);
    }
}

#[test]
fn a_mask_hides_what_it_forbids_and_nothing_else() {
    let last = |first: u32, mask: &[u32]| {
        let mut builder = ArenaBuilder::new(4);
        let masks: [&[u32]; 3] = [&[], &[1, 1], mask];
        add(&mut builder, &[first, 2, 3], 0, &[0], Masks::List(&masks));
        let computed = driver().run(&builder.finish(BatchId(1))).unwrap();
        row_of(&computed, 2).to_vec()
    };
    assert_eq!(last(1, &[1, 2]), last(9, &[1, 2]));
    assert_ne!(last(1, &[]), last(9, &[]));
    assert_eq!(last(1, &[]), last(1, &[0, 3]));
    assert_ne!(last(1, &[0, 2]), last(1, &[0, 3]), "itself");
}

#[test]
fn positions_adapters_and_media_matter() {
    let row = |positions: Positions<'_>, adapter: Adapter, media: u64| {
        let mut builder = ArenaBuilder::new(4);
        builder.add_sequence(&Sequence {
            context: ContextId(1),
            request: RequestId(1),
            tokens: &[1, 2],
            positions,
            masks: Masks::Causal,
            adapter,
            media,
            pages: Pages::default(),
            last_pages: &[PageId(0)],
            replaced: None,
            length: 2,
            reread: false,
            follows: None,
        });
        builder.add_row(&Row {
            token_idx: 1,
            params: Params::ARGMAX,
            key: KEY,
            n_draws: 1,
            mask: &[],
            keep: Keep::Draws,
        });
        driver().run(&builder.finish(BatchId(1))).unwrap().logits
    };
    let adapter = |id, version, zo_seed| Adapter {
        id,
        version,
        zo_seed,
    };
    let none = Adapter::default();
    let rows = [
        row(Positions::From(0), none, 0),
        row(Positions::From(1), none, 0),
        row(Positions::List(&[0, 0]), none, 0),
        row(Positions::List(&[1, 0]), none, 0),
        row(Positions::From(0), adapter(1, 0, None), 0),
        row(Positions::From(0), adapter(1, 1, None), 0),
        row(Positions::From(0), adapter(1, 0, Some(0)), 0),
        row(Positions::From(0), adapter(1, 0, Some(1)), 0),
        row(Positions::From(0), none, 1),
    ];
    for (index, row) in rows.iter().enumerate() {
        assert!(!rows[..index].contains(row), "{index}");
    }
    assert_eq!(rows[0], row(Positions::List(&[0, 1]), none, 0));
}

#[test]
fn swaps_and_copies_are_made_in_order_before_anything_is_computed() {
    let mut driver = driver().with_host_pages(3);
    let next = |driver: &mut Driver, pages: &[u32]| run(driver, &[7], 4, pages, false).unwrap();
    let mut alone = self::driver();
    run(&mut alone, &[1, 2, 3, 4], 0, &[0], false).unwrap();
    let expected = next(&mut alone, &[0, 1]);

    run(&mut driver, &[1, 2, 3, 4], 0, &[0], false).unwrap();
    let mut builder = ArenaBuilder::new(4);
    builder.add_swap_out(PageId(0), HostSlot(2));
    // The page that was swapped out is written by the same batch.
    add(&mut builder, &[5, 6, 5, 6], 0, &[0], Masks::Causal);
    driver.run(&builder.finish(BatchId(1))).unwrap();
    assert_ne!(next(&mut driver, &[0, 1]), expected);
    // Back to another page, and from there to a third, while the first goes out: a batch of copies alone.
    builder.add_copy(PageId(3), PageId(4));
    builder.add_swap_in(HostSlot(2), PageId(3));
    builder.add_swap_out(PageId(3), HostSlot(0));
    builder.add_swap_out(PageId(0), HostSlot(1));
    let nothing = driver.run(&builder.finish(BatchId(2))).unwrap();
    assert!(nothing.logits.is_empty());
    assert_eq!(next(&mut driver, &[3, 1]), expected);
    assert_eq!(next(&mut driver, &[4, 1]), expected);
    // Page 3 went out as it was before the batch: nobody had written it.
    builder.add_swap_in(HostSlot(0), PageId(5));
    driver.run(&builder.finish(BatchId(3))).unwrap();
    assert_eq!(next(&mut driver, &[5, 1]).failures.len(), 1);
}

#[test]
fn a_page_that_is_given_away_is_the_same_in_another_driver() {
    let (mut first, mut second) = (driver(), driver());
    run(&mut first, &[1, 2, 3, 4], 0, &[0], false).unwrap();
    let expected = run(&mut first, &[7], 4, &[0, 1], false).unwrap();
    let page = first.export_page(PageId(0)).unwrap();
    assert_eq!(page.len() as u64, first.capabilities().page_bytes);
    second.import_page(PageId(5), &page).unwrap();
    let computed = run(&mut second, &[7], 4, &[5, 1], false).unwrap();
    assert_eq!(computed, expected);
    for at in 0..4 {
        let mut wrong = page.clone();
        wrong[16 * at] ^= 1;
        second.import_page(PageId(5), &wrong).unwrap();
        let computed = run(&mut second, &[7], 4, &[5, 1], false).unwrap();
        assert_ne!(computed, expected, "slot {at}");
    }
    // A slot that nobody wrote is one there, too.
    let unwritten = second.export_page(PageId(6)).unwrap();
    second.import_page(PageId(5), &unwritten).unwrap();
    let computed = run(&mut second, &[7], 4, &[5, 1], false).unwrap();
    assert_eq!(computed.failures.len(), 1);
    assert!(second.export_page(PageId(8)).is_err());
    assert!(second.import_page(PageId(8), &page).is_err());
    assert!(second.import_page(PageId(0), &page[1..]).is_err());
}

#[test]
fn a_sequence_that_sees_an_unwritten_slot_fails_alone() {
    let mut builder = ArenaBuilder::new(4);
    add(&mut builder, &[1], 0, &[0], Masks::Causal);
    add(&mut builder, &[2, 3], 5, &[1, 2], Masks::Causal);
    add(&mut builder, &[4], 0, &[3], Masks::Causal);
    let computed = driver().run(&builder.finish(BatchId(1))).unwrap();
    assert_eq!(computed.failures.len(), 1);
    assert_eq!(computed.failures[0].0, 1);
    assert!(computed.failures[0].1.contains("that nobody wrote"));
    for (row, token) in [(0, 1), (3, 4)] {
        let alone = run(&mut driver(), &[token], 0, &[0], false).unwrap();
        assert_eq!(row_of(&computed, row), alone.logits);
    }
    assert!(
        computed.logits[V as usize..3 * V as usize]
            .iter()
            .all(|logit| logit.is_nan())
    );
}

#[test]
fn what_cannot_be_run_is_named_and_changes_nothing() {
    type Write = fn(&mut ArenaBuilder);
    let cases: [(Write, &str); 8] = [
        (
            |b| add(b, &[1], 0, &[8], Masks::Causal),
            "page 8 is not one of the 8",
        ),
        (
            |b| add(b, &[V], 0, &[0], Masks::Causal),
            "outside the vocabulary of 11",
        ),
        (
            |b| b.add_copy(PageId(1), PageId(8)),
            "page 8 is not one of the 8",
        ),
        (
            |b| b.add_swap_out(PageId(9), HostSlot(0)),
            "page 9 is not one of the 8",
        ),
        (
            |b| b.add_swap_out(PageId(0), HostSlot(2)),
            "host slot 2 is not one of the 2",
        ),
        (
            |b| b.add_swap_in(HostSlot(3), PageId(1)),
            "host slot 3 is not one of the 2",
        ),
        (
            |b| {
                add(b, &[1], 0, &[1], Masks::Causal);
                add(b, &[1], 0, &[1], Masks::Causal);
            },
            "page 1 is written by the sequences 0 and 1",
        ),
        (
            |b| {
                add(b, &[1], 4, &[0, 1], Masks::Causal);
                add(b, &[1], 3, &[0], Masks::Causal);
            },
            "page 0 is written by sequence 1 and used by sequence 0",
        ),
    ];
    for (write, part) in cases {
        let mut driver = driver().with_host_pages(2);
        run(&mut driver, &[1, 2, 3], 0, &[0], false).unwrap();
        let mut builder = ArenaBuilder::new(4);
        builder.add_copy(PageId(5), PageId(0));
        write(&mut builder);
        let failure = driver.run(&builder.finish(BatchId(1))).unwrap_err();
        assert!(failure.message.contains(part), "{}", failure.message);
        let next = run(&mut driver, &[4], 3, &[0], false).unwrap();
        assert_eq!(next.failures, [], "{part}");
    }
    assert!(driver().run(&[0; 70]).is_err());
    let larger = ArenaBuilder::new(5).finish(BatchId(1));
    let failure = driver().run(&larger).unwrap_err();
    assert!(
        failure.message.contains("pages of 5 tokens"),
        "{}",
        failure.message
    );
}

fn script() -> Script {
    let rules = vec![
        Rule {
            pattern: "1,2".to_owned(),
            reply: vec![5, 6, 5],
        },
        Rule {
            pattern: "5".to_owned(),
            reply: vec![7],
        },
        Rule {
            pattern: "3".to_owned(),
            reply: vec![8, 9],
        },
    ];
    Script::new(
        rules,
        10,
        Box::new(|tokens| {
            tokens
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(",")
        }),
    )
}

#[test]
fn a_script_answers_the_pattern_that_stands_last() {
    let script = script();
    for (text, next) in [
        (&[1, 2][..], 5),
        (&[1, 2, 5], 6),
        (&[1, 2, 5, 6], 5),
        (&[1, 2, 5, 6, 5], 10),
        (&[1, 2, 4, 3], 8),
        (&[1, 2, 3, 8], 9),
        (&[3, 1, 2], 5),
        (&[4], 10),
        (&[], 10),
    ] {
        assert_eq!(script.next_token(text), next, "{text:?}");
    }
}

#[test]
fn a_scripted_row_leaves_no_other_token_a_chance() {
    let mut driver = driver().with_script(script());
    let row = run(&mut driver, &[4, 1, 2], 0, &[3], false).unwrap();
    let params = Params {
        temperature: 1000.0,
        ..Params::ARGMAX
    };
    for position in 0..50 {
        let key = Key {
            seed: 3,
            position,
            slot: 0,
            draw: 0,
        };
        assert_eq!(
            crate::sampling::sample(
                &row.logits,
                &params,
                &[],
                key,
                &mut crate::sampling::Scratch::default()
            ),
            Ok(5)
        );
    }
}
