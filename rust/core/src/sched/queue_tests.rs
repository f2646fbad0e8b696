//! Who runs next.

use std::collections::HashMap;

use proptest::prelude::*;

use super::cost::Prices;
use super::queue::{MAX_REMEMBERED, forget_old};
use super::*;
use crate::ids::{ContextId, PassId, ProcessId, UserId};

const LIMITS: BatchRoom = BatchRoom {
    n_tokens: 16,
    n_sequences: 8,
    prefill_chunk: 8,
};

fn ticket(request: u64, process: u64, n_tokens: u32) -> Ticket {
    Ticket {
        context: ContextId(request),
        process: ProcessId(process),
        user: UserId(0),
        wants: Wants::Draw { n_drafts: 0 },
        n_tokens,
        n_before: 0,
        pass: PassId(request),
        served: 0,
        n_refused: 0,
        refused_in: 0,
        is_ahead: false,
        follows: None,
    }
}

#[test]
fn a_kind_follows_from_what_is_wanted_and_what_is_left() {
    let kind = |wants, n_tokens| {
        Ticket {
            wants,
            ..ticket(1, 1, n_tokens)
        }
        .kind()
    };
    let drafted = Wants::Draw { n_drafts: 3 };
    for wants in [
        Wants::Tokens,
        Wants::Draw { n_drafts: 0 },
        drafted,
        Wants::Rows,
    ] {
        assert_eq!(kind(wants, 1), Kind::Decode);
    }
    for n_tokens in 2..=4 {
        assert_eq!(kind(drafted, n_tokens), Kind::Verify { n_drafts: 3 });
    }
    assert_eq!(kind(drafted, 5), Kind::Prefill);
    assert_eq!(kind(Wants::Draw { n_drafts: 0 }, 2), Kind::Prefill);
    assert_eq!(kind(Wants::Tokens, 2), Kind::Prefill);
    assert_eq!(kind(Wants::Rows, 2), Kind::Forward);
}

#[test]
fn drafts_are_verified_before_any_prefill_and_in_one_piece() {
    let drafted = |request, n_tokens| Ticket {
        wants: Wants::Draw { n_drafts: 9 },
        ..ticket(request, request, n_tokens)
    };
    let mut queue = Queue::default();
    // More than a chunk of a prompt.
    for ticket in [ticket(1, 1, 30), drafted(2, 10), ticket(3, 3, 1)] {
        queue.push(ticket);
    }
    let mut planned = plan(&mut queue, LIMITS, 1);
    planned.sort_unstable();
    assert_eq!(planned, [(1, 5), (2, 10), (3, 1)]);
    // Alone, all of them at once; where there is less room, fewer of them.
    let mut queue = Queue::default();
    for ticket in [drafted(1, 10), drafted(2, 6)] {
        queue.push(ticket);
    }
    assert_eq!(plan(&mut queue, LIMITS, 1), [(1, 10), (2, 6)]);
    for ticket in [drafted(1, 10), drafted(2, 10)] {
        queue.push(ticket);
    }
    assert_eq!(plan(&mut queue, LIMITS, 2), [(1, 10), (2, 6)]);
}

#[test]
fn who_outbids_those_that_had_a_place_comes_before_them() {
    let waiting = |queue: &mut Queue| {
        queue.push(ticket(1, 1, 1));
        queue.push(ticket(2, 2, 1));
        queue.push(Ticket {
            n_refused: 1,
            ..ticket(3, 3, 5)
        });
    };
    let order = |planned: Vec<(u64, u32)>| planned.into_iter().map(|(pass, _)| pass);
    let mut queue = Queue::default();
    waiting(&mut queue);
    let planned = plan(&mut queue, LIMITS, 1);
    assert_eq!(order(planned).collect::<Vec<_>>(), [1, 2, 3]);
    let mut queue = Queue::default();
    waiting(&mut queue);
    queue.outbidding = [PassId(3), PassId(9)].into();
    let planned = plan(&mut queue, LIMITS, 1);
    assert_eq!(order(planned).collect::<Vec<_>>(), [3, 1, 2]);
    // Whoever was passed over too often is still before them.
    let mut queue = Queue::default();
    waiting(&mut queue);
    queue.push(Ticket {
        n_refused: MAX_REFUSED,
        ..ticket(4, 4, 1)
    });
    queue.outbidding = [PassId(3)].into();
    let planned = plan(&mut queue, LIMITS, 1);
    assert_eq!(order(planned).collect::<Vec<_>>(), [4, 3, 1, 2]);
}

