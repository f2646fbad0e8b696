//! What is drawn from the rows of a batch, and who fails where a row does.

use std::sync::Arc;

use super::*;
use crate::errors::ErrorCode;
use crate::ids::{BatchId, ContextId, PageId, RequestId};
use crate::sampling::{Key, Params, Probe, Reading, Scratch, sample};

const V: u32 = 6;

const RANDOM: Params = Params {
    temperature: 1.0,
    ..Params::ARGMAX
};

fn key(slot: u32) -> Key {
    Key {
        seed: 7,
        position: 3,
        slot,
        draw: 0,
    }
}

/// A row of argmax at a token of its sequence.
fn row(token_idx: u32) -> Row<'static> {
    Row {
        token_idx,
        params: Params::ARGMAX,
        key: key(0),
        n_draws: 1,
        mask: &[],
        keep: Keep::Draws,
    }
}

/// The draws of a batch of sequences of three tokens, each with these rows.
fn jobs(sequences: &[Vec<Row<'_>>]) -> SampleJobs {
    let mut builder = ArenaBuilder::new(4);
    for (index, rows) in sequences.iter().enumerate() {
        builder.add_sequence(&Sequence {
            context: ContextId(index as u64),
            request: RequestId(index as u64),
            tokens: &[1, 2, 3],
            positions: Positions::From(0),
            masks: Masks::Causal,
            adapter: Adapter::default(),
            media: 0,
            pages: Pages::default(),
            last_pages: &[PageId(index as u32)],
            replaced: None,
            length: 3,
            reread: false,
            follows: None,
        });
        for row in rows {
            builder.add_row(row);
        }
    }
    // Every row that is kept is read.
    let rows = sequences.iter().flatten().zip(0..);
    let reads = rows
        .filter(|(row, _)| row.keep == Keep::Logits)
        .map(|(_, row)| RowReads {
            row,
            probes: Some(Arc::from([Probe::Logits])),
            awaits_mask: false,
        });
    let reads = reads.collect();
    let driver = Capabilities {
        vocab_size: V,
        embeddings: 2,
        ..Capabilities::default()
    };
    SampleJobs::new(builder.finish(BatchId(5)), &driver, reads)
}

/// A row of logits whose greatest is that of `best`.
fn logits(best: u32) -> Vec<f32> {
    (0..V)
        .map(|token| {
            if token == best {
                3.0
            } else {
                token as f32 / 4.0
            }
        })
        .collect()
}

/// The row itself, where it was read.
fn values_of(row: &RowResult<'_>) -> Option<Vec<f32>> {
    row.readings.first().map(|reading| match reading {
        Reading::Logits(values) => values.to_vec(),
        other => panic!("{other:?}"),
    })
}

// rows: RS-093 RS-100
#[test]
fn each_sequence_gets_the_tokens_of_its_rows() {
    let jobs = jobs(&[vec![row(2)], vec![], vec![row(0), row(2), row(2)]]);
    assert_eq!(jobs.n_rows(), 4);
    let sampled = jobs.sample(&[4, 1, 0, 5].map(logits).concat(), &[]);
    assert_eq!(sampled.n_sequences(), 3);
    let tokens = |index: usize| -> Vec<u32> {
        let outputs = sampled.rows(index).unwrap().outputs();
        outputs.flat_map(|row| row.tokens.to_vec()).collect()
    };
    assert_eq!(
        (tokens(0), tokens(1), tokens(2)),
        (vec![4], vec![], vec![1, 0, 5])
    );
    assert_eq!(sampled.rows(3).unwrap().outputs().count(), 0);
}

// rows: RS-101 RS-117
#[test]
fn several_draws_of_a_row_are_those_of_their_keys() {
    let many = Row {
        params: RANDOM,
        n_draws: 20,
        key: key(2),
        ..row(1)
    };
    let row = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
    let sampled = jobs(&[vec![many]]).sample(&row, &[]);
    let drawn = sampled.rows(0).unwrap().outputs().next().unwrap().tokens;
    let mut scratch = Scratch::default();
    let expected: Vec<u32> = (0..20)
        .map(|draw| sample(&row, &RANDOM, &[], Key { draw, ..key(2) }, &mut scratch).unwrap())
        .collect();
    assert_eq!(drawn, expected);
    assert!(drawn.iter().any(|token| token != &drawn[0]));
}

// rows: RS-092 RS-119
#[test]
fn a_token_mask_restricts_the_draw_and_not_the_kept_row() {
    let masked = Row {
        mask: &[0, 2, 1, 1],
        keep: Keep::Logits,
        ..row(0)
    };
    let kept_alone = Row {
        n_draws: 0,
        keep: Keep::Logits,
        ..row(1)
    };
    let values = [logits(5), logits(2)].concat();
    let sampled = jobs(&[vec![masked, kept_alone]]).sample(&values, &[]);
    let rows: Vec<_> = sampled.rows(0).unwrap().outputs().collect();
    assert_eq!(rows[0].tokens, [3]);
    assert_eq!(values_of(&rows[0]), Some(logits(5)));
    assert!(rows[1].tokens.is_empty());
    assert_eq!(values_of(&rows[1]), Some(logits(2)));
}

#[test]
fn a_bad_row_fails_its_sequence_alone() {
    for bad in [f32::NAN, f32::INFINITY] {
        for n_draws in [0, 1] {
            let both = || vec![row(0), Row { n_draws, ..row(1) }];
            let mut values = [1, 2, 3, 4].map(logits).concat();
            values[V as usize + 2] = bad;
            let sampled = jobs(&[both(), both()]).sample(&values, &[]);
            let error = sampled.rows(0).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadLogits);
            assert!(
                error.message.contains("token 2 in row 1"),
                "{}",
                error.message
            );
        }
    }
    let nothing = Row {
        mask: &[6],
        ..row(0)
    };
    let sampled = jobs(&[vec![nothing], vec![row(0)]]).sample(&[1, 2].map(logits).concat(), &[]);
    assert_eq!(
        sampled.rows(0).unwrap_err().code,
        ErrorCode::InvalidArgument
    );
}

