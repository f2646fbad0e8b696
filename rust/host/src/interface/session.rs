//! `pie:core/session`: the channel between a program and the client that launched it.

use wasmtime::component::{HasSelf, Linker, Resource};

use super::bindings::pie::core::session;
use super::counted;
use super::futures::{Future, FutureString};
use crate::process::event::Event;
use crate::process::mailbox::Receive;
use crate::process::state::ProcessState;

impl session::Host for ProcessState {
    async fn send(&mut self, message: String) -> wasmtime::Result<()> {
        self.record.events.send(Event::Stdout(message)).await;
        Ok(())
    }

    fn receive(&mut self) -> wasmtime::Result<Resource<FutureString>> {
        let mailbox = self.record.mailbox.clone();
        let receiver = mailbox.receive();
        Ok(self.table.push(Future::new(Receive(mailbox), receiver))?)
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    session::add_to_linker::<_, HasSelf<_>>(linker, counted)
}