/// Admits by a function.
struct Offer<F>(F);

impl<F: FnMut(&Ticket, u32) -> Admission> Admit for Offer<F> {
    fn admit(&mut self, ticket: &Ticket, n: u32, _others: &[Ticket]) -> Admission {
        (self.0)(ticket, n)
    }

    fn n_tokens(&self, ticket: &Ticket) -> u32 {
        ticket.n_tokens
    }
}

/// Plans and answers (request, tokens) in order; what has more to do goes back into the queue.
fn plan(queue: &mut Queue, limits: BatchRoom, number: u64) -> Vec<(u64, u32)> {
    let mut planned = Vec::new();
    queue.plan(
        limits,
        true,
        &mut Offer(|ticket: &Ticket, n| {
            planned.push((*ticket, n));
            Admission::Planned(n)
        }),
    );
    for (ticket, n) in &planned {
        if ticket.n_tokens > *n {
            queue.push(Ticket {
                n_tokens: ticket.n_tokens - n,
                served: number,
                ..*ticket
            });
        }
    }
    planned
        .iter()
        .map(|(ticket, n)| (ticket.pass.0, *n))
        .collect()
}

fn queue(tickets: &[Ticket]) -> Queue {
    let mut queue = Queue::default();
    tickets.iter().for_each(|ticket| queue.push(*ticket));
    queue
}

#[test]
fn decodes_come_first_and_prefills_share_the_rest() {
    let mut queue = queue(&[
        ticket(1, 1, 30),
        ticket(2, 2, 1),
        ticket(3, 3, 5),
        ticket(4, 4, 1),
    ]);
    assert_eq!(
        plan(&mut queue, LIMITS, 1),
        [(2, 1), (4, 1), (1, 8), (3, 5)]
    );
    assert_eq!(plan(&mut queue, LIMITS, 2), [(1, 8)]);
    assert_eq!(
        plan(
            &mut queue,
            BatchRoom {
                n_tokens: 3,
                ..LIMITS
            },
            3
        ),
        [(1, 3)]
    );
}

#[test]
fn processes_take_turns() {
    // Process 1 came first with three long prefills; the single one of process 2 does not wait for them.
    let mut queue = queue(&[
        ticket(1, 1, 16),
        ticket(2, 1, 16),
        ticket(3, 1, 16),
        ticket(4, 2, 16),
    ]);
    let one = BatchRoom {
        n_tokens: 8,
        ..LIMITS
    };
    let served: Vec<u64> = (1..=8)
        .flat_map(|number| plan(&mut queue, one, number))
        .map(|(request, _)| request)
        .collect();
    assert_eq!(served, [1, 4, 1, 4, 2, 2, 3, 3]);
}

#[test]
fn decodes_that_do_not_all_fit_take_turns() {
    let mut queue = queue(&[
        ticket(1, 1, 1),
        ticket(2, 1, 1),
        ticket(3, 1, 1),
        ticket(4, 2, 1),
    ]);
    let two = BatchRoom {
        n_sequences: 2,
        ..LIMITS
    };
    let mut served = Vec::new();
    for number in 1..=4 {
        for (request, _) in plan(&mut queue, two, number) {
            served.push(request);
            queue.push(Ticket {
                served: number,
                ..ticket(request, if request == 4 { 2 } else { 1 }, 1)
            });
        }
    }
    assert_eq!(served, [1, 4, 2, 4, 3, 4, 1, 4]);
}

/// Three have no room, one of which follows and by now counts more than a token; the others are planned.
struct Crowded;

impl Admit for Crowded {
    fn admit(&mut self, ticket: &Ticket, n: u32, _others: &[Ticket]) -> Admission {
        match ticket.pass.0 {
            1 | 2 | 5 => Admission::NotYet,
            _ => Admission::Planned(n),
        }
    }

