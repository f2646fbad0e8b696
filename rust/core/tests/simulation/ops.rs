//! What may happen, and on which engines.

use std::time::Duration;

use pie_core::{
    Adapter, AdapterName, Capabilities, Command, Drafting, EngineConfig, Method, Probe,
};
use proptest::prelude::*;

use super::support::fold;
use super::support::world::config;

pub const V: u32 = 50;
pub const END: u32 = 3;
/// User and launch seed of each process.
pub const PROCESSES: [(u64, u64); 3] = [(1, 7), (1, 8), (2, 7)];
pub const NAMES: [&str; 4] = ["a", "b", "c", "d"];
pub const MAX_SNAPSHOTS: u32 = 6;
pub const MAX_USER_SNAPSHOTS: u32 = 4;
const DRIVER_TIMEOUT_NS: u64 = 1000;
const LATE_MASK_NS: u64 = 1500;

/// A token mask that follows from a word. It allows a token at least.
pub fn late_mask(word: u64) -> Vec<bool> {
    let allows = |token: u64| fold(word, token).is_multiple_of(3) || token == word % u64::from(V);
    (0..u64::from(V)).map(allows).collect()
}

#[derive(Clone, Debug)]
pub enum Op {
    NewContext(usize),
    Append(usize, Vec<u32>),
    Fork(usize),
    Release(usize),
    Save(usize, usize),
    Snapshot(usize),
    Open {
        process: usize,
        name: usize,
        take: bool,
    },
    /// A context leaves the engine as a value, and comes back as one of a process.
    Transplant(usize, usize),
    /// The same with its pages.
    Carry(usize, usize),
    Delete(usize, usize),
    Suspend(usize),
    Bid(usize, u64),
    /// A context bids nothing from now on, or does again.
    Idle(usize, bool),
    /// The steps of a generator bid anew, or what was given holds for all.
    Rebid(usize, bool),
    /// A process ends, and is launched again.
    Relaunch(usize),
    Truncate(usize, u32),
    Flush(usize),
    Generate {
        context: usize,
        method: Method,
        seed: Option<u64>,
        max_tokens: Option<u32>,
        stop: Vec<u32>,
        adapter: Adapter,
        drafting: Drafting,
    },
    Step(usize),
    /// One that draws nothing.
    ClearedStep(usize),
    /// One that reads the row from which it draws; it may draw nothing.
    ProbedStep(usize, bool),
    /// One for which tokens are proposed: so many that are right, so many others.
    DraftedStep(usize, usize, Vec<u32>),
    /// What the last step accepted is replaced, or first tokens of it are kept and others follow.
    Accept(usize, usize, Vec<u32>),
    Run(usize),
    Forward(usize, ForwardOp),
    Reserve(usize, u32),
    Commit(usize, u32),
    ReleasePages(usize, u32),
    TruncateWorking(usize, u32),
    DropCommitted(usize, u32),
    Take(usize),
    Cancel(usize),
    /// A request is cancelled, perhaps under way, and what is planned then overtakes its batch.
    Overtake(usize),
    /// The token masks of the steps of a generator come late from now on, or with them.
    LateMasks(usize, bool),
    /// One of the masks that are awaited is given, after one that is refused, or not.
    GiveMask(usize, bool),
    /// What can be drawn from rows that were kept is drawn.
    DrawKept,
    /// Everything is computed, and masks are waited for until it is too long.
    Tire,
    /// A process, or the operator, has the driver carry something out.
    Command(usize, Command),
    /// The driver does, where it has a command.
    FinishCommand,
    CancelCommand(usize),
    NextWork,
    Finish(usize),
    /// Runs and takes everything.
    Settle,
    /// The driver fails, before or after it has written into the pages.
    FailBatch {
        which: usize,
        computed: bool,
    },
    SpoilRow(usize),
    FailSequence(usize),
    /// Time goes by; batches that are overdue are abandoned. Whatever answers them later comes too late.
    Hang(u64),
    /// The device is lost with all its pages; before another one comes, perhaps everything is refused for a while.
    Lose {
        refuses: bool,
    },
}