#[test]
fn rows_that_are_missing_or_cannot_be_told_apart_fail_their_sequences() {
    let jobs = jobs(&[vec![row(0)], vec![], vec![row(0)]]);
    let short = jobs.sample(&logits(1), &[]);
    let drawn = short.rows(0).unwrap().outputs().next().unwrap().tokens;
    assert_eq!(drawn, [1]);
    assert_eq!(short.rows(2).unwrap_err().code, ErrorCode::BadLogits);
    for n in [3, 13, 18] {
        let odd = jobs.sample(&vec![0.0; n], &[]);
        assert!(odd.rows(0).is_err() && odd.rows(2).is_err(), "{n}");
        assert_eq!(odd.rows(1).unwrap().outputs().count(), 0);
    }
}

#[test]
fn a_driver_fails_sequences_by_name() {
    let jobs = jobs(&[vec![row(0)], vec![row(0)]]);
    let values = [1, 2].map(logits).concat();
    let sampled = jobs.sample(&values, &[(1, "no such adapter".to_owned())]);
    let error = sampled.rows(1).unwrap_err();
    assert_eq!(error.code, ErrorCode::DriverFailed);
    assert!(
        error.message.contains("no such adapter"),
        "{}",
        error.message
    );
    let foreign = jobs.sample(&values, &[(2, "what".to_owned())]);
    for index in 0..2 {
        let error = foreign.rows(index).unwrap_err();
        assert_eq!(error.code, ErrorCode::DriverFailed);
        assert!(
            error.message.contains("sequence 2 of a batch of 2"),
            "{}",
            error.message
        );
    }
}

