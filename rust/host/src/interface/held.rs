//! What a program holds at once, counted where it is made and where it is dropped.

use std::collections::HashSet;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::DynPollable;

use super::futures::{Future, Source};
use crate::process::state::ProcessState;
use crate::sandbox::fault::{futures_limit, timers_limit};

/// Counts of the handles that have bounds of their own.
#[derive(Debug, Default)]
pub(crate) struct Held {
    n_futures: usize,
    /// The pollables that are timers, by their place in the table.
    timers: HashSet<u32>,
}

impl ProcessState {
    /// Gives a future to the program.
    ///
    /// # Errors
    /// `limit-resources` when it holds too many; the future is dropped then, which cancels what it waits for.
    pub(crate) fn push_future<S: Source>(
        &mut self,
        future: Future<S>,
    ) -> wasmtime::Result<Resource<Future<S>>> {
        if self.held.n_futures >= self.record.limits.futures {
            return Err(futures_limit(&self.record.limits).into());
        }
        let future = self.table.push(future.within(&self.record.limits))?;
        self.held.n_futures += 1;
        Ok(future)
    }

    /// Takes a future back from the program.
    pub(crate) fn delete_future<S: Source>(
        &mut self,
        future: Resource<Future<S>>,
    ) -> wasmtime::Result<()> {
        self.table.delete(future)?;
        self.held.n_futures = self.held.n_futures.saturating_sub(1);
        Ok(())
    }

    /// Refuses a timer beyond those that the program may hold.
    ///
    /// # Errors
    /// `limit-timers`.
    pub(crate) fn check_room_for_timer(&self) -> wasmtime::Result<()> {
        if self.held.timers.len() < self.record.limits.timers {
            return Ok(());
        }
        Err(timers_limit(&self.record.limits).into())
    }

    /// Notes that a pollable is a timer.
    pub(crate) fn count_timer(&mut self, timer: &Resource<DynPollable>) {
        self.held.timers.insert(timer.rep());
    }

    /// Notes that a pollable is gone, whatever it was.
    pub(crate) fn uncount_timer(&mut self, rep: u32) {
        self.held.timers.remove(&rep);
    }
}
