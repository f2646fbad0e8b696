//! `wasi:io/poll`, counted: waiting is part of what a program calls.

use std::sync::atomic::Ordering;

use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::io::poll;

use crate::process::state::ProcessState;
use crate::sandbox::fault::poll_limit;

/// The state of a process, as the interface sees it.
pub(crate) struct Polls<'a>(&'a mut ProcessState);

struct HasPolls;

impl HasData for HasPolls {
    type Data<'a> = Polls<'a>;
}

impl Polls<'_> {
    fn count(&self) {
        self.0.record.n_arrivals.fetch_add(1, Ordering::Relaxed);
    }
}

impl poll::Host for Polls<'_> {
    async fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        self.count();
        // Each entry costs the host memory, and one pollable may stand in the list any number of times.
        let limits = &self.0.record.limits;
        if pollables.len() > limits.resources {
            return Err(poll_limit(pollables.len(), limits).into());
        }
        self.0.table.poll(pollables).await
    }
}

impl poll::HostPollable for Polls<'_> {
    async fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        self.count();
        self.0.table.ready(pollable).await
    }

    async fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.count();
        self.0.table.block(pollable).await
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.0.uncount_timer(pollable.rep());
        poll::HostPollable::drop(&mut self.0.table, pollable)
    }
}

/// Puts the counted interface in the place of the plain one.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    poll::add_to_linker::<ProcessState, HasPolls>(linker, |state| Polls(state))?;
    linker.allow_shadowing(false);
    Ok(())
}
