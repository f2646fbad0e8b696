//! `pie:core/messaging`: messages between the programs of one user.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::{DynPollable, subscribe};

use super::bindings::pie::core::messaging::{self, HostFutureMessage, HostSubscription};
use super::bindings::pie::core::types;
use super::errors::CallResult;
use super::futures::{FutureString, host_future};
use super::view::view;
use crate::bus::place::{Next, SubscriptionHandle, pull};
use crate::futures::Future;
use crate::process::handles::HandleTable;
use crate::process::mail::Mail;
use crate::process::state::ProcessState;

/// The future of [`Next`].
pub type FutureMessage = Future<Next>;

view! {
    /// What a process sends to others, and the handles of what it gets.
    Messages { table: HandleTable, mail: Mail }
}

impl messaging::Host for Messages<'_> {
    async fn push(&mut self, topic: String, message: String) -> CallResult<()> {
        Ok(self.mail.push(&topic, message).await?)
    }

    fn pull(&mut self, topic: String) -> wasmtime::Result<Resource<FutureString>> {
        let future = pull(self.mail.topics(), &topic);
        self.table.push_future(FutureString::Pulled(future))
    }

    fn broadcast(&mut self, topic: String, message: String) -> CallResult<()> {
        Ok(self.mail.broadcast(&topic, message)?)
    }

    fn subscribe(&mut self, topic: String) -> CallResult<Resource<SubscriptionHandle>> {
        let subscription = SubscriptionHandle::new(self.mail.topics(), &topic)?;
        Ok(self.table.push(subscription)?)
    }
}

impl HostSubscription for Messages<'_> {
    fn pollable(
        &mut self,
        this: Resource<SubscriptionHandle>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        // A borrowed handle makes the pollable a child: the subscription cannot be dropped before it.
        let borrowed = Resource::<SubscriptionHandle>::new_borrow(this.rep());
        let waits_for = self.table.get(&this)?.waits_for();
        let pollable = subscribe(self.table.for_wasi(), borrowed)?;
        self.table.note_wait(&pollable, waits_for);
        Ok(pollable)
    }

    fn get(&mut self, this: Resource<SubscriptionHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.table.get(&this)?.get())
    }

    fn next(
        &mut self,
        this: Resource<SubscriptionHandle>,
    ) -> wasmtime::Result<Resource<FutureMessage>> {
        let future = self.table.get(&this)?.next();
        self.table.push_future(future)
    }

    fn lagged(&mut self, this: Resource<SubscriptionHandle>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&this)?.n_lagged())
    }

    fn unsubscribe(&mut self, this: Resource<SubscriptionHandle>) -> wasmtime::Result<()> {
        self.table.get(&this)?.unsubscribe();
        Ok(())
    }

    fn drop(&mut self, this: Resource<SubscriptionHandle>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

host_future!(
    Messages<'_>,
    HostFutureMessage,
    FutureMessage,
    Option<String>
);

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    messaging::add_to_linker::<_, Messages<'static>>(linker, Messages::of)
}
