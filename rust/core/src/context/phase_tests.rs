//! The phases of a pass against the table in their documentation, and its tokens against lists of them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::pass::{Pass, PassKind};
use super::phase::{Ahead, Phase};
use super::tokens::Tokens;
use crate::batch::RowResult;
use crate::errors::{Error, ErrorCode};
use crate::generation::{FinishReason, Template};
use crate::ids::{GeneratorId, PassId, RequestId};
use crate::sampling::Params;

const REQUEST: RequestId = RequestId(7);
const LATER: RequestId = RequestId(8);
const TEMPLATE: Template = Template {
    params: Params::ARGMAX,
    seed: 1,
    mask: None,
    masks_late: false,
    probes: None,
};

/// The rows of the table: from, by, to.
fn table() -> Vec<[&'static str; 3]> {
    let rows = include_str!("phase.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! | "))
        .filter_map(|line| line.strip_suffix(" |"));
    let mut rows = rows.map(|row| {
        let cells: Vec<&str> = row.split(" | ").collect();
        <[&str; 3]>::try_from(cells).expect("a row has three cells")
    });
    assert_eq!(rows.next(), Some(["from", "by", "to"]));
    rows.collect()
}

/// Every phase that there is, by its name in the table.
fn phases() -> Vec<(&'static str, Phase)> {
    let answered = |ahead| Phase::Answered {
        request: REQUEST,
        n_tokens: 3,
        finish: None,
        ahead,
    };
    vec![
        ("waiting", Phase::Waiting(REQUEST)),
        ("running", Phase::Running(REQUEST)),
        ("awaiting", Phase::Awaiting(REQUEST)),
        ("drafting", Phase::Drafting(REQUEST)),
        ("answered", answered(None)),
        ("answered, waiting ahead", answered(Some(Ahead::Waiting))),
        ("answered, running ahead", answered(Some(Ahead::Running))),
        ("answered, awaiting ahead", answered(Some(Ahead::Awaiting))),
        ("answered, drawn ahead", answered(Some(Ahead::Drawn))),
        ("failed", Phase::Failed(REQUEST, Box::new(error()))),
        ("waiting ahead", Phase::Ahead(Ahead::Waiting)),
        ("running ahead", Phase::Ahead(Ahead::Running)),
        ("awaiting ahead", Phase::Ahead(Ahead::Awaiting)),
        ("drawn ahead", Phase::Ahead(Ahead::Drawn)),
    ]
}

fn error() -> Error {
    Error::new(ErrorCode::DriverFailed, "it failed")
}

fn name(phase: &Phase) -> &'static str {
    let alike = |other: &Phase| match (phase, other) {
        (Phase::Answered { ahead: a, .. }, Phase::Answered { ahead: b, .. }) => a == b,
        (Phase::Ahead(a), Phase::Ahead(b)) => a == b,
        _ => std::mem::discriminant(phase) == std::mem::discriminant(other),
    };
    let mut all = phases().into_iter();
    all.find(|(_, other)| alike(other))
        .expect("the phase is known")
        .0
}

/// The transitions by their names in the table. What they answer: the phase afterwards, and whether there is such a
/// transition.
const EVENTS: [&str; 14] = [
    "start",
    "stop",
    "draw",
    "answer",
    "answer and go ahead",
    "stop ahead",
    "split",
    "promote",
    "fail",
    "await masks",
    "resume",
    "await drafts",
    "end drafting",
    "nothing",
];

fn apply(phase: &Phase, by: &str) -> (Phase, bool) {
    let mut next = phase.clone();
    let done = match by {
        "start" => next.start(),
        "stop" => next.stop(),
        "draw" => next.draw(),
        "answer" => next.answer(3, None, false),
        "answer and go ahead" => next.answer(3, None, true),
        "stop ahead" => next.stop_ahead(),
        "split" => match phase.split() {
            Some(split) => {
                next = split;
                true
            }
            None => false,
        },
        "promote" => next.promote(REQUEST),
        "fail" => next.fail(error()),
        "await masks" => next.await_masks(),
        "resume" => next.resume(),
        "await drafts" => next.await_drafts(),
        "end drafting" => next.end_drafting(),
        _ => false,
    };
    (next, done)
}

