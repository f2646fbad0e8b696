//! `wasi:clocks/monotonic-clock`, with a bound on the timers that a program holds.

use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::clocks::WasiClocksView;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock::{self, Duration, Instant};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;

/// What the clocks see of a process.
pub(crate) struct Clocks<'a> {
    table: &'a mut HandleTable,
    wasi: &'a mut WasiCtx,
}

impl HasData for Clocks<'static> {
    type Data<'a> = Clocks<'a>;
}

impl Clocks<'_> {
    fn of(state: &mut ProcessState) -> Clocks<'_> {
        Clocks {
            table: &mut state.table,
            wasi: &mut state.wasi,
        }
    }
}

impl WasiView for Clocks<'_> {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: self.wasi,
            table: self.table.for_wasi(),
        }
    }
}

impl monotonic_clock::Host for Clocks<'_> {
    fn now(&mut self) -> wasmtime::Result<Instant> {
        self.clocks().now()
    }

    fn resolution(&mut self) -> wasmtime::Result<Duration> {
        self.clocks().resolution()
    }

    fn subscribe_instant(&mut self, when: Instant) -> wasmtime::Result<Resource<DynPollable>> {
        self.table.check_room_for_timer()?;
        let timer = self.clocks().subscribe_instant(when)?;
        self.table.count_timer(&timer);
        Ok(timer)
    }

    fn subscribe_duration(&mut self, when: Duration) -> wasmtime::Result<Resource<DynPollable>> {
        self.table.check_room_for_timer()?;
        let timer = self.clocks().subscribe_duration(when)?;
        self.table.count_timer(&timer);
        Ok(timer)
    }
}

/// Puts the bounded interface in the place of the plain one.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<ProcessState, Clocks<'static>>(linker, Clocks::of)?;
    linker.allow_shadowing(false);
    Ok(())
}
