//! Requests about who is connected: for operators.

use super::*;
use crate::protocol::incoming::{Nothing, OfConnection};

impl Session {
    /// Answers with a row for each client that is connected.
    pub(super) async fn connections(&self, mut request: Request) {
        let id = request.id;
        let asked = request.fields::<Nothing>();
        match asked.and_then(|Nothing {}| permits::operator(&self.who, "who is connected")) {
            Ok(()) => {
                let places = &self.shared.places;
                let rows = || places.list().into_iter();
                self.listed(id, "connections", places.count(), rows).await;
            }
            Err(error) => self.answer(id, Err(error)).await,
        }
    }

    /// Ends the connection of a client, who is told so. What the client has launched goes on as after any disconnect.
    pub(super) fn disconnect(&self, request: &mut Request) -> Answer {
        let OfConnection { connection } = request.fields()?;
        let permitted = permits::operator(&self.who, "\"disconnect\"");
        let ended = permitted.and_then(|()| {
            if self.shared.places.end(connection) {
                return Ok(json!({}));
            }
            let message =
                format!("no client is connected as {connection}; `pie connection list` lists them");
            Err(Error::new(ErrorCode::InvalidArgument, message))
        });
        self.note("disconnect", connection.to_string()).of(ended)
    }
}
