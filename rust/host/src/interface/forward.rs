//! `pie:core/forward`: forward passes that programs put together by themselves.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use pie_core::{
    ErrorCode, Forward, Input, MAX_FORWARD_ROWS, RowOutput, RowRequest, Submission, masks,
};
use tokio::sync::oneshot;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::DynPollable;

use super::adapter::AdapterHandle;
use super::bindings::pie::core::forward::{self, HostForwardPass, HostFuturePassOutput};
use super::bindings::pie::core::sampling::{Probe, Sampler, Slot, Speculation};
use super::bindings::pie::core::types;
use super::context::ContextHandle;
use super::errors::CallResult;
use super::futures::host_future;
use super::sampling::{core_probe, core_sampler, slot_of};
use super::view::view;
use crate::Error;
use crate::budget::{Charge, Purpose};
use crate::futures::{Future, Operation};
use crate::limits::Limits;
use crate::model::adapters::Version;
use crate::model::conversation::Context;
use crate::model::pass::Pass;
use crate::model::tokens::{Extras, TRAITS_BYTES};
use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;

/// What a token, a run of a mask and a row take while a pass is put together and when it is submitted, in bytes.
const INPUT_BYTES: usize = 2 * size_of::<Input>();
const RUN_BYTES: usize = 2 * size_of::<u32>();
const ROW_BYTES: usize = 2 * size_of::<RowRequest>() + 32;

/// What stands behind a `forward-pass` handle.
#[derive(Debug)]
pub struct ForwardPassHandle {
    context: Arc<Context>,
    /// None: it was executed.
    draft: Option<Draft>,
}

/// A pass that is put together. Its rows stand in the order in which they were attached: that is part of the key by
/// which they are drawn.
#[derive(Debug)]
struct Draft {
    forward: Forward,
    /// What each slot is made of.
    sources: Vec<Source>,
    /// Bytes of its attention masks, of its token mask, and of the lists of its probes.
    masks_bytes: usize,
    token_mask_bytes: usize,
    lists_bytes: usize,
    /// What it is computed with.
    adapter: Option<Arc<Version>>,
    charge: Charge,
}

/// Which rows a slot is made of.
#[derive(Debug)]
enum Source {
    /// What was drawn from these.
    Draws(Range<usize>),
    /// What was read of this one.
    Reading(usize),
}

impl Draft {
    /// Bytes of all that was put into it.
    fn n_bytes(&self) -> usize {
        self.forward.input.len() * INPUT_BYTES
            + self.forward.rows.len() * ROW_BYTES
            + self.masks_bytes
            + self.token_mask_bytes
            + self.lists_bytes
    }

    /// Adds rows that a slot is made of. Returns the index of the slot.
    fn attach(
        &mut self,
        rows: impl ExactSizeIterator<Item = RowRequest>,
    ) -> Result<Range<usize>, Error> {
        let first = self.forward.rows.len();
        let n = first.saturating_add(rows.len());
        if n > MAX_FORWARD_ROWS {
            return Err(refused(format!(
                "a forward pass wants {n} rows of logits, and may want at most {MAX_FORWARD_ROWS}; read fewer in one \
                 pass"
            )));
        }
        self.forward.rows.extend(rows);
        Ok(first..n)
    }

    /// Adds a slot. Returns its index.
    fn push(&mut self, source: Source) -> u32 {
        self.sources.push(source);
        // Each has a row at least, and these are bounded.
        (self.sources.len() - 1) as u32
    }
}

/// A pass that a program waits for.
#[derive(Debug)]
pub struct Execute {
    /// None: it was not submitted.
    pass: Option<Submitted>,
}

#[derive(Debug)]
struct Submitted {
    context: Arc<Context>,
    pass: Pass,
    sources: Vec<Source>,
    /// Tokens of its own.
    n_input: usize,
    /// What its tokens take besides.
    extras: Extras,
    /// For what was put into it and what it reads, until its answer is taken.
    _charge: Charge,
}

/// The future of [`Execute`].
pub type FuturePassOutput = Future<Execute>;

