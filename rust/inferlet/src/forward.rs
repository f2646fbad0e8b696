//! Forward passes that a program puts together by itself.

use std::marker::PhantomData;
use std::rc::Rc;

use crate::adapter::Adapter;
use crate::bindings::pie::core::forward as raw;
use crate::bindings::pie::core::types::Error;
use crate::handle::{Owner, ProbeHandle, SampleHandle};
use crate::kept::Keeper;
use crate::output::Output;
use crate::probe::Probe;
use crate::sample::Seeded;
use crate::shared::Shared;
use crate::{Result, brle, task};

/// A pass over the pending token of a context, its buffer and tokens of its own, in this order. Indices and attention
/// masks count the tokens of its own; where it has none, the pending and buffered ones.
///
/// ```no_run
/// # use inferlet::prelude::*;
/// # async fn behind(ctx: &Context, token: u32) -> Result<Option<u32>> {
/// let mut fwd = ctx.forward();
/// fwd.input(&[token]);
/// let h = fwd.sample(&[0], Sampler::Argmax);
/// let out = fwd.execute().await?;
/// Ok(out.token(h))
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a pass computes nothing before it is executed"]
pub struct Forward<'ctx> {
    pass: Rc<Pass>,
    borrowed: PhantomData<&'ctx ()>,
}

/// A pass of the engine with the context that it works on, which lives as long. Dropped in this order.
#[derive(Debug)]
struct Pass {
    /// The pass, or why the engine refused to make it: then every use of it returns that.
    made: Result<raw::ForwardPass>,
    context: Rc<Shared>,
    keeper: Keeper,
    owner: Owner,
}

impl Forward<'_> {
    pub(crate) fn new(context: Rc<Shared>) -> Self {
        let keeper = Keeper::new();
        let made = raw::ForwardPass::create(&context.raw)
            .map_err(String::from)
            .inspect_err(|error| keeper.keep(error.clone()));
        let pass = Pass {
            made,
            context,
            keeper,
            owner: Owner::new(),
        };
        Self {
            pass: Rc::new(pass),
            borrowed: PhantomData,
        }
    }

    /// This pass without the borrow of its context, which can be changed while the pass lives.
    pub fn into_owned(self) -> Forward<'static> {
        Forward {
            pass: self.pass,
            borrowed: PhantomData,
        }
    }

    /// Adds tokens, each at the position that is its index in the context. One outside the vocabulary is the error
    /// `invalid-token`, which is kept.
    pub fn input(&mut self, tokens: &[u32]) -> &mut Self {
        self.change(|made| made.input(tokens))
    }

    /// Adds tokens at positions that may repeat, jump and reorder; as many positions as tokens.
    pub fn input_at(&mut self, tokens: &[u32], positions: &[u32]) -> &mut Self {
        self.change(|made| made.input_at(tokens, positions))
    }

    /// What each token attends to, over the slots of the context after the pass, together with causality: a mask for
    /// each token, in place of those that were given before.
    pub fn attention_mask(&mut self, masks: &[Vec<u32>]) -> &mut Self {
        self.checked(brle::check_all_runs(masks, brle::MAX_ROW), |made| {
            made.attention_mask(masks)
        })
    }

    /// The tokens that samplers may draw, in place of a mask that was given before; probes do not see it.
    pub fn mask(&mut self, mask: &[u32]) -> &mut Self {
        self.checked(brle::check_runs(mask, brle::MAX_ROW), |made| {
            made.logit_mask(mask)
        })
    }

    /// Draws from the rows behind these tokens. Parameters out of range are the error `invalid-sampler`, which is kept.
    pub fn sample(&mut self, indices: &[u32], sampler: impl Into<Seeded>) -> SampleHandle {
        let sampler = sampler.into().into();
        SampleHandle::new(
            self.pass.owner,
            self.ask(|made| made.sample(indices, sampler)),
        )
    }

    /// Reads the row behind this token. Parameters out of range are the error `invalid-probe`, which is kept.
    pub fn probe<P: Probe>(&mut self, index: u32, probe: P) -> ProbeHandle<P> {
        let slot = self.ask(|made| made.probe(index, &probe.to_raw()));
        ProbeHandle::new(self.pass.owner, slot)
    }

    /// Computes all tokens with an adapter.
    pub fn adapter(&mut self, adapter: &Adapter) -> &mut Self {
        self.change(|made| made.set_adapter(adapter.raw()?))
    }

    /// Perturbs the adapter by this seed. Without an adapter the pass fails with `invalid-argument`.
    pub fn zo_seed(&mut self, seed: i64) -> &mut Self {
        self.change(|made| made.set_zo_seed(seed))
    }

    /// The position that the first token of its own takes by itself: all that the context holds, its buffer included.
    /// 0 where the call fails: its error is kept.
    pub fn start_position(&self) -> u32 {
        self.ask(raw::ForwardPass::start_position)
    }

    /// How many tokens a page of the context holds.
    pub fn page_size(&self) -> u32 {
        self.pass.context.raw.page_size()
    }

    /// Runs it, once. It does not borrow the pass. Dropped before its end it is cancelled; the context is then as it
    /// was, as after an error.
    ///
    /// # Errors
    /// A kept error; `context-busy`, `context-full`, `out-of-pages`, `unsupported`, `driver-failed`; `invalid-argument`
    /// for what does not fit together, where there is nothing to compute, and for a pass that was executed before.
    pub fn execute(&self) -> impl Future<Output = Result<Output>> + use<> {
        let pass = Rc::clone(&self.pass);
        async move {
            let answer = task::answer(pass.made()?.execute());
            Ok(Output::of_pass(answer.await?, pass.owner))
        }
    }

    /// Returns the error that an earlier call kept, once.
    ///
    /// # Errors
    /// That error.
    pub fn check(&self) -> Result<()> {
        self.pass.made().map(drop)
    }

    fn change(
        &mut self,
        change: impl FnOnce(&raw::ForwardPass) -> std::result::Result<(), Error>,
    ) -> &mut Self {
        self.ask(change);
        self
    }

    /// Changes the pass where `check` holds, whose error is kept.
    fn checked(
        &mut self,
        check: Result<()>,
        change: impl FnOnce(&raw::ForwardPass) -> std::result::Result<(), Error>,
    ) -> &mut Self {
        match check {
            Ok(()) => self.change(change),
            Err(error) => {
                self.pass.keeper.keep(error);
                self
            }
        }
    }

    /// The answer of a call that has no `Result`; the default where it fails, with the error kept.
    fn ask<T: Default>(
        &self,
        call: impl FnOnce(&raw::ForwardPass) -> std::result::Result<T, Error>,
    ) -> T {
        let made = self.pass.made.as_ref().map_err(Clone::clone);
        self.pass
            .keeper
            .value_of(made.and_then(|made| Ok(call(made)?)))
    }
}

impl Pass {
    /// The pass in the engine, unless an error waits to be met.
    fn made(&self) -> Result<&raw::ForwardPass> {
        self.context.keeper.meet()?;
        self.keeper.meet()?;
        self.made.as_ref().map_err(Clone::clone)
    }
}
