//! The clock that interrupts programs: one thread for each host, which rests while no process lives.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use wasmtime::Engine;

use crate::Error;
use crate::sync::lock;

/// How long a program runs before others get their turn and its limits are looked at.
const TICK: Duration = Duration::from_millis(5);

/// Ticks the epoch of an engine until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    n_processes: usize,
    stopped: bool,
}

/// A process that needs ticks while this lives.
#[derive(Debug)]
pub(crate) struct Ticking(Arc<Shared>);

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start(engine: Engine) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new()
            .name("pie-ticker".to_owned())
            .spawn({
                let shared = shared.clone();
                move || shared.run(&engine)
            });
        let thread = thread.map_err(|error| {
            Error::internal(format!("the ticker thread cannot be started: {error}"))
        })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Asks for ticks until the value is dropped.
    pub(crate) fn enter(&self) -> Ticking {
        lock(&self.shared.state).n_processes += 1;
        self.shared.changed.notify_one();
        Ticking(self.shared.clone())
    }
}

impl Shared {
    fn run(&self, engine: &Engine) {
        let mut state = lock(&self.state);
        while !state.stopped {
            if state.n_processes == 0 {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(state);
            std::thread::sleep(TICK);
            engine.increment_epoch();
            state = lock(&self.state);
        }
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        lock(&self.0.state).n_processes -= 1;
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        lock(&self.shared.state).stopped = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the ticker has been printed by its thread; there is nothing left to do about it here.
            drop(thread.join());
        }
    }
}