impl Execute {
    /// Submits a pass that is charged with what it reads, too.
    ///
    /// # Errors
    /// `limit-engine-memory`, `context-released`; the pass can be executed again.
    fn submit(context: Arc<Context>, draft: &mut Option<Draft>) -> Result<FuturePassOutput, Error> {
        let waiting = draft.as_mut().ok_or_else(executed)?;
        if let Some(adapter) = &waiting.adapter {
            context.hold(adapter.clone())?;
        }
        let (length, n_taken, slots, n_read) = context.model.with_engine(|engine| {
            let (id, forward) = (context.id, &waiting.forward);
            let n_read = forward.n_bytes(&engine.config().driver);
            let slots = engine.masked_slots(id, forward)?;
            Ok::<_, Error>((engine.length(id)?, engine.n_to_take(id)?, slots, n_read))
        })?;
        let n_traits = traits_bytes(&waiting.forward, n_taken as usize);
        waiting.charge.grow((n_read + n_traits) as u64)?;
        let Some(draft) = draft.take() else {
            return Err(Error::internal("a pass that was there is gone"));
        };
        let Draft {
            mut forward,
            sources,
            charge,
            ..
        } = draft;
        let n_input = forward.input.len();
        forward.read_masks(slots);
        let extras = extras_of(&forward, length as usize + n_input);
        let submission = Submission::Forward(context.id, Box::new(forward));
        let (pass, receiver) = Pass::submit(&context.model, submission);
        let submitted = Submitted {
            context,
            pass,
            sources,
            n_input,
            extras,
            _charge: charge,
        };
        let source = Self {
            pass: Some(submitted),
        };
        Ok(Future::new(source, receiver))
    }

    /// One that fails at once.
    fn refused(error: Error) -> FuturePassOutput {
        let (sender, receiver) = oneshot::channel();
        // The receiver is there: it is returned.
        let _ = sender.send(Err(error));
        Future::new(Self { pass: None }, receiver)
    }
}

impl Operation for Execute {
    type Raw = ();
    type Answer = forward::PassOutput;

    fn finish(&mut self, (): ()) -> Result<forward::PassOutput, Error> {
        let submitted = self.pass.take();
        let Some(submitted) = submitted else {
            return Err(Error::internal("a pass that was refused has an answer"));
        };
        let Submitted { pass, n_input, .. } = &submitted;
        let context = &submitted.context;
        let rows = context.take_forwarded(pass, *n_input, &submitted.extras)?;
        Ok(forward::PassOutput {
            slots: slots(rows, &submitted.sources)?,
            speculation: Speculation {
                drafted: 0,
                accepted: 0,
            },
        })
    }

    fn abandon(&mut self, _answer: Option<Result<(), Error>>) {
        if let Some(submitted) = &self.pass {
            submitted.pass.cancel();
        }
    }

    fn limit(&self, limits: &Limits) -> Option<Duration> {
        limits.pass
    }
}

/// Bytes of the positions and masks of all tokens of a pass while it is under way, those included that it takes from
/// its context: where one token has some of its own, each has.
fn traits_bytes(forward: &Forward, n_taken: usize) -> usize {
    let has_positions = || forward.input.iter().any(|input| input.position.is_some());
    if forward.masks.is_empty() && !has_positions() {
        return 0;
    }
    (n_taken + forward.input.len()) * TRAITS_BYTES
}

/// What the tokens of a pass take besides that end at `end`: those with masks, or else those of its own that have
/// positions.
fn extras_of(forward: &Forward, end: usize) -> Extras {
    if !forward.masks.is_empty() {
        return Extras::ending(end, forward.masks.iter().map(Vec::len));
    }
    let has_positions = forward.input.iter().any(|input| input.position.is_some());
    let n_tokens = if has_positions {
        forward.input.len()
    } else {
        0
    };
    Extras::ending(end, std::iter::repeat_n(0, n_tokens))
}

/// What the rows of a pass gave, slot by slot.
fn slots(rows: Vec<RowOutput>, sources: &[Source]) -> Result<Vec<Slot>, Error> {
    let missing = || Error::internal("a forward pass was answered without a row that it wanted");
    let mut drawn: Vec<Vec<u32>> = Vec::with_capacity(rows.len());
    let mut readings = Vec::with_capacity(rows.len());
    for row in rows {
        drawn.push(row.tokens);
        readings.push(row.readings);
    }
    let slot = |source: &Source| match source {
        Source::Draws(rows) => {
            let drawn = drawn.get(rows.clone()).ok_or_else(missing)?;
            Ok(Slot::Tokens(drawn.concat()))
        }
        Source::Reading(row) => {
            let reading = readings.get_mut(*row).and_then(Vec::pop);
            Ok(slot_of(&reading.ok_or_else(missing)?))
        }
    };
    sources.iter().map(slot).collect()
}

