//! How much of the time of a batch each user has, against the rules in plain words.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::cost::{Prices, Work};
use super::pace::MIN_CHUNK;
use super::*;
use crate::ids::{ContextId, PassId, ProcessId, UserId};

const MS: u64 = 1_000_000;
const LIMITS: BatchRoom = BatchRoom {
    n_tokens: 512,
    n_sequences: 256,
    prefill_chunk: 512,
};

/// 1 ms a batch, 0.1 ms a sequence, 0.1 ms a token.
fn prices() -> Prices {
    Prices::new(1e6, 1e5, 1e5, 0.0)
}

fn ticket(arrival: u64, user: u64, n_tokens: u32) -> Ticket {
    Ticket {
        context: ContextId(arrival),
        process: ProcessId(user),
        user: UserId(user),
        wants: Wants::Draw { n_drafts: 0 },
        n_tokens,
        n_before: 0,
        pass: PassId(arrival),
        served: 0,
        n_refused: 0,
        refused_in: 0,
        is_ahead: false,
        follows: None,
    }
}

/// Takes all that is offered.
#[derive(Default)]
struct All(Vec<(Ticket, u32)>);

impl Admit for All {
    fn admit(&mut self, ticket: &Ticket, n: u32, _others: &[Ticket]) -> Admission {
        self.0.push((*ticket, n));
        Admission::Planned(n)
    }

    fn n_tokens(&self, ticket: &Ticket) -> u32 {
        ticket.n_tokens
    }
}

fn queue(step_ns: u64, prices: Prices, tickets: &[Ticket]) -> Queue {
    let mut queue = Queue::new(Pace::with_prices(step_ns, prices));
    tickets.iter().for_each(|ticket| queue.push(*ticket));
    queue
}

fn plan(queue: &mut Queue, limits: BatchRoom) -> Vec<(Ticket, u32)> {
    let mut all = All::default();
    queue.plan(limits, true, &mut all);
    all.0
}

/// What was planned, by pass.
fn tokens(planned: &[(Ticket, u32)]) -> Vec<(u64, u32)> {
    planned
        .iter()
        .map(|(ticket, n)| (ticket.pass.0, *n))
        .collect()
}

fn time_ns(prices: &Prices, planned: &[(Ticket, u32)]) -> f64 {
    let mut work = Work::default();
    planned
        .iter()
        .for_each(|(ticket, n)| work.add(ticket.n_before, *n));
    prices.batch(&work)
}

#[test]
fn a_prefill_beside_the_decode_of_another_user_is_as_short_as_the_bound() {
    let mut queue = queue(10 * MS, prices(), &[ticket(1, 1, 1), ticket(2, 2, 2000)]);
    // Of 10 ms the batch takes 1, the decode 0.2, and the sequence of the prefill 0.1.
    assert_eq!(tokens(&plan(&mut queue, LIMITS)), [(1, 1), (2, 87)]);
}

#[test]
fn the_decodes_of_a_user_do_not_bound_its_own_prefills() {
    let mut queue = queue(10 * MS, prices(), &[ticket(1, 1, 1), ticket(2, 1, 2000)]);
    assert_eq!(tokens(&plan(&mut queue, LIMITS)), [(1, 1), (2, 511)]);
}

#[test]
fn without_a_bound_or_anything_learned_a_batch_is_full() {
    for (step_ns, prices) in [(0, prices()), (10 * MS, Prices::default())] {
        let mut queue = queue(step_ns, prices, &[ticket(1, 1, 1), ticket(2, 2, 2000)]);
        assert_eq!(tokens(&plan(&mut queue, LIMITS)), [(1, 1), (2, 511)]);
    }
}

#[test]
fn a_prefill_is_bounded_for_a_moment_after_another_user_has_decoded() {
    let mut queue = queue(4 * MS, prices(), &[ticket(1, 1, 1)]);
    queue.pace.tell(0, 1);
    assert_eq!(plan(&mut queue, LIMITS).len(), 1);
    for (now_ns, n) in [(MS, 29), (16 * MS, 29), (17 * MS, 511)] {
        queue.pace.tell(now_ns, 1);
        queue.push(ticket(2, 2, 511));
        assert_eq!(tokens(&plan(&mut queue, LIMITS)), [(2, n)], "at {now_ns}");
    }
}

