//! A model for tests of what programs have of one, and a driver for it.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use pie_core::{
    Capabilities, EngineConfig, GeneratorId, GeneratorOptions, Method, ProcessId, Sampler, UserId,
};
use pie_text::Chat;
use pie_text::grammar::Matcher;

use super::conversation::Context;
use super::generator::Generator;
use super::grammars::{Grammars, OwnedSource};
use super::held_grammars::HeldGrammar;
use super::{Model, ModelConfig, bringing, dummy};
use crate::Error;
use crate::budget::{Account, Purpose};
use crate::snapshots::config::{PageKeeping, SnapshotConfig};
use crate::snapshots::store::{ModelIdentity, SnapshotStore};

/// The process of a test.
pub(crate) const PROCESS: ProcessId = ProcessId(1);
/// Tokens of the embedded model.
const VOCAB_SIZE: u32 = 4096;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/pie/pie_tiny")
}

/// The text side of the embedded model.
pub(crate) fn tiny_chat() -> Arc<Chat> {
    Arc::new(Chat::from_dir(&folder(), VOCAB_SIZE).unwrap())
}

/// A model that knows the process and that nobody drives.
pub(crate) fn undriven() -> Arc<Model> {
    with_process(made())
}

/// One that nobody knows.
fn made() -> Model {
    made_on(|_| ())
}

/// The same on a driver that is changed so.
fn made_on(change: impl FnOnce(&mut Capabilities)) -> Model {
    let mut engine = EngineConfig::new("tiny", VOCAB_SIZE);
    // The dummy driver tells them apart by their names.
    engine.driver.adapters = true;
    change(&mut engine.driver);
    let config = ModelConfig {
        folder: folder(),
        engine,
        is_isolated: false,
    };
    Model::new(config, None).unwrap()
}

fn with_process(model: Model) -> Arc<Model> {
    let model = Arc::new(model);
    let made = model.with_engine(|engine| engine.new_process(PROCESS, UserId(1), 7));
    made.unwrap();
    model
}

/// A model that the dummy driver drives until this is dropped.
#[derive(Debug)]
pub(crate) struct Driven {
    pub(crate) model: Arc<Model>,
    thread: Option<JoinHandle<()>>,
}

impl Driven {
    /// One that answers every text with `reply`; without one, by what the dummy driver computes.
    pub(crate) fn new(reply: Option<&str>) -> Self {
        Self::of(undriven(), reply)
    }

    /// One whose batches the test answers by itself.
    pub(crate) fn by_hand() -> Self {
        Self {
            model: undriven(),
            thread: None,
        }
    }

    /// One whose snapshots lie in a folder, without their pages.
    pub(crate) fn keeping_in(dir: &Path) -> Self {
        Self::keeping_pages_in(dir, PageKeeping::Never, |_| ())
    }

    /// One whose snapshots lie in a folder, on a driver that is changed so.
    pub(crate) fn keeping_pages_in(
        dir: &Path,
        pages: PageKeeping,
        change: impl FnOnce(&mut Capabilities),
    ) -> Self {
        let mut model = made_on(change);
        let config = SnapshotConfig {
            pages,
            free_bytes: 0,
            ..SnapshotConfig::default()
        };
        let identity = ModelIdentity {
            name: "tiny".to_owned(),
            backend: "dummy".to_owned(),
            folder: folder(),
        };
        model.keep_in(SnapshotStore::new(dir, config, identity));
        let model = with_process(model);
        bringing::start(&model).unwrap();
        Self::of(model, None)
    }

    fn of(model: Arc<Model>, reply: Option<&str>) -> Self {
        let reply = reply.map(|reply| (String::new(), reply.to_owned()));
        let thread = dummy::drive(model.clone(), reply.into_iter().collect()).unwrap();
        Self {
            model,
            thread: Some(thread),
        }
    }

    /// A context of so many tokens.
    pub(crate) fn context(&self, account: &Account, n_tokens: u32) -> Arc<Context> {
        context_of(&self.model, account, n_tokens)
    }

    /// A generator of a context, which takes the most probable tokens.
    pub(crate) fn generator(&self, context: &Arc<Context>, account: &Account) -> Generator {
        let (options, sampler) = (greedy(), greedy().sampler);
        let made = self
            .model
            .with_engine(|engine| engine.new_generator(context.id, options));
        let charge = account.charge(Purpose::Options, 0).unwrap();
        Generator::new(context.clone(), made.unwrap(), sampler, charge)
    }

    /// Has a generator be constrained by a grammar, for which `account` is charged.
    pub(crate) fn constrain(&self, generator: &Generator, source: &OwnedSource, account: &Account) {
        let (grammars, chat) = (Grammars::default(), self.model.chat());
        let grammar = grammars.check("ada", source).unwrap();
        let compiled = grammars.compile("ada", chat, &grammar).unwrap();
        let mut held = HeldGrammar::new(account, grammar).unwrap();
        let held = held.hold(account, compiled).unwrap();
        let matcher: Matcher = held.matcher(chat.end_tokens().to_vec());
        generator.constrain(&matcher, &held, account).unwrap();
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.model.stop();
        self.model.close_snapshots();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// A context of a model, of so many tokens that nobody has computed.
pub(crate) fn context_of(model: &Arc<Model>, account: &Account, n_tokens: u32) -> Arc<Context> {
    let context = Context::create(model.clone(), PROCESS, account.clone()).unwrap();
    let tokens: Vec<u32> = (0..n_tokens).map(|n| 300 + n % 1000).collect();
    context.append(&tokens).unwrap();
    Arc::new(context)
}

/// The next step of a generator, which has not ended.
pub(crate) fn step(generator: &Generator) -> Result<pie_core::Output, Error> {
    let opened = generator.with_engine(|engine, id: GeneratorId| engine.next_step(id))?;
    assert!(opened.is_some());
    let (pass, receiver) = generator.submit_step();
    receiver.blocking_recv().unwrap()?;
    generator.take_step(&pass)
}

fn greedy() -> GeneratorOptions {
    GeneratorOptions {
        sampler: Sampler {
            method: Method::Argmax,
            seed: None,
        },
        seed: None,
        max_tokens: None,
        adapter: pie_core::Adapter::default(),
        stop: Vec::new(),
        template_stop: Vec::new(),
        token_mask: Vec::new(),
        drafting: pie_core::Drafting::None,
    }
}
