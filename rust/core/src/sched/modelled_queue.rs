//! The queue against a plain list of what waits, with an admission that answers anything: whatever is submitted,
//! refused, taken back and planned, nothing is lost, planned twice or planned beyond the limits, and each batch goes to
//! those whose turn it is.

use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::prelude::*;

use super::queue::MAX_PASSED_OVER;
use super::*;
use crate::ids::{ContextId, PassId, ProcessId, UserId};

type Outcome = Result<(), TestCaseError>;

/// What an admission says to an offer of `n` tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    All,
    /// So many of them, or all.
    Some(u32),
    /// Nothing has to be computed.
    Nothing,
    Refused,
    NotYet,
}

/// What happens to a queue. Numbers choose among what is there, and wrap around.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Submit {
        user: u64,
        process: u64,
        n_tokens: u32,
        n_drafts: u32,
        is_ahead: bool,
    },
    /// A batch. The choices are made in turn; every ticket in three that stays needs so many tokens more.
    Plan {
        idle: bool,
        choices: Vec<Choice>,
        n_more: u32,
    },
    /// Something that ran comes back with what is left of it.
    Return(usize),
    /// Something that was refused was refused many times.
    Starve(usize),
    /// What something that waits needs is another number of tokens.
    Renew(usize, u32),
    Remove(usize),
    EndProcess(u64),
}

pub(crate) fn limits() -> impl Strategy<Value = BatchRoom> {
    (1u32..20, 1u32..8, 1u32..12).prop_map(|(n_tokens, n_sequences, prefill_chunk)| BatchRoom {
        n_tokens,
        n_sequences,
        prefill_chunk,
    })
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let n_tokens = prop_oneof![3 => Just(1u32), 2 => 2u32..30];
    let n_drafts = prop_oneof![3 => Just(0u32), 1 => 1u32..6];
    let choice = prop_oneof![
        5 => Just(Choice::All),
        1 => (1u32..4).prop_map(Choice::Some),
        1 => Just(Choice::Nothing),
        2 => Just(Choice::Refused),
        1 => Just(Choice::NotYet),
    ];
    let choices =
        prop_oneof![1 => Just(vec![Choice::All]), 2 => prop::collection::vec(choice, 1..6)];
    prop_oneof![
        8 => (0u64..4, 0u64..3, n_tokens, n_drafts, prop::bool::weighted(0.2)).prop_map(|(user, process, n_tokens, n_drafts, is_ahead)| {
            Op::Submit { user, process: 10 * user + process, n_tokens, n_drafts, is_ahead: is_ahead && n_tokens == 1 }
        }),
        6 => (any::<bool>(), choices, prop_oneof![2 => Just(0u32), 1 => 1u32..9])
            .prop_map(|(idle, choices, n_more)| Op::Plan { idle, choices, n_more }),
        5 => (0usize..32).prop_map(Op::Return),
        1 => (0usize..32).prop_map(Op::Starve),
        1 => (0usize..32, prop_oneof![Just(1u32), 2u32..30])
            .prop_map(|(which, n_tokens)| Op::Renew(which, n_tokens)),
        1 => (0usize..32).prop_map(Op::Remove),
        1 => (0u64..4, 0u64..3).prop_map(|(user, process)| Op::EndProcess(10 * user + process)),
    ]
}

/// An offer, and what was said to it.
struct Offer {
    ticket: Ticket,
    n: u32,
    said: Admission,
}

/// Answers by choices in turn, and writes down what it was offered.
struct Recorder<'a> {
    waiting: &'a BTreeMap<PassId, Ticket>,
    choices: &'a [Choice],
    n_more: u32,
    offers: Vec<Offer>,
    /// The others of an offer were not those that wait.
    mistaken: bool,
}

impl Admit for Recorder<'_> {
    fn admit(&mut self, ticket: &Ticket, n: u32, others: &[Ticket]) -> Admission {
        let others: HashSet<PassId> = others.iter().map(|other| other.pass).collect();
        self.mistaken |= others.len() != self.waiting.len();
        self.mistaken |= !others.iter().all(|pass| self.waiting.contains_key(pass));
        let said = match self.choices[self.offers.len() % self.choices.len()] {
            Choice::All => Admission::Planned(n),
            Choice::Some(some) => Admission::Planned(some.min(n)),
            Choice::Nothing => Admission::Planned(0),
            Choice::Refused => Admission::Refused,
            Choice::NotYet => Admission::NotYet,
        };
        self.offers.push(Offer {
            ticket: *ticket,
            n,
            said,
        });
        said
    }

    fn n_tokens(&self, ticket: &Ticket) -> u32 {
        grown(ticket, self.n_more)
    }
}

