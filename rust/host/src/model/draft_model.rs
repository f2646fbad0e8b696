//! A model that drafts for a generator of another one, or of the same.
//!
//! A context of the draft model follows the tokens of the generator. A task waits until drafts are wanted, has that
//! context say what is known, and has the draft model go on from there, by the sampler, the mask, the seed and the
//! positions of the generator: so it draws what the generator draws wherever the two models think alike. What is wanted
//! anew, or no more, ends what is under way.
//!
//! Where the draft model holds no context of that length, the generation goes on without drafts, and asks for some
//! again after a rest. That follows from the text alone. Whatever else keeps it from drafting (its driver fails, or
//! there is no memory left) fails the step: how many tokens a step accepts can be seen, and so it must not depend on
//! load.

use std::sync::Arc;

use pie_core::{
    Answer, ContextId, Drafting, DraftsWanted, ErrorCode, GeneratorId, GeneratorOptions, ProcessId,
    RequestId, Sampler, Submission,
};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::Model;
use super::conversation::Context;
use super::drafters::Drafts;
use crate::Error;
use crate::budget::Account;
use crate::errors::stopped;

/// The draft model of a generator, with the context that follows it.
#[derive(Debug)]
pub(crate) struct DraftModel {
    context: Context,
    sampler: Sampler,
}

impl DraftModel {
    /// Drafts with `model`, which knows the process, for a generator that draws by a sampler.
    ///
    /// # Errors
    /// Those of a context.
    pub(crate) fn new(
        model: Arc<Model>,
        process: ProcessId,
        account: Account,
        sampler: Sampler,
    ) -> Result<Self, Error> {
        Ok(Self {
            context: Context::create_draft(model, process, account)?,
            sampler,
        })
    }

    /// What is drafted; nothing where the draft model holds no context of that length.
    ///
    /// # Errors
    /// Whatever else keeps it from drafting.
    async fn draft(&self, wanted: &DraftsWanted) -> Result<Vec<u32>, Error> {
        self.try_to_draft(wanted).await.or_else(|error| {
            if matches!(error.code, ErrorCode::ContextFull | ErrorCode::OutOfPages) {
                return Ok(Vec::new());
            }
            let model = self.context.model.name();
            tracing::debug!(model, %error, "nothing is drafted");
            Err(Error {
                message: format!(
                    "the draft model {model:?} could not draft: {}",
                    error.message
                ),
                ..error
            })
        })
    }

    async fn try_to_draft(&self, wanted: &DraftsWanted) -> Result<Vec<u32>, Error> {
        let model = &self.context.model;
        self.context
            .follow(wanted.n_known, &wanted.tokens, wanted.n_drafts)?;
        let options = GeneratorOptions {
            sampler: Sampler {
                seed: Some(wanted.seed),
                ..self.sampler
            },
            seed: None,
            max_tokens: Some(wanted.n_drafts),
            adapter: pie_core::Adapter::default(),
            stop: Vec::new(),
            template_stop: Vec::new(),
            token_mask: wanted.mask.as_deref().unwrap_or_default().to_vec(),
            drafting: Drafting::None,
        };
        let id = self.context.id;
        let generator = model.with_engine(|engine| engine.new_generator(id, options))?;
        let (request, receiver) = model.submit(Submission::Run(generator));
        let run = DraftRun {
            model,
            generator,
            request,
        };
        receiver.await.map_err(|_| stopped())??;
        match model.with_engine(|engine| engine.take(run.request)) {
            Some(Ok(Answer::Generated(output))) => Ok(output.tokens),
            Some(Err(error)) => Err(error),
            _ => Err(Error::internal("drafts that were ready are not there")),
        }
    }
}

impl Drafts for DraftModel {
    fn release(&self) {
        self.context.release();
    }
}

impl Drop for DraftModel {
    fn drop(&mut self) {
        self.release();
    }
}

/// A run of the draft model. One that is given up is cancelled.
struct DraftRun<'a> {
    model: &'a Arc<Model>,
    generator: GeneratorId,
    request: RequestId,
}

impl Drop for DraftRun<'_> {
    fn drop(&mut self) {
        self.model.cancel(self.request);
        self.model
            .with_engine(|engine| engine.drop_generator(self.generator));
    }
}

impl Model {
    /// A generator for which `drafts` drafts until it ends. A task of `threads` does so.
    ///
    /// # Errors
    /// Those of the core.
    pub(crate) fn new_drafted_generator(
        self: &Arc<Self>,
        context: ContextId,
        options: GeneratorOptions,
        drafts: DraftModel,
        threads: &Handle,
    ) -> Result<GeneratorId, Error> {
        let drafts = Arc::new(drafts);
        let (generator, wanted) = self.with_engine(|engine| {
            let generator = engine.new_generator(context, options)?;
            // Under the lock of the core: nobody can be told of its end before somebody listens.
            let wanted = self.drafters.add(generator, drafts.clone());
            Ok::<_, Error>((generator, wanted))
        })?;
        threads.spawn(draft(self.clone(), generator, drafts, wanted));
        Ok(generator)
    }

    /// Has the drafts of a generator that is not used yet be made otherwise: where another model is to make them, by
    /// `drafts`. Whatever made them before is let go of.
    ///
    /// # Errors
    /// Those of the core.
    pub(crate) fn set_drafting(
        self: &Arc<Self>,
        generator: GeneratorId,
        drafting: Drafting,
        drafts: Option<DraftModel>,
        threads: &Handle,
    ) -> Result<(), Error> {
        let drafts = drafts.map(Arc::new);
        let (_before, wanted) = self.with_engine(|engine| {
            engine.set_drafting(generator, drafting)?;
            let before = self.drafters.remove(generator);
            let add = |drafts: &Arc<DraftModel>| self.drafters.add(generator, drafts.clone());
            Ok::<_, Error>((before, drafts.as_ref().map(add)))
        })?;
        if let Some((drafts, wanted)) = drafts.zip(wanted) {
            threads.spawn(draft(self.clone(), generator, drafts, wanted));
        }
        Ok(())
    }
}

/// Drafts for a generator of a model until it ends.
async fn draft(
    model: Arc<Model>,
    generator: GeneratorId,
    drafts: Arc<DraftModel>,
    mut wanted: watch::Receiver<Option<DraftsWanted>>,
) {
    while wanted.changed().await.is_ok() {
        loop {
            let Some(request) = wanted.borrow_and_update().clone() else {
                break;
            };
            tokio::select! {
                biased;
                changed = wanted.changed() => match changed {
                    Ok(()) => {}
                    Err(_) => return,
                },
                drafted = drafts.draft(&request) => {
                    model.drafters.forget(generator, &request);
                    model.give_drafts(&request, drafted.as_deref().map_err(Clone::clone));
                    break;
                }
            }
        }
    }
}
