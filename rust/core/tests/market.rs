//! What programs bid for pages, and what that costs them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use pie_core::market::{Account, MICRO};
use pie_core::{
    Capabilities, ContextId, EngineConfig, ErrorCode, Forward, GeneratorId, Input, Method,
    ProcessId, RequestId, Submission, UserId,
};
use support::world::{World, config, expected, options, output, prompt};

const RICH: u64 = 1_000_000 * MICRO;

/// A pool of so many pages of four tokens.
fn narrow(n_pages: u32) -> EngineConfig {
    EngineConfig {
        run_ahead: false,
        end_tokens: vec![],
        driver: Capabilities {
            n_pages,
            ..config().driver
        },
        ..config()
    }
}

/// A world with processes of these users, each with so much.
fn world_of(config: EngineConfig, users: &[u64], endowment: u64) -> World {
    let mut world = World::new(config);
    for (process, user) in (1..).zip(users) {
        let engine = &mut world.engine;
        engine
            .new_process(ProcessId(process), UserId(*user), process)
            .unwrap();
        engine.open_account(ProcessId(process), None, Some(endowment), 0);
    }
    world
}

fn account(world: &World, process: u64) -> Account {
    world.engine.account(ProcessId(process)).unwrap().clone()
}

fn context(world: &mut World, process: u64, tokens: &[u32]) -> ContextId {
    world.context_of(ProcessId(process), tokens)
}

/// A generation of so many tokens that bids as it was told in each of its steps.
fn bidding(world: &mut World, context: ContextId, bid: Option<u64>, n: u32) -> GeneratorId {
    let generator = world.generator(context, n);
    if let Some(bid) = bid {
        world.engine.set_bid(context, bid).unwrap();
        world.engine.rebid_each_step(generator, false).unwrap();
    }
    generator
}

/// Runs batches until one of the requests is there; returns which, and what it drew.
fn first_of(world: &mut World, requests: &mut Vec<(u64, RequestId)>) -> (u64, Vec<u32>) {
    loop {
        let done = requests
            .iter()
            .position(|(_, request)| world.ready.contains_key(request));
        if let Some(done) = done {
            let (process, request) = requests.remove(done);
            let answer = world.engine.take(request).expect("it is ready").unwrap();
            return (process, output(answer).tokens);
        }
        assert!(world.plan(), "nothing runs");
        world.finish();
    }
}

// rows: RS-191
#[test]
fn who_bids_ten_times_its_neighbours_finishes_first() {
    // Whichever of the four it is, and though it comes last.
    for bids in [
        [Some(10), Some(10), Some(10), Some(100)],
        [Some(10), Some(100), Some(10), Some(10)],
        [Some(100), Some(10), Some(10), Some(10)],
    ] {
        let mut world = world_of(narrow(12), &[1; 4], RICH);
        let mut requests = Vec::new();
        for (process, bid) in (1..).zip(bids) {
            let context = context(&mut world, process, &prompt(16, process as u32));
            let generator = bidding(&mut world, context, bid, 20);
            let request = world.submit(Submission::Run(generator)).unwrap();
            requests.push((process, request));
        }
        let highest = 1 + bids.iter().position(|bid| *bid == Some(100)).unwrap() as u64;
        let mut order = Vec::new();
        while !requests.is_empty() {
            let (process, tokens) = first_of(&mut world, &mut requests);
            // Whoever waits for pages gets the tokens that it would have had.
            assert_eq!(tokens, expected(&prompt(16, process as u32), 20));
            order.push(process);
        }
        assert_eq!(order[0], highest, "{bids:?}: {order:?}");
        assert!(world.engine.stats().n_auctions > 0);
        world.check();
    }
}

#[test]
fn the_floor_of_a_user_holds_while_another_bids_everything() {
    let mut world = world_of(narrow(12), &[1, 1, 1, 2], RICH);
    // Half of the pool is enough for all that the second user wants.
    let modest = context(&mut world, 4, &prompt(12, 9));
    world.engine.begin_idle(modest).unwrap();
    let generator = world.generator(modest, 10);
    let modest = world.submit(Submission::Run(generator)).unwrap();
    assert!(world.plan());
    world.finish();
    let mut greedy = Vec::new();
    for process in 1..=3 {
        let context = context(&mut world, process, &prompt(16, process as u32));
        let generator = bidding(&mut world, context, Some(RICH), 24);
        greedy.push(world.submit(Submission::Run(generator)).unwrap());
    }
    let mut most = 0;
    while !world.ready.contains_key(&modest) {
        let n_used = world.engine.user_stats(UserId(2)).n_pages_used;
        assert!(n_used >= most, "{n_used} of {most} pages are left");
        most = n_used;
        assert!(world.plan());
        world.finish();
    }
    let answer = world.engine.take(modest).expect("it is ready").unwrap();
    assert_eq!(output(answer).tokens, expected(&prompt(12, 9), 10));
    // It bade nothing, and so it paid no rent.
    assert_eq!(account(&world, 4).paid % u128::from(MICRO), 0);
    for request in greedy {
        world.wait(request).unwrap();
    }
}

