//! The requests that wait for a batch, and the choice among them.
//!
//! Those that need one token (decodes) come before those that need more (prefills), so that no prefill delays a token of a
//! running generation; prefills share what is left of the token budget in chunks. Where not all fit, processes take
//! turns, and within a process the longest waiting goes first. A prefill that was passed over too often goes first of all.

use std::collections::HashMap;

use crate::ids::{ContextId, ProcessId, RequestId};

/// Batches in a row without any prefill, though one waits, after which a prefill goes first.
const MAX_PASSED_OVER: u32 = 4;

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) context: ContextId,
    pub(crate) request: RequestId,
    pub(crate) process: ProcessId,
    /// Tokens that have to be computed.
    pub(crate) n_tokens: u32,
    /// In the order of submission.
    pub(crate) arrival: u64,
    /// The number of the batch that served it last.
    pub(crate) served: u64,
}

/// What fits into a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) n_tokens: u32,
    pub(crate) n_sequences: u32,
    pub(crate) prefill_chunk: u32,
}

/// What became of an offer to run some tokens of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is in the batch.
    Planned,
    /// It lacks memory and stays in the queue.
    Refused,
    /// Something else of it still runs; it stays in the queue.
    NotYet,
}

/// The waiting requests.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    decodes: Vec<Ticket>,
    prefills: Vec<Ticket>,
    /// The number of the plan that last prefilled for a process.
    last_prefill: HashMap<ProcessId, u64>,
    n_passed_over: u32,
    n_plans: u64,
}

impl Queue {
    pub(crate) const fn len(&self) -> usize {
        self.decodes.len() + self.prefills.len()
    }

    pub(crate) fn push(&mut self, ticket: Ticket) {
        if ticket.n_tokens <= 1 {
            &mut self.decodes
        } else {
            &mut self.prefills
        }
        .push(ticket);
    }

    pub(crate) fn remove(&mut self, request: RequestId) {
        self.decodes.retain(|ticket| ticket.request != request);
        self.prefills.retain(|ticket| ticket.request != request);
    }

    /// The process ended: what is known of it is forgotten. Its tickets are removed before.
    pub(crate) fn forget(&mut self, process: ProcessId) {
        self.last_prefill.remove(&process);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Ticket> {
        self.decodes.iter().chain(&self.prefills)
    }

    /// The request that was submitted last.
    pub(crate) fn youngest(&self) -> Option<Ticket> {
        self.iter().max_by_key(|ticket| ticket.arrival).copied()
    }

    /// Offers requests to `admit` with the number of tokens that each may run, until the limits are reached. `idle` tells that
    /// no batch runs: then a prefill that is refused does not keep the younger ones back, since nothing else would run.
    pub(crate) fn plan(
        &mut self,
        limits: Limits,
        idle: bool,
        mut admit: impl FnMut(&Ticket, u32) -> Admission,
    ) {
        self.n_plans += 1;
        let mut left = limits;
        let had_prefills = !self.prefills.is_empty();
        let n_prefilled = if self.n_passed_over >= MAX_PASSED_OVER {
            self.plan_prefills(&mut left, 1, true, &mut admit)
        } else {
            0
        };
        self.plan_decodes(&mut left, &mut admit);
        let empty = left.n_sequences == limits.n_sequences;
        let n_prefilled =
            n_prefilled + self.plan_prefills(&mut left, u32::MAX, idle && empty, &mut admit);
        self.n_passed_over = if had_prefills && n_prefilled == 0 {
            self.n_passed_over + 1
        } else {
            0
        };
    }

    fn plan_decodes(
        &mut self,
        left: &mut Limits,
        admit: &mut impl FnMut(&Ticket, u32) -> Admission,
    ) {
        if self.decodes.len() > left.n_sequences.min(left.n_tokens) as usize {
            self.decodes
                .sort_by_key(|ticket| (ticket.served, ticket.arrival));
            take_turns(&mut self.decodes, |ticket| (ticket.served, ticket.arrival));
        }
        self.decodes.retain(|ticket| {
            if left.n_sequences == 0 || left.n_tokens == 0 || admit(ticket, 1) != Admission::Planned
            {
                return true;
            }
            left.n_sequences -= 1;
            left.n_tokens -= 1;
            false
        });
    }

    fn plan_prefills(
        &mut self,
        left: &mut Limits,
        most: u32,
        past_refused: bool,
        admit: &mut impl FnMut(&Ticket, u32) -> Admission,
    ) -> u32 {
        let last = &mut self.last_prefill;
        if self.prefills.is_empty() {
            last.clear();
            return 0;
        }
        if self.prefills.len() > 1 {
            self.prefills.sort_by_key(|ticket| ticket.arrival);
            take_turns(&mut self.prefills, |ticket| {
                (
                    last.get(&ticket.process).copied().unwrap_or(0),
                    ticket.arrival,
                )
            });
        }
        let (mut n_planned, mut refused, number) = (0, false, self.n_plans);
        self.prefills.retain(|ticket| {
            let n = ticket.n_tokens.min(left.prefill_chunk).min(left.n_tokens);
            if n == 0
                || left.n_sequences == 0
                || n_planned == most
                || (refused && (!past_refused || n_planned > 0))
            {
                return true;
            }
            match admit(ticket, n) {
                Admission::Planned => {
                    left.n_sequences -= 1;
                    left.n_tokens -= n;
                    n_planned += 1;
                    last.insert(ticket.process, number);
                    false
                }
                Admission::Refused => {
                    refused = true;
                    true
                }
                Admission::NotYet => true,
            }
        });
        n_planned
    }
}

/// Reorders tickets so that the first of every process come before the second of any. Each round goes by `turn`.
fn take_turns(tickets: &mut [Ticket], turn: impl Fn(&Ticket) -> (u64, u64)) {
    let mut n_seen: HashMap<ProcessId, u32> = HashMap::new();
    let mut rounds: Vec<(u32, (u64, u64), Ticket)> = tickets
        .iter()
        .map(|ticket| {
            let seen = n_seen.entry(ticket.process).or_insert(0);
            *seen += 1;
            (*seen, turn(ticket), *ticket)
        })
        .collect();
    rounds.sort_by_key(|&(round, turn, _)| (round, turn));
    for (place, (_, _, ticket)) in tickets.iter_mut().zip(rounds) {
        *place = ticket;
    }
}
