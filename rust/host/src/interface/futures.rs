//! `pie:core/futures`: whatever waits.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynPollable, Pollable};

use super::bindings::pie::core::futures::{self, HostFutureBlob, HostFutureString, HostFutureUnit};
use super::bindings::pie::core::types;
use super::view::view;
use crate::Error;
use crate::bus::place::Pull;
use crate::futures::{Awaited, Future, WaitsFor};
use crate::limits::Limits;
use crate::mcp::call::Asked;
use crate::model::pass::Flush;
use crate::process::ending::Ended;
use crate::process::handles::HandleTable;
use crate::process::mailbox::Receive;
use crate::process::state::ProcessState;

/// The future of [`Flush`].
pub type FutureUnit = Future<Flush>;
/// The future of [`Receive`], for files.
pub type FutureBlob = Future<Receive<Vec<u8>>>;

/// A text that somebody sends or leaves.
#[derive(Debug)]
pub enum FutureString {
    /// The client of the program does.
    Received(Future<Receive<String>>),
    /// Another program does.
    Pulled(Future<Pull>),
    /// A child does, at its end.
    Returned(Future<Ended>),
    /// A server of MCP does, as its answer.
    Answered(Future<Asked>),
}

#[async_trait]
impl Pollable for FutureString {
    async fn ready(&mut self) {
        match self {
            Self::Received(future) => future.ready().await,
            Self::Pulled(future) => future.ready().await,
            Self::Returned(future) => future.ready().await,
            Self::Answered(future) => future.ready().await,
        }
    }
}

impl Awaited for FutureString {
    type Answer = String;

    fn take(&mut self) -> Option<Result<String, Error>> {
        match self {
            Self::Received(future) => future.take(),
            Self::Pulled(future) => future.take(),
            Self::Returned(future) => future.take(),
            Self::Answered(future) => future.take(),
        }
    }

    fn within(self, limits: &Limits) -> Self {
        match self {
            Self::Received(future) => Self::Received(future.within(limits)),
            Self::Pulled(future) => Self::Pulled(future.within(limits)),
            Self::Returned(future) => Self::Returned(future.within(limits)),
            Self::Answered(future) => Self::Answered(future.within(limits)),
        }
    }

    fn waits_for(&self) -> Option<WaitsFor> {
        match self {
            Self::Received(future) => future.waits_for(),
            Self::Pulled(future) => future.waits_for(),
            Self::Returned(future) => future.waits_for(),
            Self::Answered(future) => future.waits_for(),
        }
    }
}

impl HandleTable {
    /// What arrived for a future, once.
    ///
    /// # Errors
    /// For a handle that the program does not hold.
    pub(crate) fn future_get<F: Awaited>(
        &mut self,
        future: &Resource<F>,
    ) -> wasmtime::Result<Option<Result<F::Answer, types::Error>>> {
        let answer = self.get_mut(future)?.take();
        Ok(answer.map(|answer| answer.map_err(|error| self.told(error))))
    }
}

/// The resource behind a future, whose trait the bindings generate anew for each.
macro_rules! host_future {
    ($view:ty, $resource:ident, $future:ty, $answer:ty) => {
        impl $resource for $view {
            fn pollable(
                &mut self,
                this: Resource<$future>,
            ) -> wasmtime::Result<Resource<DynPollable>> {
                self.table.future_pollable(this)
            }

            fn get(
                &mut self,
                this: Resource<$future>,
            ) -> wasmtime::Result<Option<Result<$answer, types::Error>>> {
                self.table.future_get(&this)
            }

            fn drop(&mut self, this: Resource<$future>) -> wasmtime::Result<()> {
                self.table.future_drop(this)
            }
        }
    };
}
pub(crate) use host_future;

view! {
    /// The futures of a process.
    Futures { table: HandleTable }
}

impl futures::Host for Futures<'_> {}

host_future!(Futures<'_>, HostFutureUnit, FutureUnit, ());
host_future!(Futures<'_>, HostFutureString, FutureString, String);
host_future!(Futures<'_>, HostFutureBlob, FutureBlob, Vec<u8>);

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    futures::add_to_linker::<_, Futures<'static>>(linker, Futures::of)
}
