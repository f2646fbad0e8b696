//! `pie:core/http-server`: requests of clients to a program that serves HTTP.

use std::sync::Arc;

use pie_core::ErrorCode;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::DynPollable;

use super::bindings::pie::core::http::Header;
use super::bindings::pie::core::http_server::{
    self, HostFutureGone, HostFutureRequest, HostIncomingRequest, RequestHead,
};
use super::bindings::pie::core::types;
use super::errors::CallResult;
use super::futures::host_future;
use super::http::{FuturePart, FutureWritten};
use super::view::view;
use crate::Error;
use crate::futures::Future;
use crate::http_in::gone::ClientGone;
use crate::http_in::incoming::IncomingRequest;
use crate::http_in::not_serving;
use crate::http_in::queue::NextRequest;
use crate::network::request::{self, BodyKind};
use crate::process::handles::HandleTable;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;

/// The future of [`NextRequest`].
pub type FutureRequest = Future<NextRequest>;
/// The future of [`ClientGone`].
pub type FutureGone = Future<ClientGone>;

view! {
    /// The requests to a process, and the handles of those that it has taken.
    Answers { table: HandleTable, record: Arc<ProcessRecord> }
}

impl http_server::Host for Answers<'_> {
    fn is_serving(&mut self) -> wasmtime::Result<bool> {
        Ok(self.record.requests.is_some())
    }

    fn next_request(&mut self) -> wasmtime::Result<Resource<FutureRequest>> {
        let next = match &self.record.requests {
            Some(requests) => requests.next(),
            None => NextRequest::refused(not_serving()),
        };
        self.table.push_future(next)
    }
}

impl HostIncomingRequest for Answers<'_> {
    fn head(&mut self, this: Resource<IncomingRequest>) -> wasmtime::Result<RequestHead> {
        let head = &self.table.get(&this)?.head;
        let headers = head.headers.iter().map(|(name, value)| Header {
            name: name.as_str().to_owned(),
            value: request::text(value),
        });
        Ok(RequestHead {
            method: head.method.as_str().to_owned(),
            url: head.url.clone(),
            headers: headers.collect(),
            remote_address: head.remote_address.clone(),
        })
    }

    fn read(&mut self, this: Resource<IncomingRequest>) -> wasmtime::Result<Resource<FuturePart>> {
        let future = self.table.get(&this)?.read();
        self.table.push_future(future)
    }

    fn respond(
        &mut self,
        this: Resource<IncomingRequest>,
        status: u32,
        headers: Vec<Header>,
    ) -> CallResult<()> {
        let most = self.record.limits.http_header_bytes;
        let n_bytes: usize = headers
            .iter()
            .map(|header| header.name.len() + header.value.len())
            .sum();
        if n_bytes > most {
            let message = format!(
                "the headers of the answer have {n_bytes} bytes, more than limits.http_header_bytes = {most}; send fewer, or raise the limit"
            );
            return Err(Error::new(ErrorCode::LimitHttpHeaders, message).into());
        }
        let given = headers.into_iter().map(|one| (one.name, one.value));
        let headers = request::headers(given, BodyKind::Streamed)?;
        let request = self.table.get_mut(&this)?;
        Ok(request.answering.respond(status, headers)?)
    }

    fn write_part(
        &mut self,
        this: Resource<IncomingRequest>,
        part: Vec<u8>,
    ) -> wasmtime::Result<Resource<FutureWritten>> {
        let future = self.table.get_mut(&this)?.answering.write(part);
        self.table.push_future(future)
    }

    fn finish(&mut self, this: Resource<IncomingRequest>) -> CallResult<()> {
        Ok(self.table.get_mut(&this)?.answering.finish()?)
    }

    fn abandon(&mut self, this: Resource<IncomingRequest>) -> wasmtime::Result<()> {
        self.table.get_mut(&this)?.answering.abandon();
        Ok(())
    }

    fn gone(&mut self, this: Resource<IncomingRequest>) -> wasmtime::Result<Resource<FutureGone>> {
        let future = self.table.get(&this)?.gone();
        self.table.push_future(future)
    }

    fn drop(&mut self, this: Resource<IncomingRequest>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl HostFutureRequest for Answers<'_> {
    fn pollable(
        &mut self,
        this: Resource<FutureRequest>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        self.table.future_pollable(this)
    }

    fn get(
        &mut self,
        this: Resource<FutureRequest>,
    ) -> wasmtime::Result<Option<Result<Option<Resource<IncomingRequest>>, types::Error>>> {
        Ok(match self.table.future_get(&this)? {
            None => None,
            Some(Err(error)) => Some(Err(error)),
            Some(Ok(None)) => Some(Ok(None)),
            Some(Ok(Some(request))) => Some(Ok(Some(self.table.push(request)?))),
        })
    }

    fn drop(&mut self, this: Resource<FutureRequest>) -> wasmtime::Result<()> {
        self.table.future_drop(this)
    }
}

host_future!(Answers<'_>, HostFutureGone, FutureGone, ());

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    http_server::add_to_linker::<_, Answers<'static>>(linker, Answers::of)
}