// rows: RS-083 RS-097
#[test]
fn the_table_is_all_that_happens() {
    let rows = table();
    let by_cell: BTreeMap<(&str, &str), &str> = rows
        .iter()
        .map(|[from, by, to]| ((*from, *by), *to))
        .collect();
    assert_eq!(by_cell.len(), rows.len(), "a cell stands twice");
    for (from, phase) in phases() {
        for by in EVENTS {
            let (next, done) = apply(&phase, by);
            let to = by_cell.get(&(from, by)).copied();
            assert_eq!(done, to.is_some(), "{from}, {by}");
            assert_eq!(name(&next), to.unwrap_or(from), "{from}, {by}");
            assert!(done || next == phase, "{from}, {by}");
        }
    }
    let names: BTreeSet<&str> = phases().iter().map(|(name, _)| *name).collect();
    for [from, by, to] in rows {
        assert!(names.contains(from) && names.contains(to), "{from}, {to}");
        assert!(EVENTS.contains(&by), "{by}");
    }
}

// rows: RS-083 RS-097
#[test]
fn a_phase_says_whom_it_serves_and_whether_it_waits_or_runs() {
    for (name, phase) in phases() {
        let asked = !matches!(phase, Phase::Ahead(_));
        assert_eq!(phase.request(), asked.then_some(REQUEST), "{name}");
        assert_eq!(phase.is_waiting(), waits(name), "{name}");
        assert_eq!(phase.is_awaiting(), name == "awaiting", "{name}");
        assert_eq!(phase.is_drafting(), name == "drafting", "{name}");
        assert_eq!(phase.is_running(), name.contains("running"), "{name}");
    }
}

/// Whether a batch is waited for.
fn waits(phase: &str) -> bool {
    let mut parts = phase.split(", ");
    parts.any(|part| part.starts_with("waiting"))
}

/// What a pass has to say, kept as lists.
#[derive(Clone, Debug)]
struct Oracle {
    phase: &'static str,
    request: Option<RequestId>,
    /// Slots before the first token.
    first: u32,
    taken: Vec<u32>,
    drawn: Vec<u32>,
    ahead: Vec<u32>,
    finish: Option<FinishReason>,
    n_buffered: usize,
    is_partway: bool,
}

impl Oracle {
    fn is_answered(&self) -> bool {
        self.phase.starts_with("answered")
    }

    /// What the table says of it. False: nothing.
    fn apply(&mut self, by: &str, token: u32, flag: bool) -> bool {
        let rows = table();
        let row = rows
            .iter()
            .find(|[from, other, _]| *from == self.phase && *other == by);
        let Some([_, _, to]) = row else { return false };
        match by {
            "start" => self.is_partway = !flag,
            "draw" if self.is_answered() => self.ahead.push(token),
            "draw" => self.drawn.push(token),
            "answer" | "answer and go ahead" => self.finish = finish(flag),
            "stop ahead" => self.ahead.clear(),
            "split" => {
                let pending: Vec<u32> = self.drawn.last().copied().into_iter().collect();
                self.first += (self.taken.len() + self.drawn.len() - pending.len()) as u32;
                (self.taken, self.drawn) = (pending, std::mem::take(&mut self.ahead));
                (self.request, self.finish, self.n_buffered) = (None, None, 0);
            }
            "promote" => self.request = Some(LATER),
            _ => {}
        }
        self.phase = to;
        true
    }