/// A forward pass; what does not fit the context is cut.
#[derive(Clone, Debug)]
pub struct ForwardOp {
    pub input: Vec<(u32, Option<u32>)>,
    /// One for each token, over all slots; what is beyond them is hidden.
    pub masks: Option<Vec<Vec<bool>>>,
    /// Masks may be longer than the context.
    pub overlong: bool,
    pub adapter: Adapter,
    pub rows: Vec<RowOp>,
    /// The tokens that may be drawn; empty: all.
    pub token_mask: Vec<bool>,
    pub leaves: bool,
}

#[derive(Clone, Debug)]
pub struct RowOp {
    pub index: u32,
    pub sampler: Option<(Method, Option<u64>)>,
    pub probes: Vec<Probe>,
    /// The token mask that is given later.
    pub late: Option<Vec<bool>>,
}

/// Adapters that differ in one thing each, most often none.
fn adapter() -> impl Strategy<Value = Adapter> {
    let one = |id, version, zo_seed| Adapter {
        id,
        version,
        zo_seed,
    };
    prop_oneof![
        6 => Just(Adapter::default()),
        1 => Just(one(1, 0, None)),
        1 => Just(one(2, 0, None)),
        1 => Just(one(1, 1, None)),
        1 => Just(one(1, 0, Some(0))),
        1 => Just(one(1, 0, Some(5))),
    ]
}

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![
        Just(Method::Argmax),
        (0.5f32..2.0, 0.3f32..=1.0).prop_map(|(temperature, p)| Method::TopP { temperature, p }),
        (0.5f32..2.0, 1u32..20).prop_map(|(temperature, k)| Method::TopK { temperature, k }),
        (0.5f32..2.0, 0.0f32..0.5).prop_map(|(temperature, p)| Method::MinP { temperature, p }),
    ]
}

/// Mostly one that can be read.
fn probe() -> impl Strategy<Value = Probe> {
    let temperature = prop_oneof![30 => 0.3f32..3.0, 5 => Just(1.0f32), 1 => Just(0.0f32)];
    let k = prop_oneof![2 => Just(0u32), 8 => 1..8u32, 2 => Just(V), 1 => Just(V + 1)];
    let token = prop_oneof![60 => 0..V, 1 => Just(V)];
    prop_oneof![
        2 => Just(Probe::Logits),
        2 => (temperature, k).prop_map(|(temperature, k)| Probe::Distribution { temperature, k }),
        2 => prop::collection::vec(token, 1..5).prop_map(|tokens| Probe::Logprobs(tokens.into())),
        1 => Just(Probe::Entropy),
        1 => Just(Probe::Embedding),
    ]
}

fn forward() -> impl Strategy<Value = ForwardOp> {
    // Few tokens and few positions, so that contexts come to share pages that differ in one thing.
    let token = || prop_oneof![6 => Just(0u32), 2 => 0..4u32, 1 => 0..V];
    let position = || prop_oneof![20 => 0u32..8, 1 => Just(5000u32)];
    let input = prop_oneof![
        3 => prop::collection::vec((token(), Just(None)), 0..9),
        1 => prop::collection::vec((token(), prop::option::of(position())), 0..9),
    ];
    let mask = prop_oneof![
        Just(vec![]),
        Just(vec![true; 80]),
        prop::collection::vec(prop::bool::weighted(0.8), 1..40),
    ];
    let draws = prop_oneof![
        4 => method(),
        1 => (0.5f32..2.0, 0u32..4).prop_map(|(temperature, draws)| Method::Multinomial { temperature, draws }),
    ];
    let row = (
        0u32..8,
        prop::option::weighted(0.8, (draws, prop::option::weighted(0.3, any::<u64>()))),
        prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(probe(), 1..4)],
        prop::option::weighted(0.3, any::<u64>().prop_map(late_mask)),
    );
    (
        input,
        prop::option::weighted(0.4, prop::collection::vec(mask, 9)),
        prop::bool::weighted(0.03),
        adapter(),
        prop::collection::vec(
            row.prop_map(|(index, sampler, probes, late)| RowOp { index, sampler, probes, late }),
            0..5,
        ),
        prop_oneof![3 => Just(vec![]), 1 => prop_oneof![20 => Just(V as usize), 1 => 0..V as usize + 2].prop_flat_map(|n| prop::collection::vec(prop::bool::weighted(0.3), n))],
        prop::bool::weighted(0.3),
    )
        .prop_map(|(input, masks, overlong, adapter, rows, token_mask, leaves)| ForwardOp {
            input,
            masks,
            overlong,
            adapter,
            rows,
            token_mask,
            leaves,
        })
}