/// Who waits without a page counts as much as who has some: one context that fills the pool has more than a share as
/// soon as another user asks.
#[test]
fn the_floor_holds_for_a_user_who_comes_last_and_has_no_page() {
    let mut world = world_of(narrow(12), &[1, 2], RICH);
    let greedy = context(&mut world, 1, &prompt(33, 1));
    let generator = bidding(&mut world, greedy, Some(RICH), 14);
    let greedy = world.submit(Submission::Run(generator)).unwrap();
    assert!(world.plan());
    world.finish();
    assert!(world.engine.user_stats(UserId(1)).n_pages_used > 6);
    // Five pages, and six in the end: half of the pool. Three are free.
    let modest = context(&mut world, 2, &prompt(17, 2));
    world.engine.begin_idle(modest).unwrap();
    let generator = world.generator(modest, 6);
    let modest = world.submit(Submission::Run(generator)).unwrap();
    let mut requests = vec![(1, greedy), (2, modest)];
    let first = first_of(&mut world, &mut requests);
    assert_eq!(first, (2, expected(&prompt(17, 2), 6)));
    let stats = world.engine.stats();
    assert!(stats.n_suspended > 0, "{stats:?}");
    assert!((1..32).contains(&stats.n_refused_max), "{stats:?}");
    let last = first_of(&mut world, &mut requests);
    assert_eq!(last, (1, expected(&prompt(33, 1), 14)));
    world.check();
}

/// Three contexts that fill the pool go on with a token each, for which there is no page.
fn contended(bids: [u64; 3]) -> World {
    let mut world = world_of(narrow(12), &[1; 3], RICH);
    let contexts = [1, 2, 3].map(|process| {
        let context = context(&mut world, process, &prompt(16, process as u32));
        world.flush(context).unwrap();
        context
    });
    for (context, bid) in contexts.into_iter().zip(bids) {
        world.engine.set_bid(context, bid).unwrap();
        let input = vec![Input {
            token: 40,
            position: None,
        }];
        let pass = Forward {
            input,
            ..Forward::default()
        };
        world
            .submit(Submission::Forward(context, Box::new(pass)))
            .unwrap();
    }
    world
}

#[test]
fn residents_pay_the_highest_bid_that_lost_and_it_returns_to_all() {
    let mut world = contended([100, 300, 200]);
    assert_eq!(world.engine.rent(), 0);
    assert!(world.plan());
    assert_eq!(world.engine.rent(), 100);
    let accounts = [1, 2, 3].map(|process| account(&world, process));
    // Four pages were filled before, at a credit each. Two contexts hold five pages each now.
    let price = u128::from(4 * MICRO);
    assert_eq!(
        accounts.clone().map(|account| account.paid),
        [price, price + 500, price + 500]
    );
    assert_eq!(accounts.map(|account| account.dividend), [334, 333, 333]);
    let stats = world.engine.stats();
    assert_eq!(
        (
            stats.n_auctions,
            stats.rent_microcredits,
            stats.rented_microcredits
        ),
        (1, 100, 1000)
    );
    world.check();
    // What was displaced has the pool for itself in the end.
    world.pump();
    world.check();
    let context = context(&mut world, 1, &[1]);
    for process in [1, 2, 3] {
        world.engine.end_process(ProcessId(process));
    }
    assert_eq!(
        world.engine.bid(context).unwrap_err().code,
        ErrorCode::ContextReleased
    );
    world.check();
}

#[test]
fn nobody_pays_more_than_it_has() {
    let mut world = World::new(narrow(12));
    for (process, endowment) in [(1, 4 * MICRO + 1000), (2, 4 * MICRO + 3), (3, RICH)] {
        let engine = &mut world.engine;
        engine
            .new_process(ProcessId(process), UserId(1), process)
            .unwrap();
        engine.open_account(ProcessId(process), None, Some(endowment), 0);
    }
    for process in [1, 2, 3] {
        let context = context(&mut world, process, &prompt(20, process as u32));
        world.flush(context).unwrap();
    }
    // Five pages would have cost five credits.
    assert_eq!(
        [1, 2].map(|process| account(&world, process).balance),
        [0, 0]
    );
    world.check();
}