    fn n_tokens(&self, ticket: &Ticket) -> u32 {
        ticket.follows.map_or(ticket.n_tokens, |_| 4)
    }
}

#[test]
fn what_follows_a_batch_waits_for_one_plan_only() {
    let mut queue = Queue::default();
    queue.push(ticket(1, 1, 1));
    queue.push(ticket(2, 1, 9));
    for request in 3..6 {
        let follows = Some(0);
        queue.push(Ticket {
            follows,
            ..ticket(request, 2, 1)
        });
    }
    queue.plan(LIMITS, false, &mut Crowded);
    assert_eq!(queue.len(), 3);
    queue.drop_followers();
    let left: Vec<u64> = queue.iter().map(|ticket| ticket.pass.0).collect();
    assert_eq!(left, [1, 2]);
}

#[test]
fn a_plan_that_came_to_no_batch_passes_nobody_over() {
    let mut queue = Queue::default();
    queue.push(ticket(1, 1, 1));
    queue.push(ticket(2, 1, 9));
    for n_counted in [0, 1, 2] {
        for _ in 0..3 {
            queue.plan(
                LIMITS,
                false,
                &mut Offer(|_: &Ticket, _| Admission::Refused),
            );
            queue.forget_plan();
        }
        let counts: Vec<u32> = queue.iter().map(|ticket| ticket.n_refused).collect();
        assert_eq!(counts, [n_counted; 2]);
        queue.plan(
            LIMITS,
            false,
            &mut Offer(|_: &Ticket, _| Admission::Refused),
        );
    }
}

fn of_user(user: u64, ticket: Ticket) -> Ticket {
    Ticket {
        user: UserId(user),
        ..ticket
    }
}

#[test]
fn users_share_a_batch_however_many_programs_they_have() {
    let mut many: Vec<Ticket> = (1..=20).map(|n| of_user(1, ticket(n, n, 40))).collect();
    many.push(of_user(2, ticket(21, 21, 40)));
    let mut queue = queue(&many);
    let limits = BatchRoom {
        n_tokens: 32,
        n_sequences: 8,
        prefill_chunk: 32,
    };
    let planned = plan(&mut queue, limits, 1);
    let of_single: u32 = planned
        .iter()
        .filter(|(request, _)| *request == 21)
        .map(|(_, n)| n)
        .sum();
    assert_eq!(of_single, 16);
    assert_eq!(planned.iter().map(|(_, n)| n).sum::<u32>(), 32);
}

#[test]
fn a_prefill_has_its_share_beside_decodes_of_another_user_that_would_take_every_place() {
    let mut many: Vec<Ticket> = (1..=20).map(|n| of_user(1, ticket(n, n, 1))).collect();
    many.push(of_user(2, ticket(21, 21, 40)));
    let mut queue = queue(&many);
    let limits = BatchRoom {
        n_tokens: 32,
        n_sequences: 8,
        prefill_chunk: 32,
    };
    let planned = plan(&mut queue, limits, 1);
    assert_eq!(planned.len(), 8);
    // Two users have 16 tokens each, and one of them has no use for more than seven.
    assert_eq!(planned.last(), Some(&(21, 16)));
}

#[test]
fn what_a_user_does_not_need_goes_to_the_others() {
    let mut queue = queue(&[
        of_user(1, ticket(1, 1, 40)),
        of_user(2, ticket(2, 2, 3)),
        of_user(3, ticket(3, 3, 1)),
    ]);
    let limits = BatchRoom {
        n_tokens: 32,
        n_sequences: 8,
        prefill_chunk: 32,
    };
    assert_eq!(plan(&mut queue, limits, 1), [(3, 1), (1, 28), (2, 3)]);
}