fn command() -> impl Strategy<Value = Command> {
    let name = || (1u64..4).prop_map(|id| AdapterName { id, version: 0 });
    let path = "/adapter".to_owned();
    prop_oneof![
        3 => name().prop_map(move |adapter| Command::LoadAdapter { adapter, path: path.clone() }),
        1 => name().prop_map(|adapter| Command::CreateAdapter { adapter, path: "/new".to_owned(), rank: 1, alpha: 1.0, sigma: 0.5 }),
        1 => (name(), name()).prop_map(|(from, to)| Command::ChangeAdapter {
            from,
            to,
            path: "/changed".to_owned(),
            sigma: None,
            changes: [(1, 0.5)].into(),
        }),
        2 => (name(), name()).prop_map(|(from, to)| Command::CopyAdapter { from, to }),
        2 => name().prop_map(|adapter| Command::DropAdapter { adapter }),
    ]
}

pub fn op() -> impl Strategy<Value = Op> {
    let generate = (
        0usize..6,
        method(),
        prop::option::of(any::<u64>()),
        prop::option::weighted(0.8, 0u32..12),
        prop::collection::vec(0..V, 0..3),
        adapter(),
        prop_oneof![3 => Just(Drafting::None), 1 => Just(Drafting::NGram)],
    );
    prop_oneof![
        2 => (0usize..3).prop_map(Op::NewContext),
        3 => (0usize..6, prop::collection::vec(prop_oneof![3 => Just(0u32), 1 => 0..4u32, 1 => 0..V], 0..14)).prop_map(|(context, tokens)| Op::Append(context, tokens)),
        3 => (0usize..4).prop_map(Op::Fork),
        1 => (0usize..6).prop_map(Op::Release),
        3 => (0usize..6, 0usize..4).prop_map(|(context, name)| Op::Save(context, name)),
        1 => (0usize..6).prop_map(Op::Snapshot),
        4 => (0usize..3, 0usize..8, any::<bool>()).prop_map(|(process, name, take)| Op::Open { process, name, take }),
        2 => (0usize..6, 0usize..3).prop_map(|(context, process)| Op::Transplant(context, process)),
        2 => (0usize..6, 0usize..3).prop_map(|(context, process)| Op::Carry(context, process)),
        1 => (0usize..3, 0usize..8).prop_map(|(process, name)| Op::Delete(process, name)),
        2 => (0usize..6).prop_map(Op::Suspend),
        2 => (0usize..6, prop_oneof![4 => 0u64..4, 1 => 5u64..2000, 1 => any::<u64>()]).prop_map(|(context, bid)| Op::Bid(context, bid)),
        1 => (0usize..6, prop::bool::weighted(0.3)).prop_map(|(context, begins)| Op::Idle(context, begins)),
        1 => (0usize..6, any::<bool>()).prop_map(|(context, rebids)| Op::Rebid(context, rebids)),
        1 => (0usize..12).prop_map(Op::Relaunch),
        1 => (0usize..6, 0u32..6).prop_map(|(context, n)| Op::Truncate(context, n)),
        2 => (0usize..6).prop_map(Op::Flush),
        3 => generate.prop_map(|(context, method, seed, max_tokens, stop, adapter, drafting)| Op::Generate { context, method, seed, max_tokens, stop, adapter, drafting }),
        5 => (0usize..6).prop_map(Op::Step),
        2 => (0usize..6).prop_map(Op::Run),
        1 => (0usize..6).prop_map(Op::ClearedStep),
        1 => (0usize..6, any::<bool>()).prop_map(|(context, is_cleared)| Op::ProbedStep(context, is_cleared)),
        3 => (0usize..6, 0usize..5, prop::collection::vec(0..V, 0..4)).prop_map(|(context, n_right, others)| Op::DraftedStep(context, n_right, others)),
        4 => (0usize..6, 0usize..4, prop::collection::vec(0..V, 0..5)).prop_map(|(context, n_kept, tokens)| Op::Accept(context, n_kept, tokens)),
        5 => (0usize..6, forward()).prop_map(|(context, forward)| Op::Forward(context, forward)),
        1 => (0usize..6, 0u32..4).prop_map(|(context, n)| Op::Reserve(context, n)),
        1 => (0usize..6, 0u32..3).prop_map(|(context, n)| Op::Commit(context, n)),
        1 => (0usize..6, 0u32..3).prop_map(|(context, n)| Op::ReleasePages(context, n)),
        1 => (0usize..6, 0u32..6).prop_map(|(context, n)| Op::TruncateWorking(context, n)),
        2 => (0usize..6, 0u32..3).prop_map(|(context, n)| Op::DropCommitted(context, n)),
        5 => (0usize..6).prop_map(Op::Take),
        2 => (0usize..6).prop_map(Op::Cancel),
        2 => (0usize..6).prop_map(Op::Overtake),
        3 => (0usize..6, any::<bool>()).prop_map(|(context, late)| Op::LateMasks(context, late)),
        7 => (0usize..8, prop::bool::weighted(0.1)).prop_map(|(which, refused)| Op::GiveMask(which, refused)),
        2 => Just(Op::DrawKept),
        1 => Just(Op::Tire),
        2 => (0usize..4, command()).prop_map(|(process, command)| Op::Command(process, command)),
        2 => Just(Op::FinishCommand),
        1 => (0usize..4).prop_map(Op::CancelCommand),
        6 => Just(Op::NextWork),
        4 => (0usize..2).prop_map(Op::Finish),
        5 => Just(Op::Settle),
        1 => (0usize..2, any::<bool>()).prop_map(|(which, computed)| Op::FailBatch { which, computed }),
        1 => (0usize..8).prop_map(Op::SpoilRow),
        1 => (0usize..8).prop_map(Op::FailSequence),
        1 => (DRIVER_TIMEOUT_NS / 3..2 * DRIVER_TIMEOUT_NS).prop_map(Op::Hang),
        // Rarely: what is lost has not to be evicted, and has no time to be copied.
        1 => (prop::bool::weighted(0.3), prop::bool::weighted(0.2)).prop_map(|(loses, refuses)| if loses { Op::Lose { refuses } } else { Op::Settle }),
    ]
}