#[test]
fn where_others_may_come_a_batch_is_not_longer_than_they_may_wait() {
    let mut queue = queue(4 * MS, prices(), &[ticket(1, 1, 1), ticket(2, 1, 2000)]);
    queue.pace.tell(0, 2);
    // Four times 4 ms, less 1 for the batch, 0.2 for the decode, and 0.1 for the sequence.
    assert_eq!(tokens(&plan(&mut queue, LIMITS)), [(1, 1), (2, 147)]);
    queue.push(ticket(2, 1, 2000));
    queue.pace.tell(10_001 * MS, 1);
    assert_eq!(tokens(&plan(&mut queue, LIMITS)), [(2, 512)]);
}

#[test]
fn a_short_prompt_does_not_wait_for_a_long_one_of_another_user() {
    let mut queue = queue(10 * MS, prices(), &[ticket(1, 1, 2000), ticket(2, 2, 12)]);
    let planned = plan(&mut queue, LIMITS);
    assert!(
        planned
            .iter()
            .any(|(ticket, n)| (ticket.pass.0, *n) == (2, 12))
    );
    assert!(time_ns(&prices(), &planned) <= 10e6);
}

#[test]
fn many_rows_of_a_user_take_turns_beside_the_one_of_another() {
    let mut many: Vec<Ticket> = (1..=200).map(|n| ticket(n, 1, 1)).collect();
    many.push(ticket(201, 2, 1));
    let mut queue = queue(10 * MS, prices(), &many);
    let mut served: BTreeMap<u64, u32> = BTreeMap::new();
    for number in 1..=5 {
        let planned = plan(&mut queue, LIMITS);
        // 9 ms at 0.2 ms a row.
        assert_eq!(planned.len(), 45);
        for (ticket, _) in planned {
            *served.entry(ticket.pass.0).or_insert(0) += 1;
            queue.push(Ticket {
                served: number,
                ..ticket
            });
        }
    }
    assert_eq!(served[&201], 5);
    assert!(
        served.values().all(|&n| n >= 1) && served.len() == 201,
        "{served:?}"
    );
}

#[test]
fn users_alike_are_not_held_up_for_each_other() {
    let alike: Vec<Ticket> = (0..30).map(|n| ticket(n, n / 3, 1)).collect();
    assert_eq!(plan(&mut queue(2 * MS, prices(), &alike), LIMITS).len(), 30);
}

#[test]
fn many_rows_take_turns_while_somebody_may_come_who_has_few() {
    let many_of_one: Vec<Ticket> = (0..100).map(|n| ticket(n, 1, 1)).collect();
    let many_of_many: Vec<Ticket> = (0..100).map(|n| ticket(n, n / 10, 1)).collect();
    for many in [many_of_one, many_of_many] {
        let mut queue = queue(2 * MS, prices(), &many);
        queue.pace.tell(0, 11);
        let planned = plan(&mut queue, LIMITS).len();
        // 7 ms at 0.2 ms a row; of ten users, each of whom has a row in any case, less than a row more.
        assert!((30..=35).contains(&planned), "{planned}");
    }
}

#[test]
fn many_rows_of_one_who_is_alone_are_one_batch() {
    let many: Vec<Ticket> = (0..100).map(|n| ticket(n, 1, 1)).collect();
    let mut queue = queue(2 * MS, prices(), &many);
    queue.pace.tell(0, 1);
    assert_eq!(plan(&mut queue, LIMITS).len(), 100);
}

#[test]
fn the_first_token_of_a_user_does_not_wait_for_sixteen_prompts_of_another() {
    let mut tickets: Vec<Ticket> = (1..=16).map(|n| ticket(n, 1, 2000)).collect();
    tickets.push(ticket(17, 2, 100));
    // A third decodes.
    tickets.push(ticket(18, 3, 1));
    let mut queue = queue(10 * MS, prices(), &tickets);
    let (mut left, mut n_batches) = (100, 0);
    while left > 0 {
        n_batches += 1;
        for (ticket, n) in plan(&mut queue, LIMITS) {
            if ticket.user == UserId(2) {
                left -= n;
            }
            let n_tokens = (ticket.n_tokens - n).max(1);
            if n_tokens > 1 || ticket.user == UserId(3) {
                queue.push(Ticket {
                    n_tokens,
                    served: n_batches,
                    ..ticket
                });
            }
        }
    }
    // Half of 8.8 ms in each of them: 43 tokens.
    assert!(n_batches <= 3, "{n_batches}");
}

