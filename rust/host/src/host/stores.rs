//! Stores of wasmtime: one for each instance, with the bounds of its process.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::{Store, UpdateDeadline};

use super::state::HostState;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::stdio::Output;
use crate::program::source::RuntimeInput;

/// Processor time that a program has at least before others get their turn.
const SLICE: Duration = Duration::from_millis(2);

/// The store of a new instance of the program of that name.
pub(super) fn new_store(
    host: &HostState,
    record: Arc<ProcessRecord>,
    program: String,
    source: Option<RuntimeInput>,
    outputs: &[Output; 2],
) -> Store<ProcessState> {
    let mut store = Store::new(
        &host.engine,
        ProcessState::new(
            host.surroundings.clone(),
            record.clone(),
            program,
            source,
            outputs,
        ),
    );
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(record.limits.message_bytes);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|store| {
        let record = &store.data().record;
        record.check_slice()?;
        // A program that has just been woken meets the ticks of the time in which it waited.
        if record.cpu.running_poll() < SLICE {
            return Ok(UpdateDeadline::Continue(1));
        }
        // Yielding lets the other programs of the thread run, and lets the task be dropped when the process shall end.
        record.cpu.note_yield();
        Ok(UpdateDeadline::Yield(1))
    });
    store
}