pub fn configs() -> impl Strategy<Value = EngineConfig> {
    (
        1u32..6,
        prop_oneof![9 => 6u32..16, 1 => Just(400u32)],
        1u32..40,
        1u32..20,
        1u32..6,
        prop_oneof![9 => 12u32..60, 1 => Just(4096u32)],
        prop_oneof![1 => Just(0u32), 8 => 1u32..12],
        prop::bool::weighted(0.95),
        1u32..6,
        prop_oneof![Just(0u64), Just(1_000_000u64)],
        any::<bool>(),
        (
            prop_oneof![1 => Just(0u64), 2 => 1u64..60],
            prop_oneof![2 => Just(0u64), 2 => 1u64..50],
        ),
    )
        .prop_map(
            |(
                page_size,
                n_pages,
                max_batch_tokens,
                prefill_chunk,
                max_batch_seqs,
                max_context,
                host_pages,
                run_ahead,
                max_batch_rows,
                copy_page_ns,
                follows,
                (shared_step_ns, page_price),
            )| {
                EngineConfig {
                    page_price,
                    shared_step: Duration::from_nanos(shared_step_ns),
                    max_snapshots: MAX_SNAPSHOTS,
                    max_user_snapshots: MAX_USER_SNAPSHOTS,
                    run_ahead,
                    max_batch_rows,
                    max_batch_tokens,
                    prefill_chunk,
                    max_batch_seqs,
                    end_tokens: vec![END],
                    late_mask: Duration::from_nanos(LATE_MASK_NS),
                    driver_timeout: Duration::from_nanos(DRIVER_TIMEOUT_NS),
                    driver: Capabilities {
                        follows,
                        host_pages,
                        copy_page_ns,
                        page_size,
                        n_pages,
                        max_positions: max_context,
                        // Some take no more tokens, and so no more rows, than are asked of them.
                        max_batch_tokens: if page_size % 2 == 1 {
                            max_batch_tokens
                        } else {
                            config().driver.max_batch_tokens
                        },
                        ..config().driver
                    },
                    ..config()
                }
            },
        )
}
