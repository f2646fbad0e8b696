//! Brings the pages of contexts that were opened from disk, once a pass wants them.
//!
//! Each model that keeps pages has a thread for that: it reads a run of one context, then one of the next, so that
//! nobody waits for a context of another that is much longer. Whatever becomes of the pages, the pass that waits for
//! them goes on: what has not come is computed.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::thread;

use pie_core::ContextId;

use super::Model;
use super::keeping::{Job, Opening};
use super::kept_pages::bring_next;
use crate::Error;

/// Starts the thread that brings the pages of a model until the model is dropped, where it keeps any.
///
/// # Errors
/// `internal` when there is no thread to be had.
pub(crate) fn start(model: &Arc<Model>) -> Result<(), Error> {
    let keeping = model.keeping.as_ref().filter(|it| it.form().is_some());
    let Some(jobs) = keeping.and_then(|keeping| keeping.take_jobs()) else {
        return Ok(());
    };
    let weak = Arc::downgrade(model);
    let thread = thread::Builder::new()
        .name("pie-pages".to_owned())
        .spawn(move || work(&jobs, &weak));
    thread.map(drop).map_err(|error| {
        Error::internal(format!(
            "the thread that brings pages cannot be started: {error}"
        ))
    })
}

/// What is known of contexts whose pages lie on disk.
#[derive(Default)]
struct Openings {
    /// Nobody wants them yet.
    waiting: HashMap<ContextId, Opening>,
    /// Passes wait for them.
    wanted: VecDeque<(ContextId, Opening)>,
}

fn work(jobs: &Receiver<Job>, model: &Weak<Model>) {
    let mut openings = Openings::default();
    loop {
        if openings.wanted.is_empty() {
            let Ok(job) = jobs.recv() else { return };
            openings.take(job, model);
        }
        while let Ok(job) = jobs.try_recv() {
            openings.take(job, model);
        }
        let Some(model) = model.upgrade() else { return };
        openings.bring(&model);
    }
}

impl Openings {
    fn take(&mut self, job: Job, model: &Weak<Model>) {
        let Some(model) = model.upgrade() else { return };
        match job {
            Job::Opened(context, opening) => {
                self.waiting.insert(context, opening);
            }
            Job::Wanted(context) => match self.waiting.remove(&context) {
                Some(opening) => self.wanted.push_back((context, opening)),
                // Another pass has asked before: it goes on when that does.
                None if self.wanted.iter().any(|(id, _)| *id == context) => {}
                None => model.end_wish(context),
            },
            Job::Gone(context) => {
                let gone = self.waiting.remove(&context);
                if let (Some(opening), Some(keeping)) = (gone, &model.keeping) {
                    keeping.store.release(&opening.held);
                }
            }
        }
    }

    /// Brings the next run of the context that comes next.
    fn bring(&mut self, model: &Model) {
        let Some((context, mut opening)) = self.wanted.pop_front() else {
            return;
        };
        let keeping = model.keeping.as_ref();
        if keeping.is_some_and(|keeping| bring_next(model, keeping, &mut opening)) {
            self.wanted.push_back((context, opening));
            return;
        }
        if let Some(keeping) = keeping {
            keeping.store.release(&opening.held);
        }
        model.end_wish(context);
    }
}

impl Model {
    /// What could be had of the pages of a context is there.
    pub(super) fn end_wish(&self, context: ContextId) {
        self.with_engine(|engine| engine.pages_arrived(context));
        self.inbox.ring();
    }
}
