//! Requests about who is connected: for operators, as `permits` has checked.

use super::*;
use crate::protocol::incoming::{Nothing, OfConnection};

impl Session {
    /// Answers with a row for each client that is connected.
    pub(super) async fn connections(&self, mut request: Request) {
        let id = request.id;
        match request.fields::<Nothing>() {
            Ok(Nothing {}) => {
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
        let ended = if self.shared.places.end(connection) {
            Ok(json!({}))
        } else {
            let message =
                format!("no client is connected as {connection}; `pie connection list` lists them");
            Err(Error::new(ErrorCode::InvalidArgument, message))
        };
        self.note("disconnect", connection.to_string()).of(ended)
    }
}
