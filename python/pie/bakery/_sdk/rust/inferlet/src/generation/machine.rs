//! The handle to the state machine in the engine, which is made as late as nobody can tell.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use crate::bindings::pie::core::context::Context as RawContext;
use crate::bindings::pie::core::generation as raw;
use crate::context::Shared;
use crate::kept::Keeper;
use crate::sample::Seeded;
use crate::{Result, task};

/// What a generator is to be made with.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) sampler: Seeded,
    pub(crate) options: raw::Options,
    /// Set where the program chose.
    pub(crate) ignore_eos: Option<bool>,
}

/// A generator, from its plan on.
#[derive(Debug)]
pub(crate) struct Machine {
    context: Rc<Shared>,
    keeper: Keeper,
    plan: RefCell<Plan>,
    /// What the engine made of the plan, or why it refused: then every use of it returns that.
    made: OnceCell<Result<raw::Generator>>,
}

impl Machine {
    pub(crate) fn new(context: Rc<Shared>, sampler: Seeded) -> Rc<Self> {
        let options = raw::Options {
            max_tokens: None,
            stop: Vec::new(),
            seed: None,
            auto_flush: true,
        };
        let plan = RefCell::new(Plan {
            sampler,
            options,
            ignore_eos: None,
        });
        Rc::new(Self {
            context,
            keeper: Keeper::new(),
            plan,
            made: OnceCell::new(),
        })
    }

    /// The generator in the engine, unless an error waits to be met.
    pub(crate) fn generator(&self) -> Result<&raw::Generator> {
        // Asked for first: a refusal is kept, and so met here.
        let made = self.make();
        self.context.keeper.meet()?;
        self.keeper.meet()?;
        made
    }

    /// Runs as far as `until` says.
    pub(crate) async fn advance(&self, until: raw::Until) -> Result<raw::Event> {
        let event = self.generator()?.advance(until);
        task::answer(event).await
    }

    /// The answer of a call that has no `Result`; the default where it fails, with the error kept.
    pub(crate) fn ask<T: Default, E: Into<String>>(
        &self,
        call: impl FnOnce(&raw::Generator) -> std::result::Result<T, E>,
    ) -> T {
        self.keeper
            .value_of(self.make().and_then(|made| call(made).map_err(Into::into)))
    }

    /// Changes the plan, or what was made of it; the error is kept.
    pub(crate) fn change<E: Into<String>>(
        &self,
        planned: impl FnOnce(&mut Plan),
        made: impl FnOnce(&raw::Generator) -> std::result::Result<(), E>,
    ) {
        match self.made.get() {
            None => planned(&mut self.plan.borrow_mut()),
            Some(_) => self.ask(made),
        }
    }

    /// Makes it in the engine, once, after everything older on its context. A refusal is kept.
    pub(crate) fn make(&self) -> Result<&raw::Generator> {
        let context = self.context.raw();
        let made = self.made.get_or_init(|| {
            self.plan
                .borrow()
                .make(context)
                .inspect_err(|error| self.keeper.keep(error.clone()))
        });
        made.as_ref().map_err(Clone::clone)
    }
}

impl Plan {
    fn make(&self, context: &RawContext) -> Result<raw::Generator> {
        let made = raw::Generator::create(context, self.sampler.into(), &self.options)?;
        if let Some(ignore) = self.ignore_eos {
            made.ignore_eos(ignore)?;
        }
        Ok(made)
    }
}
