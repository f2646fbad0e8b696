//! `wasi:http`, for programs that bring a client of their own: wasmtime's types and tables, before our way of sending.
//! What a program can make the engine keep by a handle is charged to its user.

use http::Request;
use tokio::sync::oneshot;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Resource, ResourceType};
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler::{self, Host as _};
use wasmtime_wasi_http::p2::bindings::http::types::{self, ErrorCode, HeaderError, Scheme};
use wasmtime_wasi_http::p2::types::{
    HostFutureIncomingResponse, HostIncomingRequest, HostIncomingResponse, HostOutgoingRequest,
    HostOutgoingResponse, HostResponseOutparam,
};
use wasmtime_wasi_http::{FieldMap, RequestOptions, WasiHttp, WasiHttpCtx, WasiHttpCtxView};

use super::view::view;
use crate::http_in::wasi::{RequestBody, WasiResponse};
use crate::network::held::HeldNetwork;
use crate::network::wasi::{CHUNK_BYTES, CHUNKS};
use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;

const TYPES: &str = "wasi:http/types@0.2.12";
const HANDLER: &str = "wasi:http/outgoing-handler@0.2.12";
/// What a map of headers takes, for each byte of the headers.
const MAP_FACTOR: u64 = 2;
/// What the body of a message holds until it is taken.
const BODY_BYTES: u64 = ((CHUNKS + 1) * CHUNK_BYTES) as u64;

type Store<'a> = StoreContextMut<'a, ProcessState>;
type Answer = Option<Result<Result<Resource<HostIncomingResponse>, ErrorCode>, ()>>;

view! {
    /// What requests, answers and their headers are made of.
    HttpHandles { table: HandleTable, network: HeldNetwork, wasi_http: WasiHttpCtx }
}

impl<'a> HttpHandles<'a> {
    /// The same, as wasmtime sees it.
    fn into_wasmtime(self) -> WasiHttpCtxView<'a> {
        WasiHttpCtxView {
            hooks: self.network,
            table: self.table.for_wasi(),
            ctx: self.wasi_http,
        }
    }

    /// The same, lent for one of wasmtime's functions.
    fn wasmtime(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut *self.network,
            table: self.table.for_wasi(),
            ctx: &mut *self.wasi_http,
        }
    }

    /// Charges what a handle of headers keeps, which the program has got.
    fn keeps_head<T: 'static>(&mut self, handle: Resource<T>) -> wasmtime::Result<Resource<T>> {
        self.keeps(handle, 0)
    }

    /// The same of a message that headers became: it has room for a body.
    fn keeps_message<T: 'static>(
        &mut self,
        headers: u32,
        message: Resource<T>,
    ) -> wasmtime::Result<Resource<T>> {
        self.network.release(headers);
        self.keeps(message, BODY_BYTES)
    }

    fn keeps<T: 'static>(
        &mut self,
        handle: Resource<T>,
        more_bytes: u64,
    ) -> wasmtime::Result<Resource<T>> {
        let head_bytes = MAP_FACTOR * self.network.limits.header_bytes as u64;
        let charge = self.network.charge(head_bytes + more_bytes)?;
        self.network.keep(handle.rep(), charge);
        Ok(handle)
    }
}

/// What wasmtime sees of a process: a call comes, and is counted.
fn for_wasmtime(state: &mut ProcessState) -> WasiHttpCtxView<'_> {
    HttpHandles::of(state).into_wasmtime()
}

/// Hands a request to an instance that answers by `wasi:http/incoming-handler`, and where its answer goes.
///
/// # Errors
/// Where the program holds as many handles as it may.
pub(crate) fn give_request(
    state: &mut ProcessState,
    request: Request<RequestBody>,
    answered: oneshot::Sender<WasiResponse>,
) -> wasmtime::Result<(
    Resource<HostIncomingRequest>,
    Resource<HostResponseOutparam>,
)> {
    let mut view = for_wasmtime(state);
    let request = view.new_incoming_request(Scheme::Http, request)?;
    let answered = view.new_response_outparam(answered)?;
    Ok((request, answered))
}

/// A function that makes something of one handle, whose handle is charged.
macro_rules! charged {
    ($types:ident, $name:literal, $of:ty, $made:ty, $call:path) => {
        $types.func_wrap(
            $name,
            |mut store: Store<'_>,
             (of,): (Resource<$of>,)|
             -> wasmtime::Result<(Resource<$made>,)> {
                let mut handles = HttpHandles::of(store.data_mut());
                let made = $call(&mut handles.wasmtime(), of)?;
                Ok((handles.keeps_head(made)?,))
            },
        )
    };
}

/// A constructor of a message, which takes headers.
macro_rules! message {
    ($types:ident, $name:literal, $made:ty, $call:path) => {
        $types.func_wrap(
            $name,
            |mut store: Store<'_>,
             (headers,): (Resource<FieldMap>,)|
             -> wasmtime::Result<(Resource<$made>,)> {
                let rep = headers.rep();
                let mut handles = HttpHandles::of(store.data_mut());
                let made = $call(&mut handles.wasmtime(), headers)?;
                Ok((handles.keeps_message(rep, made)?,))
            },
        )
    };
}