/// Plans batches for users whose prompts never end and one who decodes, as many as `n_before`; then user 9 comes with a
/// prompt of 80 tokens, `after_ns` later: what it has of it in the next batch.
fn of_the_prompt_of_one_who_comes_late(n_before: u64, after_ns: u64) -> u32 {
    let endless: Vec<Ticket> = (1..=4).map(|user| ticket(user, user, 2000)).collect();
    let mut queue = queue(10 * MS, prices(), &endless);
    queue.push(ticket(5, 5, 1));
    for number in 1..=n_before {
        for (ticket, _) in plan(&mut queue, LIMITS) {
            queue.remove(ticket.pass);
            queue.push(Ticket {
                served: number,
                n_tokens: if ticket.is_step() { 1 } else { 2000 },
                ..ticket
            });
        }
    }
    queue.pace.tell(after_ns, 0);
    queue.push(ticket(6, 9, 80));
    let planned = plan(&mut queue, LIMITS);
    tokens(&planned)
        .iter()
        .find(|(pass, _)| *pass == 6)
        .map_or(0, |(_, n)| *n)
}

#[test]
fn a_prompt_of_one_who_seldom_computes_runs_before_those_that_never_end() {
    // One of five equal parts of 8.8 ms.
    assert_eq!(of_the_prompt_of_one_who_comes_late(0, 0), 16);
    assert_eq!(of_the_prompt_of_one_who_comes_late(20, 0), 80);
    // What was long ago is forgotten.
    assert_eq!(of_the_prompt_of_one_who_comes_late(20, 11_000 * MS), 16);
}

#[test]
fn who_computes_without_end_has_as_much_as_others_who_do() {
    let endless: Vec<Ticket> = (1..=3).map(|user| ticket(user, user, 2000)).collect();
    let mut queue = queue(10 * MS, prices(), &endless);
    queue.push(ticket(4, 4, 1));
    let mut had: BTreeMap<UserId, u32> = BTreeMap::new();
    for number in 1..=100 {
        // The third comes later.
        let planned = plan(&mut queue, LIMITS);
        for (ticket, n) in planned {
            *had.entry(ticket.user).or_insert(0) += n;
            queue.remove(ticket.pass);
            queue.push(Ticket {
                served: number,
                n_tokens: if ticket.is_step() { 1 } else { 2000 },
                ..ticket
            });
        }
    }
    let [one, two, three] = [1, 2, 3].map(|user| had[&UserId(user)]);
    assert!(
        one.abs_diff(two) <= 200 && two.abs_diff(three) <= 200,
        "{had:?}"
    );
    assert_eq!(had[&UserId(4)], 100);
}

/// Tickets of some users: decodes, prompts, and how much of each is computed.
fn mixed() -> impl Strategy<Value = Vec<Ticket>> {
    let one = (
        0u64..4,
        prop_oneof![3 => Just(1u32), 1 => 2u32..40, 1 => 40u32..2000],
        0u32..3000,
    );
    prop::collection::vec(one, 1..80).prop_map(|all| {
        (1..)
            .zip(all)
            .map(|(arrival, (user, n_tokens, n_before))| Ticket {
                n_before,
                ..ticket(arrival, user, n_tokens)
            })
            .collect()
    })
}

fn any_prices() -> impl Strategy<Value = Prices> {
    (0u32..20_000, 0u32..500, 1u32..500, 0u32..2).prop_map(|(batch, sequence, token, pair)| {
        let us = |n: u32| f64::from(n) * 1e3;
        Prices::new(us(batch), us(sequence), us(token), us(pair) / 10.0)
    })
}

/// Who waits, by user: decodes, and nanoseconds of all.
fn by_user(prices: &Prices, tickets: &[Ticket]) -> BTreeMap<UserId, (u32, f64)> {
    let mut users = BTreeMap::new();
    for ticket in tickets {
        let (n_decodes, ns) = users.entry(ticket.user).or_insert((0u32, 0.0));
        *n_decodes += u32::from(ticket.is_step());
        *ns += prices.sequence(ticket.n_before, ticket.n_tokens.min(512));
    }
    users
}

