//! `pie:core/scheduling`: the market for pages, as a program sees it.

use std::sync::Arc;

use pie_core::market::{Account, credits};
use pie_core::{Engine, ProcessId};
use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::scheduling;
use super::context::ContextHandle;
use super::model::ModelHandle;
use super::view::view;
use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::surroundings::Surroundings;

view! {
    /// The handles of the program, whose account it is, and what is the same for all.
    Market { table: HandleTable, record: Arc<ProcessRecord>, surroundings: Arc<Surroundings> }
}

impl Market<'_> {
    /// What the account of the process in a model says, in micro-credits; 0 where it has none.
    fn account(
        &mut self,
        model: &Resource<ModelHandle>,
        read: impl FnOnce(&Account) -> u128,
    ) -> wasmtime::Result<f64> {
        let model = self.table.get(model)?.0.clone();
        let process = ProcessId(self.record.pid);
        let amount = model.with_engine(|engine| engine.account(process).map_or(0, read));
        Ok(credits(amount))
    }

    /// What the model of a context says.
    fn of_model<T>(
        &mut self,
        context: &Resource<ContextHandle>,
        read: impl FnOnce(&Engine) -> T,
    ) -> wasmtime::Result<T> {
        let model = self.table.get(context)?.0.model.clone();
        Ok(model.with_engine(|engine| read(engine)))
    }
}

impl scheduling::Host for Market<'_> {
    fn balance(&mut self, model: Resource<ModelHandle>) -> wasmtime::Result<f64> {
        self.account(&model, |account| account.balance)
    }

    fn rent(&mut self, context: Resource<ContextHandle>) -> wasmtime::Result<f64> {
        let rent = self.of_model(&context, Engine::rent)?;
        Ok(credits(u128::from(rent)))
    }

    fn dividend(&mut self, model: Resource<ModelHandle>) -> wasmtime::Result<f64> {
        self.account(&model, |account| account.dividend)
    }

    fn latency(&mut self, context: Resource<ContextHandle>) -> wasmtime::Result<f64> {
        let tick_ns = self.of_model(&context, Engine::tick_ns)?;
        Ok(tick_ns as f64 / 1e9)
    }

    fn price(&mut self) -> wasmtime::Result<f64> {
        // It is the same in every model.
        let model = self.surroundings.models.find("default").ok();
        let price = model.map_or(0, |model| model.with_engine(|engine| engine.page_price()));
        Ok(credits(u128::from(price)))
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    scheduling::add_to_linker::<_, Market<'static>>(linker, Market::of)
}