#[test]
fn without_shortage_there_is_no_auction_and_no_rent() {
    let mut world = world_of(narrow(200), &[1, 2], RICH);
    let contexts = [1, 2].map(|process| context(&mut world, process, &prompt(10, 1)));
    for context in contexts {
        let generator = bidding(&mut world, context, Some(5 * MICRO), 30);
        assert_eq!(
            world.run(generator).unwrap().tokens,
            expected(&prompt(10, 1), 30)
        );
    }
    let stats = world.engine.stats();
    assert_eq!((stats.n_auctions, stats.rented_microcredits), (0, 0));
    assert_eq!(world.engine.rent(), 0);
    for process in [1, 2] {
        let account = account(&world, process);
        // 39 of 40 tokens are in pages of four, the last one is pending.
        assert_eq!(account.paid, u128::from(9 * MICRO));
        assert_eq!(account.dividends, 0);
    }
}

#[test]
fn a_page_costs_its_price_once_and_never_more_than_there_is() {
    let dear = EngineConfig {
        page_price: 2 * MICRO,
        ..config()
    };
    let mut world = world_of(dear, &[1], 5 * MICRO);
    assert_eq!(world.engine.page_price(), 2 * MICRO);
    let context = context(&mut world, 1, &prompt(7, 0));
    world.flush(context).unwrap();
    assert_eq!(account(&world, 1).balance, u128::from(3 * MICRO));
    world.engine.append(context, &prompt(2, 1)).unwrap();
    world.flush(context).unwrap();
    assert_eq!(account(&world, 1).balance, u128::from(MICRO));
    // A copy shares its pages, and pays for none.
    let fork = world.engine.fork(context).unwrap();
    world.flush(fork).unwrap();
    assert_eq!(account(&world, 1).balance, u128::from(MICRO));
    world.engine.append(fork, &prompt(12, 2)).unwrap();
    world.flush(fork).unwrap();
    let last = account(&world, 1);
    assert_eq!((last.balance, last.paid), (0, u128::from(5 * MICRO)));
    world.check();
}

#[test]
fn a_page_that_is_filled_again_costs_nothing_more() {
    let mut world = world_of(config(), &[1], 9 * MICRO);
    let context = context(&mut world, 1, &prompt(3, 0));
    world.flush(context).unwrap();
    for token in [40, 41, 42] {
        let position = None;
        let pass = Forward {
            input: vec![Input { token, position }],
            leaves_working_pages: true,
            ..Forward::default()
        };
        let submission = Submission::Forward(context, Box::new(pass));
        let request = world.submit(submission).unwrap();
        world.wait(request).unwrap();
        assert_eq!(account(&world, 1).paid, u128::from(MICRO));
        world.engine.truncate(context, 1).unwrap();
    }
    // A copy does not share what was truncated.
    let fork = world.engine.fork(context).unwrap();
    for (filled, n_paid) in [(fork, 2), (context, 2)] {
        world.engine.append(filled, &[43]).unwrap();
        world.flush(filled).unwrap();
        assert_eq!(account(&world, 1).paid, u128::from(n_paid * MICRO));
    }
    // In the place of a page that was dropped there is a new one.
    world.engine.drop_committed_pages(context, 1).unwrap();
    world.engine.append(context, &prompt(4, 1)).unwrap();
    world.flush(context).unwrap();
    assert_eq!(account(&world, 1).paid, u128::from(3 * MICRO));
    world.check();
}

#[test]
fn a_bid_holds_for_one_pass() {
    let mut world = world_of(narrow(200), &[1], RICH);
    let context = context(&mut world, 1, &prompt(8, 0));
    let default = world.engine.bid(context).unwrap();
    assert!(default > 0);
    world.engine.set_bid(context, 77).unwrap();
    assert_eq!(world.engine.bid(context), Ok(77));
    world.flush(context).unwrap();
    assert_ne!(world.engine.bid(context), Ok(77));
    // In a generation it is a step.
    let generator = world.generator(context, 9);
    world.engine.set_bid(context, 77).unwrap();
    world.step(generator).unwrap();
    assert_ne!(world.engine.bid(context), Ok(77));
    // Unless the generator keeps it.
    world.engine.rebid_each_step(generator, false).unwrap();
    world.engine.set_bid(context, 77).unwrap();
    for _ in 0..2 {
        world.step(generator).unwrap();
        assert_eq!(world.engine.bid(context), Ok(77));
    }
    world.engine.rebid_each_step(generator, true).unwrap();
    world.step(generator).unwrap();
    assert_ne!(world.engine.bid(context), Ok(77));
    assert_eq!(
        world.engine.highest_bid(ProcessId(1)),
        world.engine.bid(context).unwrap()
    );
    assert_eq!(world.engine.highest_bid(ProcessId(9)), 0);
}

