//! Who drafts for the generators of a model.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use pie_core::{DraftEvent, DraftsWanted, GeneratorId};
use tokio::sync::watch;

use crate::sync::lock;

/// Drafts for a generator.
pub(super) trait Drafts: Debug + Send + Sync {
    /// Lets go of what it holds in the engine: the generator has ended.
    fn release(&self);
}

/// Those that draft, by their generators.
#[derive(Debug, Default)]
pub(super) struct Drafters(Mutex<HashMap<GeneratorId, Drafter>>);

#[derive(Debug)]
struct Drafter {
    drafts: Arc<dyn Drafts>,
    /// The last that was wanted; none: it is of no use any more.
    wanted: watch::Sender<Option<DraftsWanted>>,
}

impl Drafters {
    /// Adds one. What is wanted arrives at the receiver, until the generator ends.
    pub(super) fn add(
        &self,
        generator: GeneratorId,
        drafts: Arc<dyn Drafts>,
    ) -> watch::Receiver<Option<DraftsWanted>> {
        let (wanted, receiver) = watch::channel(None);
        lock(&self.0).insert(generator, Drafter { drafts, wanted });
        receiver
    }

    /// Tells them what happened. It is never called under the lock of a core.
    pub(super) fn tell(&self, events: Vec<DraftEvent>) {
        for event in events {
            match event {
                DraftEvent::Wanted(generator, wanted) => self.want(generator, Some(wanted)),
                DraftEvent::Unwanted(generator) => self.want(generator, None),
                DraftEvent::Ended(generator) => {
                    let ended = lock(&self.0).remove(&generator);
                    if let Some(drafter) = ended {
                        drafter.drafts.release();
                    }
                }
            }
        }
    }

    fn want(&self, generator: GeneratorId, wanted: Option<DraftsWanted>) {
        if let Some(drafter) = lock(&self.0).get(&generator) {
            drafter.wanted.send_replace(wanted);
        }
    }
}
