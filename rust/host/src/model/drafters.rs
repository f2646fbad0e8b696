//! Who drafts for the generators of a model.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
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
pub(super) struct Drafters {
    all: Mutex<HashMap<GeneratorId, Drafter>>,
    /// Counts what is told.
    n_numbered: AtomicU64,
}

#[derive(Debug)]
struct Drafter {
    drafts: Arc<dyn Drafts>,
    /// Of what was told last.
    number: u64,
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
        let drafter = Drafter {
            drafts,
            number: 0,
            wanted,
        };
        lock(&self.all).insert(generator, drafter);
        receiver
    }

    /// Removes that of a generator, for which another one drafts from now on, or none. It lets go of what it holds when
    /// it is dropped.
    pub(super) fn remove(&self, generator: GeneratorId) -> Option<Arc<dyn Drafts>> {
        let removed = lock(&self.all).remove(&generator);
        removed.map(|drafter| drafter.drafts)
    }

    /// The number of what is to be told next: of events that the core has given, before its lock is free again.
    pub(super) fn number(&self) -> u64 {
        self.n_numbered.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Tells them what happened. It is never called under the lock of a core, so that what happened later may be told
    /// before: what has a lower number than that is not told any more.
    pub(super) fn tell(&self, number: u64, events: Vec<DraftEvent>) {
        for event in events {
            match event {
                DraftEvent::Wanted(generator, wanted) => self.want(number, generator, Some(wanted)),
                DraftEvent::Unwanted(generator) => self.want(number, generator, None),
                DraftEvent::Ended(generator) => {
                    let ended = lock(&self.all).remove(&generator);
                    if let Some(drafter) = ended {
                        drafter.drafts.release();
                    }
                }
            }
        }
    }

    fn want(&self, number: u64, generator: GeneratorId, wanted: Option<DraftsWanted>) {
        let mut all = lock(&self.all);
        if let Some(drafter) = all.get_mut(&generator)
            && drafter.number <= number
        {
            drafter.number = number;
            drafter.wanted.send_replace(wanted);
        }
    }

    /// What was wanted was drafted: its tokens are kept no longer.
    pub(super) fn forget(&self, generator: GeneratorId, drafted: &DraftsWanted) {
        if let Some(drafter) = lock(&self.all).get(&generator) {
            drafter.wanted.send_if_modified(|wanted| {
                wanted.take_if(|wanted| wanted == drafted);
                // Nobody has to be told.
                false
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use pie_core::RequestId;

    use super::*;

    #[derive(Debug)]
    struct Nothing;

    impl Drafts for Nothing {
        fn release(&self) {}
    }

    fn wanted(request: u64) -> DraftsWanted {
        DraftsWanted {
            request: RequestId(request),
            n_known: 0,
            tokens: vec![1, 2],
            seed: 3,
            mask: None,
            n_drafts: 4,
        }
    }

    #[test]
    fn what_happened_first_is_not_told_last() {
        let (drafters, generator) = (Drafters::default(), GeneratorId(1));
        let receiver = drafters.add(generator, Arc::new(Nothing));
        let [first, second] = [(); 2].map(|()| drafters.number());
        // Whoever has the first events is overtaken by whoever has the second.
        let later = vec![
            DraftEvent::Unwanted(generator),
            DraftEvent::Wanted(generator, wanted(2)),
        ];
        drafters.tell(second, later);
        drafters.tell(first, vec![DraftEvent::Wanted(generator, wanted(1))]);
        assert_eq!(*receiver.borrow(), Some(wanted(2)));
        drafters.tell(drafters.number(), vec![DraftEvent::Unwanted(generator)]);
        assert_eq!(*receiver.borrow(), None);
    }

    #[test]
    fn the_tokens_of_what_was_drafted_are_let_go_of_and_nobody_is_woken() {
        let (drafters, generator) = (Drafters::default(), GeneratorId(1));
        let mut receiver = drafters.add(generator, Arc::new(Nothing));
        let number = drafters.number();
        drafters.tell(number, vec![DraftEvent::Wanted(generator, wanted(1))]);
        assert_eq!(*receiver.borrow_and_update(), Some(wanted(1)));
        drafters.forget(generator, &wanted(2));
        assert_eq!(*receiver.borrow(), Some(wanted(1)));
        drafters.forget(generator, &wanted(1));
        assert_eq!(*receiver.borrow(), None);
        assert!(!receiver.has_changed().unwrap());
    }
}