/// The tokens that a ticket needs which stays.
fn grown(ticket: &Ticket, n_more: u32) -> u32 {
    ticket.n_tokens
        + if ticket.pass.0.is_multiple_of(3) {
            n_more
        } else {
            0
        }
}

struct World {
    limits: BatchRoom,
    queue: Queue,
    /// By pass.
    waiting: BTreeMap<PassId, Ticket>,
    /// What runs and has more to do, with that.
    running: Vec<Ticket>,
    n_passes: u64,
    n_plans: u64,
    /// Batches in a row without a prefill, though one waited.
    n_passed_over: u32,
}

/// Applies operations to a queue, and runs all that waits in the end.
pub(crate) fn run(limits: BatchRoom, ops: Vec<Op>) -> Outcome {
    let mut world = World {
        limits,
        queue: Queue::default(),
        waiting: BTreeMap::new(),
        running: Vec::new(),
        n_passes: 0,
        n_plans: 0,
        n_passed_over: 0,
    };
    for op in ops {
        world.apply(op)?;
        world.verify()?;
    }
    world.end()
}

impl World {
    fn apply(&mut self, op: Op) -> Outcome {
        match op {
            Op::Submit {
                user,
                process,
                n_tokens,
                n_drafts,
                is_ahead,
            } => {
                self.n_passes += 1;
                self.push(Ticket {
                    context: ContextId(self.n_passes),
                    process: ProcessId(process),
                    user: UserId(user),
                    wants: Wants::Draw { n_drafts },
                    n_tokens,
                    n_before: 0,
                    pass: PassId(self.n_passes),
                    served: 0,
                    n_refused: 0,
                    refused_in: 0,
                    is_ahead,
                    follows: None,
                });
            }
            Op::Plan {
                idle,
                choices,
                n_more,
            } => self.plan(idle, &choices, n_more)?,
            Op::Return(which) => {
                if let Some(index) = which.checked_rem(self.running.len()) {
                    let ticket = self.running.swap_remove(index);
                    self.push(ticket);
                }
            }
            Op::Starve(which) => {
                if let Some(ticket) = self.remove(which)? {
                    self.push(Ticket {
                        n_refused: MAX_REFUSED,
                        ..ticket
                    });
                }
            }
            Op::Renew(which, n_tokens) => self.renew(which, n_tokens)?,
            Op::Remove(which) => {
                self.remove(which)?;
            }
            Op::EndProcess(process) => {
                let process = ProcessId(process);
                let of_process = |ticket: &&Ticket| ticket.process == process;
                let ended: Vec<PassId> = self
                    .waiting
                    .values()
                    .filter(of_process)
                    .map(|ticket| ticket.pass)
                    .collect();
                for pass in ended {
                    self.waiting.remove(&pass);
                    prop_assert!(self.queue.remove(pass));
                }
                self.running.retain(|ticket| ticket.process != process);
                self.queue.forget(process);
            }
        }
        Ok(())
    }

    fn push(&mut self, ticket: Ticket) {
        self.waiting.insert(ticket.pass, ticket);
        self.queue.push(ticket);
    }

    /// What a pass needs has changed while it waits. One that does not wait is not put there.
    fn renew(&mut self, which: usize, n_tokens: u32) -> Result<(), TestCaseError> {
        let n_waiting = self.queue.len();
        if let Some(index) = which.checked_rem(self.waiting.len())
            && let Some(ticket) = self.waiting.values_mut().nth(index)
        {
            (ticket.n_tokens, ticket.is_ahead) = (n_tokens, false);
            prop_assert!(self.queue.replace(*ticket));
        }
        for gone in &self.running {
            prop_assert!(!self.queue.replace(*gone));
        }
        prop_assert_eq!(self.queue.len(), n_waiting);
        Ok(())
    }

    fn remove(&mut self, which: usize) -> Result<Option<Ticket>, TestCaseError> {
        let Some(index) = which.checked_rem(self.waiting.len()) else {
            return Ok(None);
        };
        let ticket = self.waiting.values().nth(index).copied();
        if let Some(ticket) = ticket {
            self.waiting.remove(&ticket.pass);
            prop_assert!(self.queue.remove(ticket.pass));
            prop_assert!(!self.queue.remove(ticket.pass));
        }
        Ok(ticket)
    }

