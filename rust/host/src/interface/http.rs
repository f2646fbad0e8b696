//! `pie:core/http`: requests to servers, as the SDKs send them.

use bytes::Bytes;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::DynPollable;

use super::bindings::pie::core::http::{
    self, Body, Header, HostExchange, HostFutureHead, HostFuturePart, HostFutureWritten, Redirects,
    Request,
};
use super::bindings::pie::core::types;
use super::errors::CallResult;
use super::futures::host_future;
use super::view::view;
use crate::Error;
use crate::futures::Future;
use crate::network::exchange::{Exchange, GivenBody, Head, HeadCome, at_most_a_year};
use crate::network::held::HeldNetwork;
use crate::network::parts::NextPart;
use crate::network::redirect;
use crate::network::request::{self, Asked, BodyKind, Timeouts};
use crate::network::sent::too_many;
use crate::network::target::Target;
use crate::network::upload::Written;
use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;

/// The future of [`Written`].
pub type FutureWritten = Future<Written>;
/// The future of [`HeadCome`].
pub type FutureHead = Future<HeadCome>;
/// The future of [`NextPart`].
pub type FuturePart = Future<NextPart>;

view! {
    /// What a process has of the network, and the handles of its requests.
    Requests { table: HandleTable, network: HeldNetwork }
}

impl Requests<'_> {
    fn begin(&self, given: Request) -> Result<Exchange, Error> {
        let kind = match &given.body {
            Body::None => BodyKind::None,
            Body::Whole(_) => BodyKind::Whole,
            Body::Streamed => BodyKind::Streamed,
        };
        let headers = given.headers.into_iter();
        let asked = Asked {
            target: Target::parse(&given.url)?,
            method: request::method(&given.method)?,
            headers: request::headers(headers.map(|one| (one.name, one.value)), kind)?,
            redirects: match given.redirects {
                Redirects::Follow => redirect::Redirects::Follow,
                Redirects::Fail => redirect::Redirects::Fail,
                Redirects::Keep => redirect::Redirects::Keep,
            },
            timeouts: timeouts(&given.timeouts),
        };
        let body = match given.body {
            Body::None => GivenBody::None,
            Body::Streamed => GivenBody::Streamed,
            Body::Whole(bytes) => {
                let n_bytes = bytes.len() as u64;
                if n_bytes > self.network.limits.sent_bytes {
                    return Err(too_many(self.network.limits.sent_bytes));
                }
                GivenBody::Whole(Bytes::from(bytes), self.network.charge(n_bytes)?)
            }
        };
        Exchange::start(self.network, asked, body)
    }
}

impl http::Host for Requests<'_> {
    fn refusal(&mut self) -> CallResult<()> {
        match self.network.refusals.last() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

impl HostExchange for Requests<'_> {
    fn start(&mut self, request: Request) -> CallResult<Resource<Exchange>> {
        let begun = self.begin(request);
        let exchange = begun.inspect_err(|error| self.network.refusals.note(error))?;
        Ok(self.table.push(exchange)?)
    }

    fn write_part(
        &mut self,
        this: Resource<Exchange>,
        part: Vec<u8>,
    ) -> wasmtime::Result<Resource<FutureWritten>> {
        let future = self.table.get_mut(&this)?.write(self.network, part);
        self.table.push_future(future)
    }

    fn finish(&mut self, this: Resource<Exchange>) -> wasmtime::Result<()> {
        self.table.get_mut(&this)?.finish();
        Ok(())
    }

    fn head(&mut self, this: Resource<Exchange>) -> wasmtime::Result<Resource<FutureHead>> {
        let future = self.table.get(&this)?.head();
        self.table.push_future(future)
    }

    fn read(&mut self, this: Resource<Exchange>) -> wasmtime::Result<Resource<FuturePart>> {
        let future = self.table.get(&this)?.read();
        self.table.push_future(future)
    }

    fn cancel(&mut self, this: Resource<Exchange>) -> wasmtime::Result<()> {
        self.table.get_mut(&this)?.cancel();
        Ok(())
    }

    fn drop(&mut self, this: Resource<Exchange>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl HostFutureHead for Requests<'_> {
    fn pollable(&mut self, this: Resource<FutureHead>) -> wasmtime::Result<Resource<DynPollable>> {
        self.table.future_pollable(this)
    }

    fn get(
        &mut self,
        this: Resource<FutureHead>,
    ) -> wasmtime::Result<Option<Result<http::Head, types::Error>>> {
        let answer = self.table.future_get(&this)?;
        Ok(answer.map(|answer| answer.map(written)))
    }

    fn drop(&mut self, this: Resource<FutureHead>) -> wasmtime::Result<()> {
        self.table.future_drop(this)
    }
}

host_future!(Requests<'_>, HostFutureWritten, FutureWritten, ());
host_future!(Requests<'_>, HostFuturePart, FuturePart, Option<Vec<u8>>);

fn timeouts(given: &http::Timeouts) -> Timeouts {
    Timeouts {
        connect: given.connect_ms.map(at_most_a_year),
        first_byte: given.first_byte_ms.map(at_most_a_year),
        idle: given.idle_ms.map(at_most_a_year),
        whole: given.whole_ms.map(at_most_a_year),
    }
}

/// A head as programs get it.
fn written(head: Head) -> http::Head {
    let headers = head.headers.iter().map(|(name, value)| Header {
        name: name.as_str().to_owned(),
        value: request::text(value),
    });
    http::Head {
        status: u32::from(head.status),
        status_text: head.reason,
        url: head.url,
        is_redirected: head.is_redirected,
        headers: headers.collect(),
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    http::add_to_linker::<_, Requests<'static>>(linker, Requests::of)
}
