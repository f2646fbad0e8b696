//! `wasi:io/poll`, counted: waiting is part of what a program calls.

use std::sync::atomic::Ordering;

use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::io::poll;

use crate::futures::WaitsFor;
use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::surroundings::Surroundings;
use crate::sandbox::fault::poll_limit;

/// What waiting needs of a process.
pub(crate) struct Polls<'a> {
    table: &'a mut HandleTable,
    record: &'a ProcessRecord,
    surroundings: &'a Surroundings,
}

impl HasData for Polls<'static> {
    type Data<'a> = Polls<'a>;
}

impl Polls<'_> {
    fn of(state: &mut ProcessState) -> Polls<'_> {
        Polls {
            table: &mut state.table,
            record: &state.record,
            surroundings: &state.surroundings,
        }
    }

    /// Counts a call; the drop of a pollable is none.
    fn count(&self) {
        self.record.n_arrivals.fetch_add(1, Ordering::Relaxed);
    }
}

/// Does `work` of a process, which ends when one of the things comes that it waits for.
async fn waiting<T>(
    record: &ProcessRecord,
    surroundings: &Surroundings,
    waits_for: Option<Vec<WaitsFor>>,
    work: impl Future<Output = T>,
) -> T {
    match waits_for {
        None => work.await,
        Some(waits_for) => {
            let standstill = &surroundings.standstill;
            standstill.sleeping(record.pid, waits_for, work).await
        }
    }
}

impl poll::Host for Polls<'_> {
    async fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        self.count();
        // Each entry costs the host memory, and one pollable may stand in the list any number of times.
        let limits = &self.record.limits;
        if pollables.len() > limits.resources {
            return Err(poll_limit(pollables.len(), limits).into());
        }
        let waits_for = self.table.waits_for(&pollables);
        let polling = self.table.for_wasi().poll(pollables);
        waiting(self.record, self.surroundings, waits_for, polling).await
    }
}

impl poll::HostPollable for Polls<'_> {
    async fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        self.count();
        self.table.for_wasi().ready(pollable).await
    }

    async fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.count();
        let waits_for = self.table.waits_for(std::slice::from_ref(&pollable));
        let blocking = self.table.for_wasi().block(pollable);
        waiting(self.record, self.surroundings, waits_for, blocking).await
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.table.forget_pollable(pollable.rep());
        poll::HostPollable::drop(self.table.for_wasi(), pollable)
    }
}

/// Puts the counted interface in the place of the plain one.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    poll::add_to_linker::<ProcessState, Polls<'static>>(linker, Polls::of)?;
    linker.allow_shadowing(false);
    Ok(())
}