    fn plan(&mut self, idle: bool, choices: &[Choice], n_more: u32) -> Outcome {
        self.n_plans += 1;
        let n_plans = self.n_plans;
        let mut recorder = Recorder {
            waiting: &self.waiting,
            choices,
            n_more,
            offers: Vec::new(),
            mistaken: false,
        };
        self.queue.plan(self.limits, idle, &mut recorder);
        prop_assert!(
            !recorder.mistaken,
            "the others of an offer are not those that wait"
        );
        let offers = recorder.offers;
        self.check_places(&offers)?;
        self.check_order(&offers)?;
        self.check_decodes(&offers)?;
        self.check_refused(&offers, idle)?;
        self.check_full(&offers)?;
        let is_prefilled = |offer: &Offer| {
            !offer.ticket.is_step() && matches!(offer.said, Admission::Planned(1..))
        };
        let has_prefills = self.waiting.values().any(|ticket| !ticket.is_step());
        self.n_passed_over = if has_prefills && !offers.iter().any(is_prefilled) {
            self.n_passed_over + 1
        } else {
            0
        };
        for Offer { ticket, said, .. } in offers {
            match said {
                Admission::Planned(n) => {
                    self.waiting.remove(&ticket.pass);
                    if n > 0 && n < ticket.n_tokens {
                        self.running.push(Ticket {
                            n_tokens: ticket.n_tokens - n,
                            served: self.n_plans,
                            n_refused: 0,
                            refused_in: 0,
                            ..ticket
                        });
                    }
                }
                Admission::Refused => {
                    self.waiting.entry(ticket.pass).and_modify(|ticket| {
                        ticket.n_refused += 1;
                        ticket.refused_in = n_plans;
                    });
                }
                Admission::NotYet => {}
            }
        }
        for ticket in self.waiting.values_mut() {
            ticket.n_tokens = grown(ticket, n_more);
        }
        Ok(())
    }

    /// The most that a request may have of a batch: a step as much as it needs.
    fn chunk(&self, ticket: &Ticket) -> u32 {
        match ticket.is_step() {
            true => ticket.n_tokens,
            false => ticket.n_tokens.min(self.limits.prefill_chunk),
        }
    }

    /// Everybody is offered one place at most, of no more than there is.
    fn check_places(&self, offers: &[Offer]) -> Outcome {
        let mut left = self.limits;
        let mut seen = HashSet::new();
        for Offer { ticket, n, said } in offers {
            prop_assert!(seen.insert(ticket.pass), "{:?} is offered twice", ticket);
            prop_assert_eq!(self.waiting.get(&ticket.pass), Some(ticket));
            let most = self.chunk(ticket).min(left.n_tokens);
            prop_assert!(
                (1..=most).contains(n),
                "{} of {:?}, {:?} are left",
                n,
                ticket,
                left
            );
            prop_assert!(left.n_sequences > 0);
            take_place(&mut left, *said);
        }
        Ok(())
    }

    /// Those that were passed over come first, then decodes, then prefills.
    fn check_order(&self, offers: &[Offer]) -> Outcome {
        let tickets = || offers.iter().map(|offer| offer.ticket);
        let n_first = tickets()
            .rposition(|ticket| ticket.is_starved())
            .map_or(0, |last| last + 1);
        let n_starved = tickets().filter(Ticket::is_starved).count();
        let mut others: Vec<Ticket> = tickets().filter(|ticket| !ticket.is_starved()).collect();
        if self.n_passed_over >= MAX_PASSED_OVER
            && self.waiting.values().any(|ticket| !ticket.is_step())
        {
            let is_served = tickets().any(|ticket| !ticket.is_step());
            // The starved may take all room, or the share of its user.
            prop_assert!(
                is_served || n_starved > 0,
                "no prefill has a turn after {} batches",
                self.n_passed_over
            );
            // One of them goes before all that is not starved.
            if others.first().is_some_and(|ticket| !ticket.is_step()) {
                others.remove(0);
                prop_assert!(n_first <= n_starved + 1);
            } else {
                prop_assert_eq!(n_first, n_starved);
            }
        } else {
            prop_assert_eq!(n_first, n_starved, "somebody goes before the starved");
        }
        prop_assert!(
            others.is_sorted_by_key(|ticket| !ticket.is_step()),
            "a prefill goes before a decode"
        );
        Ok(())
    }

