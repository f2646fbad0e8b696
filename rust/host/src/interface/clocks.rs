//! `wasi:clocks/monotonic-clock`, with a bound on the timers that a program holds.

use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::clocks::WasiClocksView;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock::{self, Duration, Instant};

use crate::process::state::ProcessState;

/// What the clocks see of a process.
pub(crate) struct Clocks<'a>(&'a mut ProcessState);

impl HasData for Clocks<'static> {
    type Data<'a> = Clocks<'a>;
}

impl monotonic_clock::Host for Clocks<'_> {
    fn now(&mut self) -> wasmtime::Result<Instant> {
        self.0.clocks().now()
    }

    fn resolution(&mut self) -> wasmtime::Result<Duration> {
        self.0.clocks().resolution()
    }

    fn subscribe_instant(&mut self, when: Instant) -> wasmtime::Result<Resource<DynPollable>> {
        self.0.table.check_room_for_timer()?;
        let timer = self.0.clocks().subscribe_instant(when)?;
        self.0.table.count_timer(&timer);
        Ok(timer)
    }

    fn subscribe_duration(&mut self, when: Duration) -> wasmtime::Result<Resource<DynPollable>> {
        self.0.table.check_room_for_timer()?;
        let timer = self.0.clocks().subscribe_duration(when)?;
        self.0.table.count_timer(&timer);
        Ok(timer)
    }
}

/// Puts the bounded interface in the place of the plain one.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<ProcessState, Clocks<'static>>(linker, |state| Clocks(state))?;
    linker.allow_shadowing(false);
    Ok(())
}
