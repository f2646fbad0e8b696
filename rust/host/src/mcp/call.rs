//! One call of a server by a program.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::failure::{closed, too_slow};
use super::held::{HeldMcp, Leave};
use super::listing::list;
use super::peer::Peer;
use super::server::McpServer;
use crate::Error;
use crate::futures::{Future, Operation};
use crate::network::running::Running;

/// The name of the limit of the time of a call.
const CALL_LIMIT: &str = "limits.mcp_call_s";

/// What a server is asked for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// What it said when it was connected to.
    Hello,
    /// The list that a method gives under a key.
    List(&'static str, &'static str),
    /// The result of a method with these parameters.
    Result(&'static str, String),
}

impl Wanted {
    /// Bytes that are sent.
    fn n_bytes(&self) -> usize {
        match self {
            Self::Hello | Self::List(..) => 0,
            Self::Result(_, params) => params.len(),
        }
    }

    async fn of(self, (server, peer): (&str, &Peer), most: u64) -> Result<String, Error> {
        match self {
            Self::Hello => Ok(peer.hello().to_owned()),
            Self::List(method, key) => list((server, peer), (method, key), most).await,
            Self::Result(method, params) => peer.call(method, &params, most).await,
        }
    }
}

/// The answer to a call, as the source of a future. Dropping it gives the call up.
#[derive(Debug)]
pub struct Asked {
    _task: Option<Running>,
}

impl Asked {
    /// A call that is not begun.
    pub(super) fn refused(error: Error) -> Future<Self> {
        Future::settled(Self { _task: None }, Err(error))
    }
}

/// What a server answered. Its user is charged for it, with what its call held, until the program takes it.
#[derive(Debug)]
pub struct Answered {
    text: String,
    _leave: Leave,
}

impl Operation for Asked {
    type Raw = Answered;
    type Answer = String;

    fn finish(&mut self, answered: Answered) -> Result<String, Error> {
        Ok(answered.text)
    }

    fn abandon(&mut self, _: Option<Result<Answered, Error>>) {}
}

/// Begins a call, which fails with `mcp-closed` once `closing` says so.
pub(crate) fn begin(
    held: &HeldMcp,
    server: &Arc<McpServer>,
    closing: watch::Receiver<bool>,
    wanted: Result<Wanted, Error>,
) -> Future<Asked> {
    let admitted = wanted.and_then(|wanted| {
        let leave = held.admit_call(wanted.n_bytes())?;
        Ok((wanted, leave))
    });
    let (wanted, leave) = match admitted {
        Ok(admitted) => admitted,
        Err(error) => return Asked::refused(error),
    };
    let (sender, receiver) = oneshot::channel();
    let (server, limits) = (server.clone(), held.limits);
    let task = held.runtime.spawn(async move {
        let asked = asked(&server, wanted, limits.answer_bytes);
        let answer = tokio::select! {
            biased;
            () = closed_of(closing) => Err(closed(&server.name)),
            answer = timeout(limits.call, asked) => {
                answer.unwrap_or_else(|_| Err(too_slow(&server.name, "a call", CALL_LIMIT, limits.call)))
            }
        };
        let answer = answer.and_then(|text| charged(text, leave));
        // A program that has given the call up needs no answer.
        drop(sender.send(answer));
    });
    let task = Some(task.into());
    Future::new(Asked { _task: task }, receiver)
}

async fn asked(server: &McpServer, wanted: Wanted, most: u64) -> Result<String, Error> {
    let peer = server.peer().await?;
    wanted.of((&server.name, &peer), most).await
}

/// Ends when the session is closed, or dropped.
async fn closed_of(mut closing: watch::Receiver<bool>) {
    drop(closing.wait_for(|is_closed| *is_closed).await);
}

fn charged(text: String, mut leave: Leave) -> Result<Answered, Error> {
    leave.charge.grow(text.len() as u64)?;
    Ok(Answered {
        text,
        _leave: leave,
    })
}