view! {
    /// Forward passes, and who pays for them while they are put together.
    Forwards { table: HandleTable, record: Arc<ProcessRecord> }
}

impl Forwards<'_> {
    /// Changes a pass that was not executed, charged with `n_bytes` more while it changes, and then with what it has.
    fn change<T>(
        &mut self,
        handle: &Resource<ForwardPassHandle>,
        n_bytes: usize,
        change: impl FnOnce(&Context, &mut Draft) -> Result<T, Error>,
    ) -> CallResult<T> {
        let pass = self.table.get_mut(handle)?;
        let draft = pass.draft.as_mut().ok_or_else(executed)?;
        draft.charge.grow(n_bytes as u64)?;
        let changed = change(&pass.context, draft);
        draft.charge.resize(draft.n_bytes() as u64)?;
        Ok(changed?)
    }
}

impl forward::Host for Forwards<'_> {}

impl HostForwardPass for Forwards<'_> {
    fn create(
        &mut self,
        context: Resource<ContextHandle>,
    ) -> CallResult<Resource<ForwardPassHandle>> {
        let context = self.table.context(&context)?;
        context.seq_len()?;
        let charge = self.record.account.charge(Purpose::Options, 0)?;
        let draft = Some(Draft {
            forward: Forward::default(),
            sources: Vec::new(),
            masks_bytes: 0,
            token_mask_bytes: 0,
            lists_bytes: 0,
            adapter: None,
            charge,
        });
        Ok(self.table.push(ForwardPassHandle { context, draft })?)
    }

    fn input(&mut self, this: Resource<ForwardPassHandle>, tokens: Vec<u32>) -> CallResult<()> {
        self.change(&this, tokens.len() * INPUT_BYTES, |context, draft| {
            context.check_tokens(&tokens)?;
            let input = tokens.iter().map(|&token| Input {
                token,
                position: None,
            });
            draft.forward.input.extend(input);
            Ok(())
        })
    }

    fn input_at(
        &mut self,
        this: Resource<ForwardPassHandle>,
        tokens: Vec<u32>,
        positions: Vec<u32>,
    ) -> CallResult<()> {
        self.change(&this, tokens.len() * INPUT_BYTES, |context, draft| {
            let (n_tokens, n_positions) = (tokens.len(), positions.len());
            if n_tokens != n_positions {
                return Err(refused(format!(
                    "input_at got {n_tokens} tokens and {n_positions} positions; give a position for each token"
                )));
            }
            context.check_tokens(&tokens)?;
            let limit = context.model.with_engine(|engine| engine.config().max_context());
            if let Some(position) = positions.iter().find(|&&position| position >= limit) {
                return Err(refused(format!(
                    "position {position} is beyond those that the model knows; give positions below {limit}"
                )));
            }
            let input = tokens.iter().zip(positions).map(|(&token, position)| Input {
                token,
                position: Some(position),
            });
            draft.forward.input.extend(input);
            Ok(())
        })
    }

    fn attention_mask(
        &mut self,
        this: Resource<ForwardPassHandle>,
        masks: Vec<Vec<u32>>,
    ) -> CallResult<()> {
        let n_runs: usize = masks.iter().map(|mask| mask.len() + 16).sum();
        let n_bytes = n_runs * RUN_BYTES;
        self.change(&this, n_bytes, |context, draft| {
            // How long its row will be is known when it is executed; how long it may be is known already.
            let limit = context
                .model
                .with_engine(|engine| engine.config().max_context());
            masks
                .iter()
                .try_for_each(|mask| masks::check(mask, limit))?;
            draft.forward.masks = masks;
            draft.masks_bytes = n_bytes;
            Ok(())
        })
    }

    fn logit_mask(&mut self, this: Resource<ForwardPassHandle>, mask: Vec<u32>) -> CallResult<()> {
        let n_bytes = mask.len() * RUN_BYTES;
        self.change(&this, n_bytes, |context, draft| {
            let mask = masks::shortest(&mask, context.model.vocab_size())?;
            if mask == [0] {
                let message = "the token mask allows nothing; allow at least one token";
                return Err(refused(message.to_owned()));
            }
            draft.token_mask_bytes = mask.len() * RUN_BYTES;
            draft.forward.token_mask = mask;
            Ok(())
        })
    }

    fn sample(
        &mut self,
        this: Resource<ForwardPassHandle>,
        indices: Vec<u32>,
        sampler: Sampler,
    ) -> CallResult<u32> {
        let sampler = core_sampler(&sampler)?;
        sampler.method.params_and_draws()?;
        self.change(&this, indices.len() * ROW_BYTES, |_, draft| {
            if indices.is_empty() {
                let message = "a sampler was attached to no token; give the indices of the tokens behind which it \
                               draws";
                return Err(refused(message.to_owned()));
            }
            let rows = indices.iter().map(|&index| RowRequest {
                index,
                sampler: Some(sampler),
                probes: Vec::new(),
                late_mask: false,
            });
            let rows = draft.attach(rows)?;
            Ok(draft.push(Source::Draws(rows)))
        })
    }

    fn probe(
        &mut self,
        this: Resource<ForwardPassHandle>,
        index: u32,
        probe: Probe,
    ) -> CallResult<u32> {
        let list_bytes = match &probe {
            Probe::Logprobs(tokens) => tokens.len() * RUN_BYTES,
            _ => 0,
        };
        self.change(&this, ROW_BYTES + list_bytes, |context, draft| {
            let probe = core_probe(probe);
            probe.check(context.model.vocab_size())?;
            let row = RowRequest {
                index,
                sampler: None,
                probes: vec![probe],
                late_mask: false,
            };
            let rows = draft.attach([row].into_iter())?;
            draft.lists_bytes += list_bytes;
            Ok(draft.push(Source::Reading(rows.start)))
        })
    }

    fn set_adapter(
        &mut self,
        this: Resource<ForwardPassHandle>,
        adapter: Resource<AdapterHandle>,
    ) -> CallResult<()> {
        let adapter = self.table.get(&adapter)?.clone();
        let user = self.record.username.clone();
        self.change(&this, 0, |context, draft| {
            let version = adapter.version(&context.model, &user)?;
            let used = &mut draft.forward.adapter;
            (used.id, used.version) = (version.name.id, version.name.version);
            draft.adapter = Some(version);
            Ok(())
        })
    }

    fn set_zo_seed(&mut self, this: Resource<ForwardPassHandle>, seed: i64) -> CallResult<()> {
        self.change(&this, 0, |_, draft| {
            draft.forward.adapter.zo_seed = Some(seed.cast_unsigned());
            Ok(())
        })
    }

    fn leave_working_pages(&mut self, this: Resource<ForwardPassHandle>) -> CallResult<()> {
        self.change(&this, 0, |_, draft| {
            draft.forward.leaves_working_pages = true;
            Ok(())
        })
    }

    fn start_position(&mut self, this: Resource<ForwardPassHandle>) -> CallResult<u32> {
        let context = &self.table.get(&this)?.context;
        Ok(context
            .model
            .with_engine(|engine| engine.length(context.id))?)
    }

    fn execute(
        &mut self,
        this: Resource<ForwardPassHandle>,
    ) -> wasmtime::Result<Resource<FuturePassOutput>> {
        let pass = self.table.get_mut(&this)?;
        let context = pass.context.clone();
        let future = Execute::submit(context, &mut pass.draft);
        self.table
            .push_future(future.unwrap_or_else(Execute::refused))
    }

    fn drop(&mut self, this: Resource<ForwardPassHandle>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

host_future!(
    Forwards<'_>,
    HostFuturePassOutput,
    FuturePassOutput,
    forward::PassOutput
);

fn executed() -> Error {
    refused("this forward pass was executed; make another one".to_owned())
}

fn refused(message: String) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    forward::add_to_linker::<_, Forwards<'static>>(linker, Forwards::of)
}