proptest! {
    /// A batch with a decode in it takes no longer than its bound, but for what nobody may be denied: a row of each
    /// user that decodes, and one short chunk. Every user that decodes has a row, somebody prefills, and no user has
    /// less than its share but by asking for less.
    #[test]
    fn a_decode_waits_no_longer_than_the_bound(tickets in mixed(), prices in any_prices(), step_ms in 1u64..30) {
        let mut queue = queue(step_ms * MS, prices, &tickets);
        let planned = plan(&mut queue, LIMITS);
        let users = by_user(&prices, &tickets);
        let decoding: HashSet<UserId> = tickets.iter().filter(|it| it.is_step()).map(|it| it.user).collect();
        let rows: HashSet<UserId> = planned.iter().filter(|(it, _)| it.is_step()).map(|(it, _)| it.user).collect();
        prop_assert_eq!(&rows, &decoding);
        let prefills = || planned.iter().filter(|(it, _)| !it.is_step());
        let n_places = LIMITS.n_sequences as usize;
        prop_assert_eq!(prefills().count() > 0, tickets.iter().any(|it| !it.is_step()) && planned.len() <= n_places);
        if users.len() < 2 {
            let mut free = Queue::default();
            tickets.iter().for_each(|ticket| free.push(*ticket));
            prop_assert_eq!(tokens(&planned), tokens(&plan(&mut free, LIMITS)));
            return Ok(());
        }
        if decoding.is_empty() {
            return Ok(());
        }
        let n_rows: u32 = users.values().map(|(n, _)| n).sum();
        let row_ns: f64 = tickets.iter().filter(|it| it.is_step()).map(|it| prices.sequence(it.n_before, 1)).sum::<f64>() / f64::from(n_rows);
        let is_quick = |it: &Ticket| {
            let ns = prices.sequence(it.n_before, it.n_tokens);
            !it.is_step() && !decoding.contains(&it.user) && it.n_tokens <= 512 && 2.0 * ns <= (step_ms * MS) as f64
        };
        let n_decoding = users.values().map(|(n, _)| *n).filter(|&n| n > 0).min().unwrap_or(1);
        let n_least = if tickets.iter().any(is_quick) { 1 } else { n_decoding };
        let most_alike = prices.base() + users.len() as f64 * f64::from(n_least) * row_ns;
        let step_ns = (step_ms * MS) as f64;
        let bound = (1.5 * most_alike).min(4.0 * step_ns.max(prices.base() + row_ns)).max(step_ns);
        let longest = |is: fn(&Ticket) -> bool, n| tickets.iter().filter(|it| is(it)).map(|it| prices.sequence(it.n_before, n)).fold(0.0, f64::max);
        let denied_to_nobody = users.len() as f64 * longest(Ticket::is_step, 1) + longest(|it| !it.is_step(), MIN_CHUNK);
        let took = time_ns(&prices, &planned);
        prop_assert!(took <= bound + denied_to_nobody + 1.0, "{} of {} and {}", took, bound, denied_to_nobody);
        // What a user had of its share: it leaves less than a token of each of its requests costs.
        let share = (bound - prices.base()) / users.len() as f64;
        let n_tokens: u32 = planned.iter().map(|(_, n)| n).sum();
        for (user, (_, asked)) in &users {
            let had: f64 = planned.iter().filter(|(it, _)| it.user == *user).map(|(it, n)| prices.sequence(it.n_before, *n)).sum();
            let of_user = tickets.iter().filter(|it| it.user == *user);
            let one = of_user.map(|it| prices.sequence(it.n_before, 1)).fold(0.0, f64::max);
            // A full batch is shared by tokens.
            prop_assert!(n_tokens >= LIMITS.n_tokens / users.len() as u32 || had + one + 1.0 >= asked.min(share), "{:?} had {} of {}", user, had, share);
        }
    }

    /// Whoever waits is served, though all others come back with something new each time, and whatever batches cost.
    #[test]
    fn nobody_starves_for_time(tickets in mixed(), which in 0usize..80, prices in any_prices(), step_ms in 1u64..5) {
        let one = tickets[which % tickets.len()];
        let mut queue = queue(step_ms * MS, prices, &tickets);
        let (mut left, mut n_arrivals) = (one.n_tokens, tickets.len() as u64);
        // Those of its process that were submitted before it go first.
        let is_before = |it: &&Ticket| it.process == one.process && it.pass <= one.pass;
        let n_before: u32 = tickets.iter().filter(is_before).map(|it| it.n_tokens).sum();
        let most = 4 * u64::from(n_before) * tickets.len() as u64;
        for number in 1..=most {
            for (ticket, n) in plan(&mut queue, LIMITS) {
                if ticket.pass == one.pass {
                    left -= n;
                    if left > 0 {
                        queue.push(Ticket { n_tokens: left, served: number, ..ticket });
                    }
                } else if ticket.n_tokens > n {
                    queue.push(Ticket { n_tokens: ticket.n_tokens - n, served: number, ..ticket });
                } else {
                    n_arrivals += 1;
                    let n_tokens = if n_arrivals % 3 > 0 { 1 } else { 1 + (n_arrivals * 37 % 600) as u32 };
                    queue.push(Ticket { pass: PassId(n_arrivals), n_tokens, served: number, ..ticket });
                }
            }
            if left == 0 {
                return Ok(());
            }
        }
        prop_assert!(false, "{:?} has {} tokens to go after {} batches", one, left, most);
    }
}