#[test]
fn what_runs_ahead_leaves_the_share_of_its_user_to_those_who_ask() {
    let ahead = |ticket| Ticket {
        is_ahead: true,
        ..ticket
    };
    // The prefill of another user leaves one token.
    let mut queue = queue(&[
        of_user(1, ahead(ticket(1, 1, 1))),
        of_user(1, ticket(2, 2, 1)),
        of_user(2, ticket(3, 3, 9)),
    ]);
    let two = BatchRoom {
        n_tokens: 2,
        ..LIMITS
    };
    assert_eq!(plan(&mut queue, two, 1), [(2, 1), (3, 1)]);
}

#[test]
fn the_decodes_of_users_take_turns() {
    let mut many: Vec<Ticket> = (1..=20).map(|n| of_user(1, ticket(n, n, 1))).collect();
    many.push(of_user(2, ticket(21, 21, 1)));
    for number in 1..=5 {
        let served = plan(&mut queue(&many), LIMITS, number);
        assert_eq!(served.len(), 8);
        assert!(served.contains(&(21, 1)), "{served:?}");
    }
}

#[test]
fn one_that_lacked_pages_too_often_goes_first() {
    let starved = Ticket {
        n_refused: MAX_REFUSED,
        ..ticket(5, 5, 9)
    };
    let mut queue = queue(&[ticket(1, 1, 1), ticket(2, 2, 20), starved]);
    assert_eq!(plan(&mut queue, LIMITS, 1), [(5, 8), (1, 1), (2, 7)]);
}

/// What has to displace every other to run at all has the whole batch, whatever share of the time its user has.
#[test]
fn the_urgent_one_goes_first_and_is_not_held_up_for_others() {
    let decodes = (1..=4).map(|n| of_user(2, ticket(n, 2, 1)));
    let prefill = of_user(1, ticket(9, 1, 300));
    let wide = BatchRoom {
        n_tokens: 512,
        n_sequences: 64,
        prefill_chunk: 512,
    };
    // A batch may take 2 ms, of which each token takes a tenth.
    let plan = |urgent: Option<PassId>| {
        let pace = Pace::with_prices(2_000_000, Prices::new(1e6, 0.0, 1e5, 0.0));
        let mut queue = Queue::new(pace);
        queue.pace.tell(0, 2);
        decodes
            .clone()
            .chain([prefill])
            .for_each(|it| queue.push(it));
        queue.urgent = urgent;
        plan(&mut queue, wide, 1)
    };
    let held_up = plan(None);
    assert_eq!(held_up.len(), 5, "{held_up:?}");
    assert!(held_up[4].0 == 9 && held_up[4].1 < 300, "{held_up:?}");
    assert_eq!(plan(Some(PassId(9)))[0], (9, 300));
}

#[test]
fn a_prefill_passed_over_too_often_goes_first() {
    let mut queue = queue(&[ticket(1, 1, 4)]);
    let one = BatchRoom {
        n_sequences: 1,
        ..LIMITS
    };
    for number in 1.. {
        queue.push(ticket(10 + number, 2, 1));
        let served = plan(&mut queue, one, number);
        assert_eq!(served.len(), 1);
        if served == [(1, 4)] {
            assert_eq!(number, 5);
            return;
        }
        assert!(number < 10, "the prefill starves");
    }
}

#[test]
fn a_refused_prefill_keeps_younger_ones_back_only_while_others_run() {
    let refuse_first = |queue: &mut Queue, idle: bool| {
        let mut planned = Vec::new();
        queue.plan(
            LIMITS,
            idle,
            &mut Offer(|ticket: &Ticket, n| {
                if ticket.pass == PassId(1) {
                    return Admission::Refused;
                }
                planned.push(ticket.pass.0);
                Admission::Planned(n)
            }),
        );
        planned
    };
    let tickets = [ticket(1, 1, 4), ticket(2, 2, 4), ticket(3, 3, 4)];
    assert_eq!(refuse_first(&mut queue(&tickets), false), Vec::<u64>::new());
    assert_eq!(refuse_first(&mut queue(&tickets), true), [2]);
    let mut with_decode = queue(&tickets);
    with_decode.push(ticket(4, 4, 1));
    assert_eq!(refuse_first(&mut with_decode, true), [4]);
}

