//! What the dummy driver must notice, and what it must not.

use super::*;
use crate::batch::{Adapter, ArenaBuilder, Masks, Positions, Row, Sequence};
use crate::ids::{BatchId, ContextId, PageId, RequestId};
use crate::sampling::{Key, Params};

const V: u32 = 11;

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
) -> Result<Vec<f32>, DriverFailure> {
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
        pages: &pages,
        replaced: None,
        length: before + tokens.len() as u32,
        reread,
    });
    builder.add_row(&Row {
        token_idx: tokens.len() as u32 - 1,
        params: Params::ARGMAX,
        key: Key {
            seed: 0,
            position: 0,
            slot: 0,
            draw: 0,
        },
        n_draws: 1,
        mask: &[],
        keep: false,
    });
    driver.run(&builder.finish(BatchId(1)))
}

#[test]
fn chunks_and_pages_do_not_matter() {
    let whole = run(&mut driver(), &[1, 2, 3, 4, 5, 6], 0, &[0, 1], false).unwrap();
    assert_eq!(whole.len(), V as usize);
    assert!(whole.iter().all(|logit| (-8.0..8.0).contains(logit)));
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

#[test]
fn what_cannot_be_run_is_named() {
    for (tokens, before, pages, part) in [
        (&[1, 2][..], 4, &[0, 1][..], "that nobody wrote"),
        (&[1], 0, &[8], "page 8 is none of the 8"),
        (&[V], 0, &[0], "outside the vocabulary of 11"),
    ] {
        let failure = run(&mut driver(), tokens, before, pages, false).unwrap_err();
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert!(driver().run(&[0; 70]).is_err());
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
    let mut driver = Driver::with_script("m", V, 8, 4, script());
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
                &row,
                &params,
                &[],
                key,
                &mut crate::sampling::Scratch::default()
            ),
            Ok(5)
        );
    }
}
