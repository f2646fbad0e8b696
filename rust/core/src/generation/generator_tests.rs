//! The state machine of the generator, call by call, against a table of what each state allows.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::batch::Capabilities;
use crate::errors::ErrorCode;
use crate::ids::{ContextId, ProcessId};
use crate::sampling::Params;

fn generator() -> Generator {
    Generator::new(
        ProcessId(1),
        ContextId(1),
        Params::ARGMAX,
        StopSet::new(vec![8], vec![9]),
    )
}

const ROOM: u32 = 100;

// rows: RS-082..083
#[test]
fn a_step_is_opened_run_and_folded() {
    let mut generator = generator();
    assert_eq!(
        generator.check_step(true).unwrap_err().code,
        ErrorCode::StepPending
    );
    assert_eq!(generator.open(5, ROOM), Ok(Some(0)));
    assert_eq!(
        generator.open(5, ROOM).unwrap_err().code,
        ErrorCode::StepPending
    );
    assert_eq!(
        generator.check_step(false).unwrap_err().code,
        ErrorCode::StepPending
    );
    assert_eq!(generator.check_step(true), Ok(()));
    generator.state = StepState::Running;
    assert_eq!(
        generator.open(5, ROOM).unwrap_err().code,
        ErrorCode::ContextBusy
    );
    generator.fold(1, None, true);
    assert_eq!(generator.open(6, ROOM), Ok(Some(1)));
}

// rows: RS-082..083
#[test]
fn a_cancelled_step_is_opened_again() {
    let mut generator = generator();
    generator.open(5, ROOM).unwrap();
    generator.state = StepState::Running;
    generator.undo(true);
    assert_eq!(generator.check_step(true), Ok(()));
    assert_eq!(generator.open(5, ROOM), Ok(Some(0)));
    assert_eq!(generator.n_accepted(), 0);
}

// rows: RS-068..070 RS-079
#[test]
fn caps_stops_and_room_end_it() {
    let mut generator = generator();
    // Of a token behind `length` others, of which the pass drew `n_drawn`.
    let judge = |generator: &Generator, token, n_drawn, length| {
        let standing = Standing {
            n_replaced: 0,
            n_drawn,
            length,
            max_context: ROOM,
            end_tokens: &[7],
            budget: None,
        };
        generator.judge(token, 1, &standing)
    };
    let (stopped, full) = (
        Next::Done(FinishReason::Stop),
        Next::Done(FinishReason::Length),
    );
    assert_eq!(judge(&generator, 1, 0, 5), Next::Go);
    for stop in [7, 8, 9] {
        assert_eq!(judge(&generator, stop, 0, ROOM - 1), stopped);
    }
    assert_eq!(judge(&generator, 1, 0, ROOM - 1), full);
    generator.max_tokens = Some(3);
    assert_eq!(judge(&generator, 1, 1, 5), Next::Go);
    assert_eq!(judge(&generator, 1, 2, 5), full);
    generator.fold(2, None, true);
    assert_eq!(generator.end(7, ROOM), None);
    generator.max_tokens = Some(2);
    assert_eq!(generator.open(7, ROOM), Ok(None));
    assert_eq!(generator.finish_reason(7, ROOM), Some(FinishReason::Length));
}

// rows: RS-079 RS-082
#[test]
fn a_retired_one_is_closed_unless_it_had_ended() {
    let mut retired = generator();
    retired.retire(Retirement::Release);
    let error = retired.open(5, ROOM).unwrap_err();
    assert_eq!(error.code, ErrorCode::GeneratorRetired);
    assert!(error.message.contains("by the release of its context"));
    assert_eq!(retired.finish_reason(5, ROOM), Some(FinishReason::Closed));
    let mut ended = generator();
    ended.fold(1, Some(FinishReason::Stop), true);
    ended.retire(Retirement::Newer);
    assert_eq!(ended.open(5, ROOM), Ok(None));
    assert_eq!(ended.finish_reason(5, ROOM), Some(FinishReason::Stop));
    // Its cap was set when it had accepted as many tokens already.
    let mut capped = generator();
    capped.fold(2, None, true);
    capped.max_tokens = Some(2);
    capped.retire(Retirement::Truncation);
    assert_eq!(capped.open(7, ROOM), Ok(None));
    assert_eq!(capped.finish_reason(7, ROOM), Some(FinishReason::Length));
}

// rows: RS-071 RS-079
#[test]
fn a_constraint_ends_it_unless_a_stop_token_did() {
    let (stop, length) = (FinishReason::Stop, FinishReason::Length);
    let constraint = FinishReason::Constraint;
    for (before, expected) in [
        (None, constraint),
        (Some(length), constraint),
        (Some(stop), stop),
    ] {
        let mut generator = generator();
        generator.fold(1, before, true);
        generator.end_by_constraint();
        assert_eq!(generator.finish_reason(6, ROOM), Some(expected));
        assert_eq!(generator.open(6, ROOM), Ok(None));
    }
}

/// Drafts are refused by the memory that they will take, and then counted by the memory that they take.
// rows: RS-074
#[test]
fn drafts_take_as_much_memory_as_they_are_refused_by() {
    let driver = Capabilities::default();
    for drafting in [Drafting::None, Drafting::NGram, Drafting::Host] {
        let mut generator = generator();
        generator.set_mask(Some(Arc::from([2, 3, 1]))).unwrap();
        let before = generator.held_bytes(&driver);
        let more = generator.drafting_bytes(drafting);
        generator.set_drafting(drafting).unwrap();
        assert_eq!(generator.held_bytes(&driver), before + more, "{drafting:?}");
    }
}

proptest! {
    /// Step numbers count folded steps only, whatever is opened, cancelled and repeated in between.
    // rows: RS-080 RS-082
    #[test]
    fn numbers_count_what_was_folded(calls in prop::collection::vec(0u8..4, 0..60)) {
        let (mut generator, mut state, mut n_folded) = (generator(), StepState::Closed, 0u32);
        for call in calls {
            match (call, state) {
                (0, StepState::Closed | StepState::Undone) => {
                    prop_assert_eq!(generator.open(1, ROOM), Ok(Some(n_folded)));
                    state = StepState::Opened;
                }
                (0, _) => prop_assert!(generator.open(1, ROOM).is_err()),
                (1, _) => {
                    let allowed = matches!(state, StepState::Opened | StepState::Undone);
                    prop_assert_eq!(generator.check_step(true).is_ok(), allowed);
                    if allowed {
                        generator.state = StepState::Running;
                        state = StepState::Running;
                    }
                }
                (2, StepState::Running) => {
                    generator.undo(true);
                    state = StepState::Undone;
                }
                (3, StepState::Running) => {
                    generator.fold(1, None, true);
                    n_folded += 1;
                    state = StepState::Closed;
                }
                _ => {}
            }
            prop_assert_eq!(generator.state, state);
            prop_assert_eq!(generator.n_accepted(), n_folded);
        }
    }
}
