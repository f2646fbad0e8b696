//! The requests that wait for a batch, and the choice among them.
//!
//! Steps of generations (decodes, and drafts to be verified) come before what takes more tokens (prefills), so that no
//! prefill delays a token of a running generation. Prefills share what is left of the token budget in chunks. Where not
//! all fit, or a batch of all would take too long for one who decodes (`pace`), users take turns, then the processes of
//! a user. Within a process the request that has waited the longest is first. A request that was passed over too often
//! comes before all others.

use std::collections::{BTreeSet, HashMap};

use super::cost::Work;
use super::pace::{Pace, TimeShares};
use super::shares::Shares;
use super::ticket::{Admission, Admit, BatchRoom, Ticket};
use crate::ids::{PassId, ProcessId, UserId};

/// Batches in a row without any prefill, though one waits, after which a prefill comes first.
pub(super) const MAX_PASSED_OVER: u32 = 4;
/// Turns of prefills that are remembered, of processes and of users.
pub(super) const MAX_REMEMBERED: usize = 4096;

/// The waiting requests.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    steps: Vec<Ticket>,
    prefills: Vec<Ticket>,
    /// The number of the plan that last prefilled for a process, and for a user.
    last_prefill: HashMap<ProcessId, u64>,
    last_user: HashMap<UserId, u64>,
    n_passed_over: u32,
    /// The same before the last plan.
    n_passed_over_before: u32,
    /// A request, by its pass, that is offered before all others, because otherwise none would run.
    pub(crate) urgent: Option<PassId>,
    /// Requests that lacked pages in the last plan, while others had a place for which less was bid.
    pub(crate) outbidding: BTreeSet<PassId>,
    n_plans: u64,
    /// How long a batch may take.
    pub(crate) pace: Pace,
    /// The order of a plan. Its memory is used again by the next plan.
    order: Vec<Ticket>,
}

/// What is left of a batch, and what became of the tickets.
struct Round<'a, A> {
    left: BatchRoom,
    admit: &'a mut A,
    n_planned: u32,
    n_prefilled: u32,
    /// Bounds on the time of the batch.
    time: Option<TimeShares>,
    /// Users one of whose prefills lacked memory. Their younger prefills wait, so that small ones do not take all that
    /// becomes free.
    refused: Vec<UserId>,
}