proptest! {
    /// Nothing is lost, planned twice, or planned beyond the limits, and everything is served in the end.
    #[test]
    fn every_request_is_served_within_the_limits(
        sizes in prop::collection::vec((1u64..4, 1u32..20), 1..40),
        n_tokens in 1u32..12, n_sequences in 1u32..6, prefill_chunk in 1u32..10,
    ) {
        let limits = BatchRoom { n_tokens, n_sequences, prefill_chunk };
        let mut queue = Queue::default();
        let mut left: Vec<u32> = Vec::new();
        for (request, (process, size)) in sizes.iter().enumerate() {
            queue.push(ticket(request as u64, *process, *size));
            left.push(*size);
        }
        let mut number = 0;
        while queue.len() > 0 {
            number += 1;
            let planned = plan(&mut queue, limits, number);
            prop_assert!(!planned.is_empty());
            prop_assert!(planned.len() <= n_sequences as usize);
            prop_assert!(planned.iter().map(|(_, n)| n).sum::<u32>() <= n_tokens);
            for (request, n) in planned {
                prop_assert!(n > 0 && n <= prefill_chunk.max(1) && n <= left[request as usize]);
                left[request as usize] -= n;
            }
        }
        prop_assert!(left.iter().all(|&n| n == 0));
    }
}

#[test]
fn nothing_is_remembered_of_a_process_that_ended() {
    let limits = BatchRoom {
        n_tokens: 8,
        ..LIMITS
    };
    let mut queue = queue(&[ticket(1, 1, 50), ticket(2, 2, 50)]);
    assert_eq!(plan(&mut queue, limits, 1), [(1, 8)]);
    assert_eq!(plan(&mut queue, limits, 2), [(2, 8)]);
    queue.remove(PassId(2));
    queue.forget(ProcessId(2));
    // It is the turn of process 1, unless process 2 is a new one.
    queue.push(ticket(3, 2, 50));
    assert_eq!(plan(&mut queue, limits, 3), [(3, 8)]);
}

#[test]
fn where_nothing_could_run_no_place_is_kept_for_users_that_lack_memory() {
    let of_user = |request, user, n_tokens| Ticket {
        user: UserId(user),
        ..ticket(request, request, n_tokens)
    };
    let mut queue = queue(&[of_user(1, 1, 1), of_user(2, 1, 1), of_user(3, 2, 4)]);
    let one = BatchRoom {
        n_sequences: 1,
        ..LIMITS
    };
    let mut plan = |urgent| {
        let mut planned = Vec::new();
        queue.urgent = urgent;
        queue.plan(
            one,
            true,
            &mut Offer(|ticket: &Ticket, n| {
                if ticket.pass != PassId(2) {
                    return Admission::Refused;
                }
                planned.push((ticket.pass.0, n));
                Admission::Planned(n)
            }),
        );
        planned
    };
    // The second request of a user leaves the only place to the other user.
    assert_eq!(plan(None), []);
    assert_eq!(plan(Some(PassId(1))), [(2, 1)]);
}

#[test]
fn tokens_that_one_user_lacks_memory_for_go_to_another() {
    // One token for two users, and the one who needs less cannot run.
    let of_user = |request, n_tokens| Ticket {
        user: UserId(request),
        ..ticket(request, request, n_tokens)
    };
    let mut queue = queue(&[of_user(1, 1), of_user(2, 4)]);
    let one = BatchRoom {
        n_tokens: 1,
        ..LIMITS
    };
    let mut planned = Vec::new();
    queue.plan(
        one,
        true,
        &mut Offer(|ticket: &Ticket, n| {
            if ticket.pass == PassId(1) {
                return Admission::Refused;
            }
            planned.push((ticket.pass.0, n));
            Admission::Planned(n)
        }),
    );
    assert_eq!(planned, [(2, 1)]);
}

/// Tickets of some users and processes: (user, process of the user, tokens).
fn mixed() -> impl Strategy<Value = Vec<Ticket>> {
    let one = (
        0u64..4,
        0u64..3,
        prop_oneof![1 => Just(1u32), 2 => 1u32..20],
    );
    prop::collection::vec(one, 1..24).prop_map(|all| {
        (1..)
            .zip(all)
            .map(|(n, (user, process, n_tokens))| {
                of_user(user, ticket(n, 10 * user + process, n_tokens))
            })
            .collect()
    })
}