// rows: RS-093
#[test]
fn what_a_driver_drew_is_taken_as_what_would_be_drawn() {
    let masked = Row {
        mask: &[0, 2, 1, 1],
        keep: Keep::Logits,
        ..row(0)
    };
    let many = Row {
        params: RANDOM,
        n_draws: 3,
        ..row(1)
    };
    let alone = Row {
        n_draws: 0,
        keep: Keep::Logits,
        ..row(2)
    };
    let jobs = jobs(&[vec![masked, many], vec![], vec![row(0), alone]]);
    let values = [5, 2, 1, 4].map(logits);
    let of_logits = jobs.sample(&values.concat(), &[]);
    let outputs = |sampled: &Sampled, index: usize| -> Vec<(Vec<u32>, Option<Vec<f32>>)> {
        let rows = sampled.rows(index).unwrap();
        let outputs = rows.outputs();
        outputs
            .map(|row| (row.tokens.to_vec(), values_of(&row)))
            .collect()
    };
    let tokens: Vec<u32> = [0, 2]
        .into_iter()
        .flat_map(|index| outputs(&of_logits, index))
        .flat_map(|(tokens, _)| tokens)
        .collect();
    // Rows that are wanted themselves, and no others.
    let wanted = [&values[0][..], &values[3]].concat();
    let drawn = |tokens: &[u32], logits: &[f32]| {
        jobs.conclude(DriverAnswer::Drawn { tokens, logits }, &[], &[])
    };
    let of_tokens = drawn(&tokens, &wanted);
    for index in 0..3 {
        assert_eq!(outputs(&of_tokens, index), outputs(&of_logits, index));
    }
    // What cannot be told apart fails every sequence that wanted something.
    for (tokens, logits) in [
        (&tokens[1..], &wanted[..]),
        (&tokens, &wanted[1..]),
        (&tokens, &values.concat()),
    ] {
        let sampled = drawn(tokens, logits);
        for index in [0, 2] {
            assert_eq!(sampled.rows(index).unwrap_err().code, ErrorCode::BadLogits);
        }
        assert!(sampled.rows(1).is_ok());
    }
    // What was not drawn, or may not be, fails its sequence alone.
    for (at, token) in [(0, NOT_FINITE), (0, 2), (2, V), (2, NOT_FINITE)] {
        let mut tokens = tokens.clone();
        tokens[at] = token;
        let sampled = drawn(&tokens, &wanted);
        assert_eq!(sampled.rows(0).unwrap_err().code, ErrorCode::BadLogits);
        assert_eq!(outputs(&sampled, 2), outputs(&of_logits, 2));
    }
    let mut bad = wanted;
    bad[V as usize] = f32::NAN;
    let error = drawn(&tokens, &bad).rows(2).unwrap_err().clone();
    assert_eq!(error.code, ErrorCode::BadLogits);
}

#[test]
fn a_hidden_state_is_answered_in_the_place_of_a_row() {
    let state = Row {
        n_draws: 0,
        keep: Keep::Embedding,
        ..row(1)
    };
    let mut jobs = jobs(&[vec![state, row(1)]]);
    jobs.reads = vec![RowReads {
        row: 0,
        probes: Some(Arc::from([Probe::Embedding])),
        awaits_mask: false,
    }];
    // Two values, and zeros behind them.
    let state = [0.5, -2.0, 0.0, 0.0, 0.0, 0.0];
    let drawn = DriverAnswer::Drawn {
        tokens: &[4],
        logits: &state,
    };
    let whole = [&state[..], &logits(4)].concat();
    for answer in [DriverAnswer::Logits(&whole), drawn] {
        let sampled = jobs.conclude(answer, &[], &[]);
        let rows: Vec<_> = sampled.rows(0).unwrap().outputs().collect();
        let expected = [Reading::Embedding(Arc::from([0.5, -2.0]))];
        assert_eq!((rows[0].tokens, rows[0].readings), (&[][..], &expected[..]));
        assert_eq!((rows[1].tokens, rows[1].readings), (&[4][..], &[][..]));
    }
    let mut bad = whole;
    bad[1] = f32::INFINITY;
    let error = jobs.sample(&bad, &[]).rows(0).unwrap_err().clone();
    assert_eq!(error.code, ErrorCode::BadLogits);
}

// rows: RS-071
#[test]
fn a_row_whose_mask_came_is_drawn_by_it_and_one_whose_mask_did_not_come_is_kept() {
    let late = |token_idx| Row {
        n_draws: 0,
        keep: Keep::Logits,
        ..row(token_idx)
    };
    let mut jobs = jobs(&[vec![row(0), late(1)], vec![late(2), late(2)]]);
    let probes = |row| (row == 3).then(|| Arc::from([Probe::Entropy]));
    jobs.reads = (1..4)
        .map(|row| RowReads {
            row,
            probes: probes(row),
            awaits_mask: true,
        })
        .collect();
    let values = [1, 5, 5, 4].map(logits);
    let mask = |row| LateMask {
        row,
        n_draws: 1,
        mask: Arc::from([0, 3]),
    };
    let masks = [mask(1), mask(3)];
    let wanted = values[1..].concat();
    let drawn = DriverAnswer::Drawn {
        tokens: &[1],
        logits: &wanted,
    };
    for answer in [DriverAnswer::Logits(&values.concat()), drawn] {
        let sampled = jobs.conclude(answer, &masks, &[]);
        let outputs = |index: usize| -> Vec<(Vec<u32>, bool, usize)> {
            let outputs = sampled.rows(index).unwrap().outputs();
            outputs
                .map(|row| (row.tokens.to_vec(), row.kept.is_some(), row.readings.len()))
                .collect()
        };
        assert_eq!(outputs(0), [(vec![1], false, 0), (vec![2], false, 0)]);
        assert_eq!(outputs(1), [(vec![], true, 0), (vec![2], false, 1)]);
    }
}
