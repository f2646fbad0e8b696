//! `pie:core/session`: the channel between a program and the client that launched it.

use std::sync::Arc;

use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::session;
use super::futures::{FutureBlob, FutureString};
use super::view::view;
use crate::event::{Event, Form};
use crate::process::handles::HandleTable;
use crate::process::mailbox::receive;
use crate::process::queue::send;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;

view! {
    /// The channel to the client, and the handles of what comes from there.
    Sessions { table: HandleTable, record: Arc<ProcessRecord> }
}

impl session::Host for Sessions<'_> {
    async fn send(&mut self, message: String) -> wasmtime::Result<()> {
        self.record.count_output(message.len())?;
        Ok(send(&self.record.events, Event::Sent(message, Form::Text)).await?)
    }

    async fn send_json(&mut self, value: String) -> wasmtime::Result<()> {
        self.record.count_output(value.len())?;
        Ok(send(&self.record.events, Event::Sent(value, Form::Json)).await?)
    }

    async fn print(&mut self, text: String) -> wasmtime::Result<()> {
        self.record.count_output(text.len())?;
        Ok(send(&self.record.events, Event::Stdout(text)).await?)
    }

    async fn message(&mut self, text: String) -> wasmtime::Result<()> {
        self.record.count_output(text.len())?;
        Ok(send(&self.record.events, Event::Message(text)).await?)
    }

    fn receive(&mut self) -> wasmtime::Result<Resource<FutureString>> {
        let future = receive(&self.record.mailbox);
        self.table.push_future(FutureString::Received(future))
    }

    async fn send_file(&mut self, data: Vec<u8>) -> wasmtime::Result<()> {
        self.record.count_output(data.len())?;
        Ok(send(&self.record.events, Event::File(data)).await?)
    }

    fn receive_file(&mut self) -> wasmtime::Result<Resource<FutureBlob>> {
        let future = receive(&self.record.files);
        self.table.push_future(future)
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    session::add_to_linker::<_, Sessions<'static>>(linker, Sessions::of)
}