/// Tokens that each user got or asked for.
fn by_user<'a>(tokens: impl Iterator<Item = (&'a Ticket, u32)>) -> HashMap<UserId, u32> {
    let mut sums = HashMap::new();
    for (ticket, n) in tokens {
        *sums.entry(ticket.user).or_insert(0) += n;
    }
    sums
}

proptest! {
    #[test]
    fn a_queue_plans_as_its_rules_say(limits in modelled_queue::limits(), ops in prop::collection::vec(modelled_queue::op(), 1..120)) {
        modelled_queue::run(limits, ops)?;
    }

    /// No token of a batch is left over that somebody could have used, and no user gets less than an equal share but by
    /// asking for less.
    #[test]
    fn a_batch_is_full_and_shared_by_users(tickets in mixed(), n_tokens in 1u32..60, prefill_chunk in 1u32..20) {
        let limits = BatchRoom { n_tokens, n_sequences: 64, prefill_chunk };
        let planned = plan(&mut queue(&tickets), limits, 1);
        let got: HashMap<u64, u32> = planned.iter().copied().collect();
        prop_assert_eq!(got.len(), planned.len(), "somebody has two places");
        let n_got = |ticket: &Ticket| got.get(&ticket.pass.0).copied().unwrap_or(0);
        let asked = |ticket: &Ticket| ticket.n_tokens.min(prefill_chunk);
        let n_all: u32 = got.values().sum();
        prop_assert!(n_all <= n_tokens);
        if n_all < n_tokens {
            for ticket in &tickets {
                prop_assert_eq!(n_got(ticket), asked(ticket), "{:?}", ticket);
            }
        }
        let of_users = by_user(tickets.iter().map(|ticket| (ticket, n_got(ticket))));
        let demands = by_user(tickets.iter().map(|ticket| (ticket, asked(ticket))));
        let share = n_tokens / demands.len() as u32;
        for (user, demand) in demands {
            prop_assert!(of_users[&user] >= demand.min(share), "{:?} of {}: {:?}", user, share, of_users);
        }
    }

    /// Whoever waits is served, though all others come back with something new each time.
    #[test]
    fn nobody_starves(
        tickets in mixed(), which in 0usize..24, n_tokens in 1u32..12, n_sequences in 1u32..5, prefill_chunk in 1u32..8,
    ) {
        let limits = BatchRoom { n_tokens, n_sequences, prefill_chunk };
        let one = tickets[which % tickets.len()];
        let mut queue = queue(&tickets);
        let (mut left, mut n_arrivals) = (one.n_tokens, tickets.len() as u64);
        let most = 40 * one.n_tokens as usize * tickets.len();
        for number in 1..=most as u64 {
            let before: Vec<Ticket> = queue.iter().copied().collect();
            for (arrival, n) in plan(&mut queue, limits, number) {
                let served = before.iter().find(|ticket| ticket.pass.0 == arrival).copied();
                if arrival == one.pass.0 {
                    left -= n;
                } else if let Some(served) = served.filter(|served| served.n_tokens == n) {
                    n_arrivals += 1;
                    let n_tokens = 1 + (n_arrivals % 9) as u32;
                    queue.push(Ticket { pass: PassId(n_arrivals), context: ContextId(n_arrivals), n_tokens, served: number, ..served });
                }
            }
            if left == 0 {
                return Ok(());
            }
        }
        prop_assert!(false, "{:?} has {} tokens to go after {} batches", one, left, most);
    }
}

#[test]
fn of_many_turns_the_latest_are_remembered() {
    let mut turns = HashMap::new();
    for turn in 1..=10_000 {
        turns.insert(UserId(turn), turn);
        forget_old(&mut turns);
        assert!(turns.len() <= MAX_REMEMBERED);
        assert!(
            (turn.saturating_sub(2000)..=turn)
                .all(|last| last == 0 || turns.contains_key(&UserId(last)))
        );
    }
}
