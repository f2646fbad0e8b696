//! The calls of a server that wait for their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::failure::answer_too_long;
use super::line::Line;
use super::rpc::{self, Incoming};
use crate::Error;
use crate::sync::lock;

/// The calls of a conversation that wait.
#[derive(Debug)]
pub(crate) struct Waiting {
    server: Arc<str>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: HashMap<u64, Waiter>,
    /// Why there will be no more answers.
    gone: Option<Error>,
}

#[derive(Debug)]
struct Waiter {
    answer: oneshot::Sender<Result<String, Error>>,
    /// Bytes that the answer may have.
    most: u64,
}

impl Waiting {
    /// Nobody waits yet.
    pub(crate) fn new(server: &Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            server: server.clone(),
            state: Mutex::default(),
        })
    }

    /// The call of that id waits for an answer of at most `most` bytes.
    ///
    /// # Errors
    /// Why there will be no answer.
    pub(crate) fn enter(
        &self,
        id: u64,
        most: u64,
    ) -> Result<oneshot::Receiver<Result<String, Error>>, Error> {
        let (answer, receiver) = oneshot::channel();
        let mut state = lock(&self.state);
        if let Some(error) = &state.gone {
            return Err(error.clone());
        }
        state.calls.insert(id, Waiter { answer, most });
        Ok(receiver)
    }

    /// The call waits no more; whether it did.
    pub(crate) fn leave(&self, id: u64) -> bool {
        lock(&self.state).calls.remove(&id).is_some()
    }

    /// Takes what the server wrote; gives what it is to be told.
    pub(crate) fn take(&self, line: Line) -> Option<String> {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(id) => {
                let id = id.and_then(|id| rpc::own_id(&id));
                if let Some(waiter) = id.and_then(|id| lock(&self.state).calls.remove(&id)) {
                    let error = answer_too_long(&self.server, waiter.most);
                    // A caller that has given up needs no answer; so below.
                    drop(waiter.answer.send(Err(error)));
                }
                return None;
            }
        };
        match Incoming::parse(&line)? {
            Incoming::Request { id, method } => Some(rpc::reply(&id, &method)),
            Incoming::Notification => None,
            Incoming::Answer { id, result } => {
                let waiter = lock(&self.state).calls.remove(&id)?;
                let answer = match result {
                    Ok(result) if result.len() as u64 > waiter.most => {
                        Err(answer_too_long(&self.server, waiter.most))
                    }
                    Ok(result) => Ok(result),
                    Err(fault) => Err(fault.error(&self.server)),
                };
                drop(waiter.answer.send(answer));
                None
            }
        }
    }

    /// What was to be the answer to a call is not read, for that reason; `id` is that of the call, as it was written.
    pub(crate) fn refuse(&self, id: Option<&str>, error: Error) {
        let id = id.and_then(rpc::own_id);
        if let Some(waiter) = id.and_then(|id| lock(&self.state).calls.remove(&id)) {
            // A caller that has given up needs no answer.
            drop(waiter.answer.send(Err(error)));
        }
    }

    /// There will be no more answers. Only the first reason counts.
    pub(crate) fn end(&self, error: Error) {
        let mut state = lock(&self.state);
        let error = state.gone.get_or_insert(error).clone();
        for (_, waiter) in state.calls.drain() {
            drop(waiter.answer.send(Err(error.clone())));
        }
    }

    /// Why there will be no more answers; none as long as there may be some.
    pub(crate) fn gone(&self) -> Option<Error> {
        lock(&self.state).gone.clone()
    }
}

#[cfg(test)]
mod tests {
    use pie_core::ErrorCode;

    use super::*;
    use crate::mcp::failure::unavailable;

    fn line(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn answers_find_their_calls() {
        let waiting = Waiting::new(&"files".into());
        let mut first = waiting.enter(1, 100).unwrap();
        let mut second = waiting.enter(2, 4).unwrap();
        let mut third = waiting.enter(3, 100).unwrap();
        for noise in [
            "starting",
            r#"{"id":9,"result":{}}"#,
            r#"{"id":"1","result":{}}"#,
        ] {
            assert_eq!(waiting.take(line(noise)), None);
        }
        assert!(first.try_recv().is_err());
        waiting.take(line(r#"{"id":2,"result":{"a":1}}"#));
        let error = second.try_recv().unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitMcpBytes);
        waiting.take(line(r#"{"id":1,"result":{"a":1}}"#));
        assert_eq!(first.try_recv().unwrap().unwrap(), r#"{"a":1}"#);
        waiting.take(line(r#"{"id":3,"error":{"code":-32602,"message":"no"}}"#));
        let error = third.try_recv().unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::McpError);
        assert!(error.message.contains("-32602: no"), "{}", error.message);
    }

    /// Such answers were passed over, so that their calls waited for their time to be over.
    #[test]
    fn an_error_that_is_none_of_the_protocol_answers_its_call_at_once() {
        let waiting = Waiting::new(&"files".into());
        for (id, error) in (1..).zip([
            r#"{"code":"E_FAIL","message":"no"}"#,
            r#"{"code":18446744073709551616,"message":"no"}"#,
            r#"{"code":-1.5}"#,
            r#"{"code":1,"message":{"text":"no"}}"#,
            r#""no""#,
        ]) {
            let mut call = waiting.enter(id, 100).unwrap();
            waiting.take(line(&format!(r#"{{"id":{id},"error":{error}}}"#)));
            let answer = call.try_recv().unwrap().unwrap_err();
            assert_eq!(answer.code, ErrorCode::McpProtocol, "{error}");
        }
    }

    #[test]
    fn what_is_not_read_fails_its_own_call_alone() {
        let waiting = Waiting::new(&"files".into());
        let mut first = waiting.enter(1, 100).unwrap();
        let mut second = waiting.enter(2, 100).unwrap();
        let why = || Error::new(ErrorCode::LimitEngineMemory, "there is none left");
        for id in [Some("2"), Some("\"1\""), Some("7"), None] {
            waiting.refuse(id, why());
        }
        let error = second.try_recv().unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitEngineMemory);
        assert!(first.try_recv().is_err());
    }

    #[test]
    fn what_is_too_long_fails_its_own_call_alone() {
        let waiting = Waiting::new(&"files".into());
        let mut first = waiting.enter(1, 100).unwrap();
        let mut second = waiting.enter(2, 100).unwrap();
        waiting.take(Line::TooLong(Some("2".to_owned())));
        waiting.take(Line::TooLong(None));
        assert_eq!(
            second.try_recv().unwrap().unwrap_err().code,
            ErrorCode::LimitMcpBytes
        );
        assert!(first.try_recv().is_err() && waiting.leave(1) && !waiting.leave(1));
    }

    #[test]
    fn the_end_reaches_every_call_and_those_to_come() {
        let waiting = Waiting::new(&"files".into());
        let mut call = waiting.enter(1, 100).unwrap();
        waiting.end(unavailable("files", "it ended"));
        waiting.end(unavailable("files", "again"));
        for error in [
            call.try_recv().unwrap().unwrap_err(),
            waiting.enter(2, 1).unwrap_err(),
        ] {
            assert_eq!(error.code, ErrorCode::McpUnavailable);
            assert!(error.message.contains("it ended"), "{}", error.message);
        }
    }

    #[test]
    fn a_server_may_ask_whether_somebody_is_there() {
        let waiting = Waiting::new(&"files".into());
        let reply = waiting.take(line(r#"{"id":"p","method":"ping"}"#)).unwrap();
        assert_eq!(reply, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
    }
}
