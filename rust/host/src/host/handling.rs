//! Components that export `wasi:http/incoming-handler`: the host takes the requests of their process, and has an
//! instance answer one after the other. Where the client of one goes, the instance ends with it, and another one takes
//! the next.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wasmtime::Store;
use wasmtime_wasi_http::p2::bindings::{Proxy, ProxyPre};

use super::state::HostState;
use super::stores::new_store;
use crate::Error;
use crate::event::Failure;
use crate::http_in::queue::RequestQueue;
use crate::http_in::wasi::{Handling, Sent};
use crate::interface::linkers::Prepared;
use crate::interface::wasi_http::give_request;
use crate::network::running::Running;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::stdio::Output;
use crate::sandbox::fault;

/// How a process answers, where it does so: requests are sent to it, or its component does nothing else.
pub(super) fn handler<'a>(
    prepared: &'a Prepared,
    record: &ProcessRecord,
) -> Option<&'a ProxyPre<ProcessState>> {
    let is_asked = record.requests.is_some() || prepared.program.is_none();
    prepared.handler.as_ref().filter(|_| is_asked)
}

/// A process that answers so.
pub(super) struct HandledProcess<'a> {
    pub(super) host: &'a HostState,
    pub(super) record: &'a Arc<ProcessRecord>,
    /// The name of the program.
    pub(super) program: &'a str,
    pub(super) outputs: &'a [Output; 2],
}

/// Why an instance answers no more.
enum Over {
    /// No more requests come.
    Requests,
    /// The client of a request has gone, while it was worked on.
    Client,
}

impl HandledProcess<'_> {
    /// Answers requests until no more come.
    ///
    /// # Errors
    /// `not-serving` for a process to which nobody sends any; what ended an instance.
    pub(super) async fn answer_all(&self, pre: &ProxyPre<ProcessState>) -> Result<String, Failure> {
        let Some(requests) = &self.record.requests else {
            return Err(crate::http_in::not_serving().into());
        };
        loop {
            let (record, program) = (self.record.clone(), self.program.to_owned());
            self.outputs[1].forget_panic();
            let mut store = new_store(self.host, record, program, None, self.outputs);
            match answer(pre, &mut store, self.record, requests).await {
                Ok(Over::Requests) => return Ok("null".to_owned()),
                Ok(Over::Client) => {}
                Err(error) => {
                    let ended = fault::Ended {
                        stack_bytes: self.host.config.stack_bytes,
                        refused: store.data().memory.refused().cloned(),
                        is_source: false,
                        panic: self.outputs[1].panic(),
                    };
                    return Err(fault::describe(&error, &self.record.limits, ended));
                }
            }
        }
    }
}

/// Has one instance answer requests.
async fn answer(
    pre: &ProxyPre<ProcessState>,
    store: &mut Store<ProcessState>,
    record: &ProcessRecord,
    requests: &Arc<RequestQueue>,
) -> wasmtime::Result<Over> {
    let instance = pre.instantiate_async(&mut *store).await?;
    record.note_entry();
    while let Some(incoming) = requests.taken().await {
        // A request that cannot be handed over gets no answer.
        let Some(handling) = Handling::new(incoming) else {
            continue;
        };
        if answer_one(&instance, store, handling).await? == Sent::Gone {
            return Ok(Over::Client);
        }
    }
    Ok(Over::Requests)
}

async fn answer_one(
    instance: &Proxy,
    store: &mut Store<ProcessState>,
    Handling {
        request,
        sending,
        gone,
    }: Handling,
) -> wasmtime::Result<Sent> {
    let (sender, given) = oneshot::channel();
    let (request, answered) = give_request(store.data_mut(), request, sender)?;
    let mut sent: JoinHandle<Sent> = tokio::spawn(sending.send(given));
    let _until_it_is_over = Running::of(&sent);
    let handler = instance.wasi_http_incoming_handler();
    let mut handled = pin!(handler.call_handle(&mut *store, request, answered));
    tokio::select! {
        biased;
        ended = &mut sent => {
            let ended = ended.map_err(Error::internal)?;
            if ended == Sent::Gone {
                return Ok(ended);
            }
            handled.await?;
            return Ok(ended);
        }
        ended = &mut handled => match ended {
            Ok(()) => {}
            // An instance whose writes fail for that may end in a panic, of which its stderr tells.
            Err(_) if gone.is_settled() => return Ok(Sent::Gone),
            Err(error) => return Err(error),
        }
    }
    Ok(sent.await.map_err(Error::internal)?)
}