#[cfg(test)]
mod tests {
    use wasmtime_wasi::p2::Pollable;

    use super::*;
    use crate::budget::{Account, Budget};
    use crate::futures::Awaited;
    use crate::model::testing::Driven;

    /// A pass that is put together, charged to `account`.
    fn draft(forward: Forward, account: &Account) -> Option<Draft> {
        Some(Draft {
            forward,
            sources: Vec::new(),
            masks_bytes: 0,
            token_mask_bytes: 0,
            lists_bytes: 0,
            adapter: None,
            charge: account.charge(Purpose::Options, 0).unwrap(),
        })
    }

    /// Executes a pass of one token, which has a position of its own or not, behind what nobody has computed.
    fn execute(driven: &Driven, account: &Account, position: Option<u32>) -> Result<(), Error> {
        let context = driven.context(account, 30_000);
        let forward = Forward {
            input: vec![Input { token: 5, position }],
            ..Forward::default()
        };
        let executed = Execute::submit(context.clone(), &mut draft(forward, account));
        let executed = executed.map(drop);
        context.release();
        executed
    }

    #[test]
    fn positions_of_all_tokens_of_a_pass_are_charged_while_it_is_under_way() {
        let driven = Driven::new(None);
        let most = 30_000 * (TRAITS_BYTES as u64);
        let account = Budget::new(64 << 20, Some(most)).account("ada");
        execute(&driven, &account, None).unwrap();
        let refused = execute(&driven, &account, Some(7)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
        let account = Budget::new(64 << 20, Some(2 * most)).account("ada");
        execute(&driven, &account, Some(7)).unwrap();
    }

    /// The most runs of a mask.
    const N_RUNS: usize = 1024;
    const N_MASKED: u32 = 100;
    /// The masks of so many tokens take more than twice the step in which a context is charged, up or down.
    const N_DROPPED: u32 = 20;

    /// Runs a pass of tokens with long masks: each token sees every second one of the first.
    fn run_masked(context: &Arc<Context>, account: &Account) {
        let tokens = 300..300 + N_MASKED;
        let mask = vec![1; N_RUNS];
        let forward = Forward {
            input: tokens
                .map(|token| Input {
                    token,
                    position: None,
                })
                .collect(),
            masks: vec![mask; N_MASKED as usize],
            leaves_working_pages: true,
            ..Forward::default()
        };
        let future = Execute::submit(context.clone(), &mut draft(forward, account));
        answer(future.unwrap()).unwrap();
    }

    /// The answer of a pass.
    fn answer(mut future: FuturePassOutput) -> Result<forward::PassOutput, Error> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        runtime.block_on(future.ready());
        future.take().unwrap()
    }

