//! The executor: one future, and the events that it waits for. What an event is stays abstract, so that this file is
//! plain logic and its tests need no engine.

use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use slab::Slab;

/// Where events come from.
pub(crate) trait EventSource {
    /// A place to look for one event.
    type Pollable;

    /// Suspends until at least one is ready; the indices of those that are, in any order. Never called without
    /// pollables.
    fn wait(&self, pollables: &[&Self::Pollable]) -> Vec<u32>;

    /// The same without suspending; none may be ready.
    fn look(&self, pollables: &[&Self::Pollable]) -> Vec<u32>;
}

/// Nothing that the future waits for could ever happen.
#[derive(Debug, PartialEq)]
pub(crate) struct Deadlock;

/// The events that are waited for.
#[derive(Debug)]
pub(crate) struct Reactor<P> {
    entries: RefCell<Slab<Entry<P>>>,
}

#[derive(Debug)]
struct Entry<P> {
    pollable: P,
    /// None once the event has come: it is not asked for again.
    waker: Option<Waker>,
}

impl<P> Reactor<P> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: RefCell::new(Slab::new()),
        }
    }

    /// Waits for an event from now on; its key.
    fn insert(&self, pollable: P, waker: Waker) -> usize {
        self.entries.borrow_mut().insert(Entry {
            pollable,
            waker: Some(waker),
        })
    }

    /// Whether the event has come; where it has not, `waker` is woken when it does.
    fn has_come(&self, key: usize, waker: &Waker) -> bool {
        match self
            .entries
            .borrow_mut()
            .get_mut(key)
            .map(|entry| &mut entry.waker)
        {
            Some(Some(known)) => {
                known.clone_from(waker);
                false
            }
            Some(None) | None => true,
        }
    }

    fn remove(&self, key: usize) {
        self.entries.borrow_mut().try_remove(key);
    }

    /// Takes the wakers of the events that `ask` finds, of those still waited for.
    fn take_ready(&self, ask: impl FnOnce(&[&P]) -> Vec<u32>) -> Option<Vec<Waker>> {
        let ready: Vec<usize> = {
            let entries = self.entries.borrow();
            let (keys, pollables): (Vec<usize>, Vec<&P>) = entries
                .iter()
                .filter(|(_, entry)| entry.waker.is_some())
                .map(|(key, entry)| (key, &entry.pollable))
                .unzip();
            if keys.is_empty() {
                return None;
            }
            ask(&pollables)
                .into_iter()
                .filter_map(|index| keys.get(index as usize).copied())
                .collect()
        };
        let mut entries = self.entries.borrow_mut();
        Some(
            ready
                .into_iter()
                .filter_map(|key| entries.get_mut(key)?.waker.take())
                .collect(),
        )
    }
}

/// A future that is done when its event has come. The event is asked for from the first poll until this is dropped.
#[derive(Debug)]
pub(crate) struct Event<'reactor, P> {
    reactor: &'reactor Reactor<P>,
    state: State<P>,
}

#[derive(Debug)]
enum State<P> {
    New(P),
    Waiting(usize),
    Done,
}

impl<'reactor, P> Event<'reactor, P> {
    pub(crate) const fn new(reactor: &'reactor Reactor<P>, pollable: P) -> Self {
        Self {
            reactor,
            state: State::New(pollable),
        }
    }
}

// Nothing in it is pinned: the pollable moves into the reactor.
impl<P> Unpin for Event<'_, P> {}

impl<P> Future for Event<'_, P> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::New(pollable) => {
                self.state = State::Waiting(self.reactor.insert(pollable, context.waker().clone()));
                Poll::Pending
            }
            State::Waiting(key) if self.reactor.has_come(key, context.waker()) => {
                self.reactor.remove(key);
                Poll::Ready(())
            }
            State::Waiting(key) => {
                self.state = State::Waiting(key);
                Poll::Pending
            }
            State::Done => Poll::Ready(()),
        }
    }
}

impl<P> Drop for Event<'_, P> {
    fn drop(&mut self) {
        if let State::Waiting(key) = self.state {
            self.reactor.remove(key);
        }
    }
}

/// Runs a future to its end, suspending only while nothing has woken it.
pub(crate) fn block_on<S: EventSource, F: Future>(
    reactor: &Reactor<S::Pollable>,
    source: &S,
    future: F,
) -> Result<F::Output, Deadlock> {
    let mut future = pin!(future);
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    loop {
        // What woke it so far is answered by this poll.
        woken.take();
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Ok(output);
        }
        // A future that keeps waking itself must not shut events out.
        let ready = if woken.take() {
            reactor
                .take_ready(|pollables| source.look(pollables))
                .unwrap_or_default()
        } else {
            reactor
                .take_ready(|pollables| source.wait(pollables))
                .ok_or(Deadlock)?
        };
        ready.into_iter().for_each(Waker::wake);
    }
}

/// Whether the future asked to be polled again.
#[derive(Debug)]
struct Woken(AtomicBool);

impl Woken {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;