impl Queue {
    /// A queue whose batches keep to that pace.
    pub(crate) fn new(pace: Pace) -> Self {
        Self {
            pace,
            ..Self::default()
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.steps.len() + self.prefills.len()
    }

    pub(crate) fn push(&mut self, ticket: Ticket) {
        if ticket.is_step() {
            &mut self.steps
        } else {
            &mut self.prefills
        }
        .push(ticket);
    }

    pub(crate) fn extend(&mut self, ticket: Option<Ticket>) {
        if let Some(ticket) = ticket {
            self.push(ticket);
        }
    }

    /// Takes the ticket of a pass out. False: it does not wait.
    pub(crate) fn remove(&mut self, pass: PassId) -> bool {
        // Mostly what is taken out came late.
        [&mut self.steps, &mut self.prefills]
            .into_iter()
            .any(|tickets| {
                let place = tickets.iter().rposition(|ticket| ticket.pass == pass);
                place.map(|place| tickets.remove(place)).is_some()
            })
    }

    /// Puts a ticket in the place of the one that waits for the same pass. False: none does, and nothing changes.
    pub(crate) fn replace(&mut self, ticket: Ticket) -> bool {
        let place = |tickets: &[Ticket]| tickets.iter().position(|it| it.pass == ticket.pass);
        let (alike, others) = if ticket.is_step() {
            (&mut self.steps, &mut self.prefills)
        } else {
            (&mut self.prefills, &mut self.steps)
        };
        if let Some(place) = place(alike) {
            // Nothing behind it moves: hundreds may wait, whose steps are asked for one after the other.
            alike[place] = ticket;
            return true;
        }
        let Some(place) = place(others) else {
            return false;
        };
        others.remove(place);
        alike.push(ticket);
        true
    }

    /// What follows the batch that runs waits no longer.
    pub(crate) fn drop_followers(&mut self) {
        self.steps.retain(|ticket| ticket.follows.is_none());
        self.prefills.retain(|ticket| ticket.follows.is_none());
    }

    /// The last plan made no batch, and the same will be asked again. What it passed over does not count.
    pub(crate) fn forget_plan(&mut self) {
        self.n_passed_over = self.n_passed_over_before;
        let last = self.n_plans;
        let passed_over = self.steps.iter_mut().chain(&mut self.prefills);
        for ticket in passed_over.filter(|ticket| ticket.refused_in == last) {
            ticket.n_refused -= 1;
            ticket.refused_in = 0;
        }
    }

    /// The process ended. What is known of it is forgotten; its tickets were removed before.
    pub(crate) fn forget(&mut self, process: ProcessId) {
        self.last_prefill.remove(&process);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Ticket> {
        self.steps.iter().chain(&self.prefills)
    }

    /// The most batches in a row that passed over one of the requests.
    pub(crate) fn most_refused(&self) -> u32 {
        let asked = self.iter().filter(|ticket| !ticket.is_ahead);
        asked.map(|ticket| ticket.n_refused).max().unwrap_or(0)
    }

    /// The request that was submitted first. None: all that waits runs ahead.
    pub(crate) fn oldest(&self) -> Option<Ticket> {
        let asked = self.iter().filter(|ticket| !ticket.is_ahead);
        asked.min_by_key(|ticket| ticket.pass).copied()
    }

    /// Offers requests to `admit` in their order until the limits are reached. `idle` tells that no batch runs. Then a
    /// prefill that is refused does not keep younger ones back, since nothing else would run.
    pub(crate) fn plan(&mut self, limits: BatchRoom, idle: bool, admit: &mut impl Admit) {
        self.n_plans += 1;
        self.n_passed_over_before = self.n_passed_over;
        if self.is_simple(limits) {
            return self.plan_simply(admit);
        }
        self.steps
            .iter()
            .for_each(|ticket| self.pace.note_decode(ticket.user));
        let time = self
            .pace
            .shares(self.steps.iter().chain(&self.prefills), limits);
        self.arrange(limits, time.is_some());
        self.lead();
        let had_prefills = !self.prefills.is_empty();
        let mut round = Round {
            left: limits,
            admit,
            n_planned: 0,
            n_prefilled: 0,
            time,
            refused: Vec::new(),
        };
        let mut order = std::mem::take(&mut self.order);
        self.offer_all(&mut order, &mut round, idle);
        if let Some(time) = &round.time {
            self.pace.settle_shares(time);
        }
        self.n_passed_over = if had_prefills && round.n_prefilled == 0 {
            self.n_passed_over + 1
        } else {
            0
        };
        self.steps.clear();
        self.prefills.clear();
        for mut ticket in order.drain(..).filter(|ticket| ticket.n_tokens > 0) {
            ticket.n_tokens = round.admit.n_tokens(&ticket).max(1);
            self.push(ticket);
        }
        self.order = order;
    }

    /// Offers every request as many tokens as there is room and time for. Those that get a place are left with 0
    /// tokens.
    fn offer_all<A: Admit>(&mut self, order: &mut [Ticket], round: &mut Round<'_, A>, idle: bool) {
        // Where nothing could run, whoever can does: nobody waits for users who lack pages.
        let is_stuck = self.urgent.is_some();
        let mut shares = Shares::new(order, round.left, is_stuck);
        for index in 0..order.len() {
            let ticket = order[index];
            let mut quota = shares.left(ticket.user, round.left.n_sequences);
            // A request that displaces every other is not held up for the sake of others.
            if Some(ticket.pass) != self.urgent && !(is_stuck && round.n_planned == 0) {
                quota = quota.min(round.n_in_time(&ticket));
            }
            let admission = round.offer(&ticket, quota, idle, order);
            shares.note(ticket.user, admission);
            match admission {
                Some(Admission::Planned(_)) => {
                    if !ticket.is_step() {
                        self.last_prefill.insert(ticket.process, self.n_plans);
                        self.last_user.insert(ticket.user, self.n_plans);
                        forget_old(&mut self.last_prefill);
                        forget_old(&mut self.last_user);
                    }
                    order[index].n_tokens = 0;
                }
                Some(Admission::Refused) => order[index].refuse(self.n_plans),
                Some(Admission::NotYet) | None => {}
            }
        }
    }

    /// Puts those first that come before all others: the urgent one, then the starved, and one prefill where none had a
    /// turn for long, then those for which more was bid than for others that had a place.
    fn lead(&mut self) {
        let n_steps = self.steps.len();
        let (order, urgent) = (&mut self.order, self.urgent);
        let starved = !self.prefills.is_empty() && self.n_passed_over >= MAX_PASSED_OVER;
        let mut first: Vec<usize> = Vec::new();
        first.extend((0..order.len()).filter(|&index| order[index].is_starved()));
        if starved && !first.contains(&n_steps) {
            first.push(n_steps);
        }
        first.sort_unstable();
        let n_first = first.len();
        for (place, index) in first.into_iter().enumerate() {
            order[place..=index].rotate_right(1);
        }
        if !self.outbidding.is_empty() {
            // Stable: both kinds keep their order.
            order[n_first..].sort_by_key(|ticket| !self.outbidding.contains(&ticket.pass));
        }
        let is_urgent = |ticket: &Ticket| Some(ticket.pass) == urgent;
        if let Some(index) = order.iter().position(is_urgent) {
            order[..=index].rotate_right(1);
        }
    }

    /// Whether there is room for all steps.
    fn steps_fit(&self, limits: BatchRoom) -> bool {
        let tokens = self.steps.iter().map(|ticket| u64::from(ticket.n_tokens));
        self.steps.len() <= limits.n_sequences as usize
            && tokens.sum::<u64>() <= u64::from(limits.n_tokens)
    }

    /// Whether every request is a step that fits, none was refused, and nobody has to wait long for the others. Then no
    /// order matters.
    fn is_simple(&mut self, limits: BatchRoom) -> bool {
        if !self.prefills.is_empty() || !self.steps_fit(limits) {
            return false;
        }
        let (mut work, mut n_users) = (Work::default(), 0);
        let mut last = None;
        for ticket in &self.steps {
            if ticket.n_refused > 0 {
                return false;
            }
            work.add(ticket.n_before, ticket.n_tokens);
            if last != Some(ticket.user) {
                last = Some(ticket.user);
                n_users += 1;
                self.pace.note_decode(ticket.user);
            }
        }
        (n_users < 2 && !self.pace.is_shared()) || self.pace.is_short(&work)
    }

    /// Offers every step, without a new order. This is the path of most batches.
    fn plan_simply(&mut self, admit: &mut impl Admit) {
        self.n_passed_over = 0;
        self.last_prefill.clear();
        self.last_user.clear();
        let mut steps = std::mem::take(&mut self.steps);
        for index in 0..steps.len() {
            let ticket = &steps[index];
            match admit.admit(ticket, ticket.n_tokens, &steps) {
                Admission::Planned(_) => steps[index].n_tokens = 0,
                Admission::Refused => steps[index].refuse(self.n_plans),
                Admission::NotYet => {}
            }
        }
        steps.retain(|ticket| ticket.n_tokens > 0);
        let n_steps = steps.len();
        self.steps = steps;
        for index in (0..n_steps).rev() {
            self.renew(index, admit);
        }
    }

    /// Puts a step that stays in the queue where it belongs: it may have been displaced, and need more than before.
    fn renew(&mut self, index: usize, admit: &impl Admit) {
        let ticket = &mut self.steps[index];
        ticket.n_tokens = admit.n_tokens(ticket).max(1);
        if !ticket.is_step() {
            let ticket = self.steps.remove(index);
            self.push(ticket);
        }
    }

    /// Puts the tickets in their order: steps, then prefills.
    fn arrange(&mut self, limits: BatchRoom, is_bounded: bool) {
        if is_bounded || !self.steps_fit(limits) {
            self.steps
                .sort_by_key(|ticket| (ticket.served, ticket.pass));
            take_turns(
                &mut self.steps,
                |ticket| (ticket.served, ticket.pass),
                |_| 0,
            );
        }
        // Even where they are few: prefills of other users may leave less room.
        self.steps.sort_by_key(|ticket| ticket.is_ahead);
        if self.prefills.is_empty() {
            self.last_prefill.clear();
            self.last_user.clear();
        } else if self.prefills.len() > 1 {
            self.prefills.sort_by_key(|ticket| ticket.pass);
            let (processes, users) = (&self.last_prefill, &self.last_user);
            take_turns(
                &mut self.prefills,
                |ticket| {
                    (
                        processes.get(&ticket.process).copied().unwrap_or(0),
                        ticket.pass,
                    )
                },
                |user| users.get(&user).copied().unwrap_or(0),
            );
        }
        self.order.clear();
        self.order.extend(self.steps.iter().chain(&self.prefills));
    }
}

impl<A: Admit> Round<'_, A> {
    /// How many tokens of a request there is time for.
    fn n_in_time(&self, ticket: &Ticket) -> u32 {
        let time = self.time.as_ref();
        time.map_or(u32::MAX, |time| time.n_tokens(ticket, self.n_prefilled))
    }

    /// Offers what fits; none where nothing does.
    fn offer(
        &mut self,
        ticket: &Ticket,
        quota: u32,
        idle: bool,
        others: &[Ticket],
    ) -> Option<Admission> {
        let n = ticket.chunk(self.left).min(quota);
        if n == 0 || self.left.n_sequences == 0 {
            return None;
        }
        let alone = idle && self.n_planned == 0;
        if !ticket.is_step()
            && !alone
            && !ticket.is_starved()
            && self.refused.contains(&ticket.user)
        {
            return None;
        }
        let admission = self.admit.admit(ticket, n, others);
        if let Some(time) = &mut self.time {
            time.note(ticket, admission);
        }
        match admission {
            // All of it was there already.
            Admission::Planned(0) => {}
            Admission::Planned(n_used) => {
                self.left.n_sequences -= 1;
                self.left.n_tokens -= n_used.min(n);
                self.n_planned += 1;
                self.n_prefilled += u32::from(!ticket.is_step());
            }
            Admission::Refused if !ticket.is_step() => self.refused.push(ticket.user),
            Admission::Refused | Admission::NotYet => {}
        }
        Some(admission)
    }
}

/// Reorders tickets so that the first of every user come before the second of any, and likewise the processes of a
/// user; the tickets of a process keep their order.
fn take_turns(
    tickets: &mut [Ticket],
    turn: impl Fn(&Ticket) -> (u64, PassId),
    turn_of_user: impl Fn(UserId) -> u64,
) {
    let mut of_process: HashMap<ProcessId, u32> = HashMap::new();
    let mut rounds: Vec<(u32, (u64, PassId), Ticket)> = tickets
        .iter()
        .map(|ticket| {
            (
                count(&mut of_process, ticket.process),
                turn(ticket),
                *ticket,
            )
        })
        .collect();
    rounds.sort_by_key(|&(round, turn, _)| (round, turn));
    let mut of_user: HashMap<UserId, u32> = HashMap::new();
    let mut turns: Vec<(u32, u64, Ticket)> = rounds
        .iter()
        .map(|(_, _, ticket)| {
            (
                count(&mut of_user, ticket.user),
                turn_of_user(ticket.user),
                *ticket,
            )
        })
        .collect();
    // Stable: what is equal stays in the order of the processes.
    turns.sort_by_key(|&(round, turn, _)| (round, turn));
    for (place, (_, _, ticket)) in tickets.iter_mut().zip(turns) {
        *place = ticket;
    }
}

/// Forgets those whose turns are the longest ago, where many are remembered. Whoever of them comes again is first.
pub(super) fn forget_old<K: Eq + std::hash::Hash>(turns: &mut HashMap<K, u64>) {
    if turns.len() > MAX_REMEMBERED {
        let mut sorted: Vec<u64> = turns.values().copied().collect();
        let (_, median, _) = sorted.select_nth_unstable(MAX_REMEMBERED / 2);
        let median = *median;
        turns.retain(|_, turn| *turn > median);
    }
}

fn count<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u32>, key: K) -> u32 {
    let count = counts.entry(key).or_insert(0);
    *count += 1;
    *count
}