    /// Drops some of the last tokens in working pages.
    fn drop_some(context: &Context) {
        let dropped =
            context.drop_tokens(|engine, id| engine.truncate_working_page_tokens(id, N_DROPPED));
        dropped.unwrap();
    }

    #[test]
    fn masks_are_charged_until_their_own_tokens_are_dropped() {
        let driven = Driven::new(None);
        let account = Budget::new(64 << 20, Some(32 << 20)).account("ada");
        let context = driven.context(&account, N_RUNS as u32);
        run_masked(&context, &account);
        let held_bytes = || account.usage().n_bytes();
        let all_bytes = held_bytes();
        let masks_bytes = u64::from(N_DROPPED) * (N_RUNS * size_of::<u32>()) as u64;
        for n_times in 1..=u64::from(N_MASKED / N_DROPPED) {
            drop_some(&context);
            let freed_bytes = all_bytes - held_bytes();
            let n_freed = (freed_bytes + masks_bytes / 2) / masks_bytes;
            assert_eq!(n_freed, n_times, "{freed_bytes} bytes are free");
        }
    }

    #[test]
    fn masks_of_dropped_tokens_are_not_charged_for_those_that_were_appended_behind() {
        let driven = Driven::new(None);
        let account = Budget::new(64 << 20, Some(32 << 20)).account("ada");
        let context = driven.context(&account, N_RUNS as u32);
        run_masked(&context, &account);
        let all_bytes = account.usage().n_bytes();
        context.append(&[5; N_MASKED as usize]).unwrap();
        for _ in 0..N_MASKED / N_DROPPED {
            drop_some(&context);
        }
        let masks_bytes = u64::from(N_MASKED) * (N_RUNS * size_of::<u32>()) as u64;
        let held_bytes = account.usage().n_bytes();
        assert!(
            held_bytes + masks_bytes / 10 * 9 <= all_bytes,
            "{held_bytes} of {all_bytes} bytes are charged yet"
        );
    }
}