    /// A decode goes without a place only where there is none before the prefills, but for users that have none yet, or
    /// its user had the share that is due.
    fn check_decodes(&self, offers: &[Offer]) -> Outcome {
        let n_before = offers
            .iter()
            .rposition(|offer| offer.ticket.is_step())
            .map_or(0, |last| last + 1);
        // The starved, and a prefill that was passed over.
        let n_starved = offers
            .iter()
            .filter(|offer| offer.ticket.is_starved())
            .count();
        let n_front = n_starved + usize::from(self.n_passed_over >= MAX_PASSED_OVER);
        let mut left = self.limits;
        let mut used: HashMap<UserId, u32> = HashMap::new();
        for Offer { ticket, said, .. } in &offers[..n_before.max(n_front).min(offers.len())] {
            let n = take_place(&mut left, *said);
            *used.entry(ticket.user).or_insert(0) += n;
        }
        let users: HashSet<UserId> = self.waiting.values().map(|ticket| ticket.user).collect();
        let share = (self.limits.n_tokens / users.len().max(1) as u32).max(1);
        let is_offered =
            |ticket: &Ticket| offers.iter().any(|offer| offer.ticket.pass == ticket.pass);
        let decodes = || self.waiting.values().filter(|ticket| ticket.is_step());
        for ticket in decodes().filter(|ticket| !is_offered(ticket)) {
            // Where its user was offered one, a place was kept for each other user; some may not have taken it.
            let is_without = |user: &&UserId| {
                **user != ticket.user && used.get(*user).copied().unwrap_or(0) == 0
            };
            let n_kept = if used.contains_key(&ticket.user) {
                users.iter().filter(is_without).count()
            } else {
                0
            };
            let is_full = left.n_tokens == 0 || left.n_sequences as usize <= n_kept;
            let n_used = used.get(&ticket.user).copied().unwrap_or(0);
            prop_assert!(
                is_full || n_used >= share,
                "{:?} waits for prefills; {:?} are left",
                ticket,
                left
            );
            // What runs ahead has no place that one could have had who asks for it.
            if !ticket.is_ahead {
                let of_user = |other: &&Ticket| {
                    other.user == ticket.user && other.is_ahead && is_offered(other)
                };
                prop_assert_eq!(decodes().find(of_user), None, "{:?} has no place", ticket);
            }
        }
        Ok(())
    }

    /// A prefill that lacks memory keeps the younger ones of its user back, unless nothing else would run.
    fn check_refused(&self, offers: &[Offer], idle: bool) -> Outcome {
        let mut refused: Vec<UserId> = Vec::new();
        let mut n_planned = 0;
        for Offer { ticket, said, .. } in offers.iter().filter(|offer| {
            !offer.ticket.is_step() || matches!(offer.said, Admission::Planned(1..))
        }) {
            if !ticket.is_step() {
                let alone = idle && n_planned == 0;
                prop_assert!(
                    alone || ticket.is_starved() || !refused.contains(&ticket.user),
                    "{:?}",
                    ticket
                );
            }
            match said {
                Admission::Refused => refused.push(ticket.user),
                Admission::Planned(1..) => n_planned += 1,
                Admission::Planned(0) | Admission::NotYet => {}
            }
        }
        Ok(())
    }

    /// Where everything that was offered is taken, nobody waits while there is room.
    fn check_full(&self, offers: &[Offer]) -> Outcome {
        let mut left = self.limits;
        for offer in offers {
            if offer.said != Admission::Planned(offer.n) {
                return Ok(());
            }
            take_place(&mut left, offer.said);
        }
        if left.n_tokens > 0 && left.n_sequences > 0 {
            prop_assert_eq!(offers.len(), self.waiting.len());
            for Offer { ticket, n, .. } in offers {
                prop_assert_eq!(*n, self.chunk(ticket));
            }
        }
        Ok(())
    }

    /// The queue has what waits, each once and as it is.
    fn verify(&self) -> Outcome {
        prop_assert_eq!(self.queue.len(), self.waiting.len());
        let queued: BTreeMap<PassId, Ticket> = self
            .queue
            .iter()
            .map(|ticket| (ticket.pass, *ticket))
            .collect();
        prop_assert_eq!(&queued, &self.waiting);
        let asked = self.waiting.values().find(|ticket| !ticket.is_ahead);
        prop_assert_eq!(self.queue.oldest(), asked.copied());
        Ok(())
    }

    /// Everything is served, within as many batches as there are tokens.
    fn end(mut self) -> Outcome {
        loop {
            for ticket in std::mem::take(&mut self.running) {
                self.push(ticket);
            }
            let n_left = |world: &Self| {
                world
                    .waiting
                    .values()
                    .map(|ticket| ticket.n_tokens)
                    .sum::<u32>()
            };
            let before = n_left(&self);
            if before == 0 {
                prop_assert_eq!(self.queue.len(), 0);
                return Ok(());
            }
            self.plan(true, &[Choice::All], 0)?;
            let running: u32 = self.running.iter().map(|ticket| ticket.n_tokens).sum();
            prop_assert!(
                n_left(&self) + running < before,
                "{} tokens wait and none is planned",
                before
            );
            self.verify()?;
        }
    }
}

/// Takes the place that an offer was given; returns its tokens.
fn take_place(left: &mut BatchRoom, said: Admission) -> u32 {
    let Admission::Planned(n @ 1..) = said else {
        return 0;
    };
    left.n_tokens -= n;
    left.n_sequences -= 1;
    n
}
