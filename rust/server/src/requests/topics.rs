//! Requests about the topics by which programs send to each other.

use pie_host::TopicStats;

use super::*;
use crate::protocol::incoming::{DiscardTopic, Listing};

impl Session {
    /// Answers with a row for each topic that is in use: of the user's own or, for an operator, of everybody's.
    pub(super) async fn topics(&self, mut request: Request) {
        let id = request.id;
        let asked = request
            .fields::<Listing>()
            .and_then(|asked| self.whose(asked.all_users));
        match asked {
            Ok(of) => {
                let bus = self.shared.host.bus();
                let n_rows = bus.topics(of).len();
                let rows = || {
                    let topics = bus.topics(of).into_iter();
                    topics.map(move |(user, topic)| row(of.is_none().then_some(user), &topic))
                };
                self.listed(id, "topics", n_rows, rows).await;
            }
            Err(error) => self.answer(id, Err(error)).await,
        }
    }

    /// Drops what waits in the queue of a topic. Who waits for a message goes on waiting.
    pub(super) fn discard_topic(&self, request: &mut Request) -> Answer {
        let DiscardTopic { topic, user } = request.fields()?;
        let user = permits::user(&self.who, user.as_deref());
        let object = format!("{}: {topic}", user.as_ref().copied().unwrap_or("?"));
        let bus = self.shared.host.bus();
        let dropped = user.map(|user| json!({ "dropped": bus.discard(user, &topic) }));
        self.note("discard_topic", object).of(dropped)
    }
}

/// A topic as it is listed, with whose it is in a list of everybody's.
fn row(user: Option<String>, topic: &TopicStats) -> Value {
    let mut row = json!({
        "topic": topic.name, "queued": topic.n_queued, "queued_bytes": topic.queued_bytes,
        "waiting_pushes": topic.n_waiting_pushes, "waiting_pulls": topic.n_waiting_pulls,
        "subscriptions": topic.n_subscriptions,
    });
    if let Some(user) = user {
        row["user"] = json!(user);
    }
    row
}