/// The drop of what is charged.
macro_rules! dropped {
    ($types:ident, $name:literal, $kind:ty, $call:path) => {
        $types.resource(
            $name,
            ResourceType::host::<$kind>(),
            |mut store: Store<'_>, rep| {
                let mut handles = HttpHandles::of(store.data_mut());
                handles.network.release(rep);
                $call(&mut handles.wasmtime(), Resource::<$kind>::new_own(rep))
            },
        )
    };
}

/// Charges headers, wherever a program gets them.
fn charge_headers(types: &mut LinkerInstance<'_, ProcessState>) -> wasmtime::Result<()> {
    types.func_wrap("[constructor]fields", |mut store: Store<'_>, (): ()| {
        let mut handles = HttpHandles::of(store.data_mut());
        let fields = types::HostFields::new(&mut handles.wasmtime())?;
        Ok((handles.keeps_head(fields)?,))
    })?;
    types.func_wrap(
        "[static]fields.from-list",
        |mut store: Store<'_>,
         (entries,): (Vec<(String, Vec<u8>)>,)|
         -> wasmtime::Result<(Result<Resource<FieldMap>, HeaderError>,)> {
            let mut handles = HttpHandles::of(store.data_mut());
            let made = types::HostFields::from_list(&mut handles.wasmtime(), entries);
            Ok((match made {
                Ok(fields) => Ok(handles.keeps_head(fields)?),
                Err(error) => Err(error.downcast()?),
            },))
        },
    )?;
    charged!(
        types,
        "[method]fields.clone",
        FieldMap,
        FieldMap,
        types::HostFields::clone
    )?;
    charged!(
        types,
        "[method]outgoing-request.headers",
        HostOutgoingRequest,
        FieldMap,
        types::HostOutgoingRequest::headers
    )?;
    charged!(
        types,
        "[method]outgoing-response.headers",
        HostOutgoingResponse,
        FieldMap,
        types::HostOutgoingResponse::headers
    )?;
    charged!(
        types,
        "[method]incoming-request.headers",
        HostIncomingRequest,
        FieldMap,
        types::HostIncomingRequest::headers
    )?;
    charged!(
        types,
        "[method]incoming-response.headers",
        HostIncomingResponse,
        FieldMap,
        types::HostIncomingResponse::headers
    )?;
    dropped!(types, "fields", FieldMap, types::HostFields::drop)
}

/// Charges messages: those that a program makes, and those that it gets.
fn charge_messages(types: &mut LinkerInstance<'_, ProcessState>) -> wasmtime::Result<()> {
    message!(
        types,
        "[constructor]outgoing-request",
        HostOutgoingRequest,
        types::HostOutgoingRequest::new
    )?;
    message!(
        types,
        "[constructor]outgoing-response",
        HostOutgoingResponse,
        types::HostOutgoingResponse::new
    )?;
    dropped!(
        types,
        "outgoing-request",
        HostOutgoingRequest,
        types::HostOutgoingRequest::drop
    )?;
    dropped!(
        types,
        "outgoing-response",
        HostOutgoingResponse,
        types::HostOutgoingResponse::drop
    )?;
    dropped!(
        types,
        "incoming-response",
        HostIncomingResponse,
        types::HostIncomingResponse::drop
    )?;
    types.func_wrap(
        "[method]future-incoming-response.get",
        |mut store: Store<'_>,
         (future,): (Resource<HostFutureIncomingResponse>,)|
         -> wasmtime::Result<(Answer,)> {
            let mut handles = HttpHandles::of(store.data_mut());
            let answer = types::HostFutureIncomingResponse::get(&mut handles.wasmtime(), future)?;
            Ok((match answer {
                Some(Ok(Ok(response))) => Some(Ok(Ok(handles.keeps_head(response)?))),
                other => other,
            },))
        },
    )
}

/// Hands what is charged for a request on to its sending.
fn charge_sending(handler: &mut LinkerInstance<'_, ProcessState>) -> wasmtime::Result<()> {
    handler.func_wrap(
        "handle",
        |mut store: Store<'_>,
         (request, options): (
            Resource<HostOutgoingRequest>,
            Option<Resource<RequestOptions>>,
        )|
         -> wasmtime::Result<(Result<Resource<HostFutureIncomingResponse>, ErrorCode>,)> {
            let mut handles = HttpHandles::of(store.data_mut());
            handles.network.sending = handles.network.release(request.rep());
            let sent = handles.wasmtime().handle(request, options);
            // One that was refused before it was sent has taken nothing.
            handles.network.sending = None;
            Ok((match sent {
                Ok(future) => Ok(future),
                Err(error) => Err(error.downcast()?),
            },))
        },
    )
}

/// Adds the interfaces to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    outgoing_handler::add_to_linker::<_, WasiHttp>(linker, for_wasmtime)?;
    types::add_to_linker::<_, WasiHttp>(linker, &LinkOptions::default().into(), for_wasmtime)?;
    linker.allow_shadowing(true);
    let mut types = linker.instance(TYPES)?;
    charge_headers(&mut types)?;
    charge_messages(&mut types)?;
    charge_sending(&mut linker.instance(HANDLER)?)?;
    linker.allow_shadowing(false);
    Ok(())
}