    fn check(&self, pass: &Pass) -> Result<(), TestCaseError> {
        let all = [&self.taken[..], &self.drawn, &self.ahead].concat();
        prop_assert_eq!(pass.content().tokens(), &all[..]);
        prop_assert_eq!(pass.n_tokens() as usize, all.len());
        prop_assert_eq!(pass.drawn(), &self.drawn[..]);
        prop_assert_eq!(pass.uncomputed(), self.drawn.last().copied());
        let n_computed = self.taken.len() + self.drawn.len().saturating_sub(1);
        prop_assert_eq!(pass.n_computed() as usize, n_computed);
        let n_kept = if self.is_answered() { n_computed } else { 0 };
        prop_assert_eq!(pass.n_kept() as usize, n_kept);
        prop_assert_eq!(pass.n_entering(), self.drawn.len());
        prop_assert_eq!(pass.n_buffered(), self.n_buffered);
        prop_assert_eq!(pass.request(), self.request);
        prop_assert_eq!(pass.is_waiting(), waits(self.phase));
        prop_assert_eq!(pass.is_awaiting(), self.phase == "awaiting");
        prop_assert_eq!(pass.is_drafting(), self.phase == "drafting");
        prop_assert_eq!(pass.is_running(), self.phase.contains("running"));
        prop_assert_eq!(
            pass.is_ready(),
            self.is_answered() || self.phase == "failed"
        );
        prop_assert_eq!(
            pass.is_ahead(),
            !["waiting", "running", "awaiting", "drafting"].contains(&self.phase)
        );
        prop_assert_eq!(pass.error().is_some(), self.phase == "failed");
        prop_assert_eq!(pass.finish(), self.finish.filter(|_| self.is_answered()));
        prop_assert_eq!(pass.is_partway(), self.is_partway);
        let end = self.first + all.len() as u32;
        prop_assert_eq!(pass.tokens_at(self.first..end), Some(&all[..]));
        prop_assert_eq!(pass.tokens_at(self.first..end + 1), None);
        Ok(())
    }
}

/// The end of a generation, or none.
fn finish(flag: bool) -> Option<FinishReason> {
    flag.then_some(FinishReason::Length)
}

fn apply_to(pass: &mut Pass, by: &str, token: u32, flag: bool) -> bool {
    match by {
        "start" => pass.start(flag),
        "stop" => pass.stop(0),
        "draw" => {
            pass.want_next(TEMPLATE, &[], &[]);
            let row = RowResult {
                tokens: &[token],
                ..RowResult::default()
            };
            pass.read([row].into_iter());
            pass.stop(1)
        }
        "answer" => pass.answer(finish(flag), false),
        "answer and go ahead" => pass.answer(finish(flag), true),
        "stop ahead" => pass.stop_ahead(),
        "split" => match pass.split() {
            Some(split) => {
                *pass = split;
                true
            }
            None => false,
        },
        "promote" => pass.promote(LATER),
        "await masks" => pass.await_masks(),
        "resume" => pass.resume(0),
        "await drafts" => pass.await_drafts(3),
        "end drafting" => pass.end_drafting(&[], &[]),
        _ => pass.fail(error()),
    }
}

proptest! {
    /// Whatever is asked of a pass, in whatever order, it does what the table says, and keeps its tokens apart: those
    /// taken, those of the answer, and those that ran ahead.
    // rows: RS-083
    #[test]
    fn tokens_stay_with_whom_they_belong_to(
        buffer in prop::collection::vec(0u32..50, 0..4),
        pending in prop::option::of(0u32..50),
        events in prop::collection::vec((0usize..13, 0u32..50, any::<bool>()), 0..60),
    ) {
        let mut taken: Vec<u32> = pending.into_iter().collect();
        taken.extend(&buffer);
        let tokens = Tokens::taken(10, pending.as_slice(), &buffer);
        let mut pass = Pass::new(PassId(3), REQUEST, PassKind::Step(GeneratorId(1)), tokens);
        let mut oracle = Oracle {
            phase: "waiting",
            request: Some(REQUEST),
            first: 10,
            taken,
            drawn: Vec::new(),
            ahead: Vec::new(),
            finish: None,
            n_buffered: buffer.len(),
            is_partway: false,
        };
        oracle.check(&pass)?;
        for (event, token, flag) in events {
            let by = EVENTS[event];
            let phase = oracle.phase;
            let possible = oracle.apply(by, token, flag);
            let done = apply_to(&mut pass, by, token, flag);
            prop_assert_eq!(done, possible, "{} in {}", by, phase);
            prop_assert_eq!(pass.id, PassId(3));
            oracle.check(&pass)?;
        }
    }
}