#[test]
fn a_pass_that_is_cancelled_leaves_the_bid() {
    let mut world = world_of(narrow(200), &[1], RICH);
    let context = context(&mut world, 1, &prompt(8, 0));
    world.engine.set_bid(context, 77).unwrap();
    let request = world.submit(Submission::Flush(context)).unwrap();
    world.engine.cancel(request);
    assert_eq!(world.engine.bid(context), Ok(77));
}

#[test]
fn nothing_is_bid_within_a_scope() {
    let mut world = world_of(narrow(200), &[1], RICH);
    let context = context(&mut world, 1, &prompt(8, 0));
    world.engine.set_bid(context, 77).unwrap();
    world.engine.begin_idle(context).unwrap();
    world.engine.begin_idle(context).unwrap();
    world.engine.end_idle(context);
    assert_eq!(world.engine.bid(context), Ok(0));
    // A bid that is given within it counts behind it.
    world.engine.set_bid(context, 78).unwrap();
    assert_eq!(world.engine.bid(context), Ok(0));
    world.engine.end_idle(context);
    assert_eq!(world.engine.bid(context), Ok(78));
    world.engine.release(context);
    world.engine.end_idle(context);
    let error = world.engine.begin_idle(context).unwrap_err();
    assert_eq!(error.code, ErrorCode::ContextReleased);
}

// rows: RS-200
#[test]
fn the_default_bid_follows_balance_horizon_cap_and_pages() {
    let mut world = world_of(narrow(200), &[1], 1000 * MICRO);
    let context = context(&mut world, 1, &prompt(16, 0));
    world.flush(context).unwrap();
    let balance = account(&world, 1).balance as f64;
    assert_eq!(balance, 996e6);
    let rule = |mu: f64, cv2: f64, pages: f64| {
        let bid = (balance / mu) / (pages + mu * (1.0 + cv2) / 8.0);
        Ok(bid.floor() as u64)
    };
    assert_eq!(world.engine.bid(context), rule(256.0, 1.0, 4.0));
    let generator = world.generator(context, 50);
    assert_eq!(world.engine.bid(context), rule(50.0, 1.0, 4.0));
    world.engine.set_horizon(generator, 20).unwrap();
    assert_eq!(world.engine.bid(context), rule(20.0, 0.0, 4.0));
    // A horizon that is passed is one token away, and ends nothing.
    world.engine.set_horizon(generator, 1).unwrap();
    assert_eq!(world.step(generator).unwrap().unwrap().tokens.len(), 1);
    assert_eq!(world.step(generator).unwrap().unwrap().tokens.len(), 1);
    assert_eq!(
        world.engine.bid(context),
        Ok(((balance as u64 / 5) as f64)
            .min(balance / (5.0 + 0.125))
            .floor() as u64)
    );
    let unbounded = options(Method::Argmax);
    world.engine.new_generator(context, unbounded).unwrap();
    assert_eq!(world.engine.bid(context), rule(256.0, 1.0, 5.0));
}

#[test]
fn a_process_without_an_account_bids_nothing() {
    let mut world = World::with_process(narrow(200), 1);
    let context = world.context(&prompt(8, 0));
    world.engine.set_bid(context, 77).unwrap();
    assert_eq!(world.engine.bid(context), Ok(0));
    assert_eq!(world.engine.account(ProcessId(1)), None);
    world.flush(context).unwrap();
}

#[test]
fn children_have_their_endowment_from_their_parent() {
    let mut world = world_of(config(), &[1], 100);
    let [parent, child, other] = [1, 2, 3].map(ProcessId);
    let engine = &mut world.engine;
    engine.open_account(child, Some(parent), None, 30);
    engine.open_account(other, Some(parent), Some(1000), 30);
    // One that is open stays as it is.
    engine.open_account(other, None, Some(1000), 30);
    let balances = [parent, child, other].map(|id| engine.account(id).unwrap().balance);
    assert_eq!(balances, [0, 30, 70]);
    engine.close_account(other);
    engine.close_account(child);
    engine.close_account(child);
    assert_eq!(engine.account(parent).unwrap().balance, 100);
    assert_eq!(engine.account(child), None);
    world.check();
}

#[test]
fn the_time_of_a_tick_is_known() {
    let mut world = World::with_process(config(), 1);
    world.token_ns = 100;
    assert_eq!(world.engine.tick_ns(), 0);
    let context = world.context(&prompt(8, 0));
    world.flush(context).unwrap();
    assert_eq!(world.engine.tick_ns(), 900);
}
