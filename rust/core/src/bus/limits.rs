//! The bounds of what programs send to each other.

use super::line::Line;
use crate::errors::{Error, ErrorCode, Result};

/// Bytes of the name of a topic.
const MAX_TOPIC_BYTES: usize = 256;
/// Bytes of a name that a message repeats.
const MAX_SHOWN: usize = 80;

/// What a message holds beside its bytes: its place in a queue, and its topic where it is the only one.
pub(super) const BESIDE_BYTES: usize = 512;

/// The bounds of the topics of one user.
#[derive(Clone, Copy, Debug)]
pub struct BusLimits {
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Messages that a queue holds before a push waits.
    pub queue_messages: usize,
    /// Bytes that a queue holds before a push waits; one message may go beyond.
    pub queue_bytes: usize,
    /// Bytes in all queues together, each message counted with 512 bytes beside its own.
    pub user_bytes: usize,
    /// Copies that a subscription holds before it drops the oldest.
    pub subscription_messages: usize,
    /// Bytes that a subscription holds before it drops the oldest; one message may go beyond.
    pub subscription_bytes: usize,
    /// Topics that are in use at once.
    pub topics: usize,
    /// Subscriptions at once.
    pub subscriptions: usize,
}

impl BusLimits {
    /// Checks the length of a message.
    ///
    /// # Errors
    /// `limit-message`.
    pub fn check_message(&self, n_bytes: usize) -> Result<()> {
        let most = self.message_bytes;
        if n_bytes <= most {
            return Ok(());
        }
        let message = format!(
            "a message of {n_bytes} bytes is longer than engine.bus_message_bytes = {most}; send it in parts, or raise the limit"
        );
        let values = [("n_bytes", n_bytes as u64), ("limit", most as u64)];
        Err(Error::with_values(
            ErrorCode::LimitMessage,
            message,
            &values,
        ))
    }

    /// Checks the name of a topic.
    ///
    /// # Errors
    /// `invalid-argument`.
    pub fn check_topic(&self, topic: &str) -> Result<()> {
        let n_bytes = topic.len();
        if (1..=MAX_TOPIC_BYTES).contains(&n_bytes) && !topic.contains(char::is_control) {
            return Ok(());
        }
        let shown: String = topic.chars().take(MAX_SHOWN).collect();
        let message = format!(
            "the topic {shown:?} of {n_bytes} bytes is not a name; give 1 to {MAX_TOPIC_BYTES} bytes without control characters"
        );
        Err(Error::new(ErrorCode::InvalidArgument, message))
    }

    /// The error of a push that found no room in `waited_s`.
    pub fn queue_full(&self, topic: &str, waited_s: f64) -> Error {
        let (messages, bytes) = (self.queue_messages, self.queue_bytes);
        let message = format!(
            "the queue {topic:?} is full at engine.bus_queue_messages = {messages} or engine.bus_queue_bytes = {bytes}, and nobody \
             made room within engine.bus_push_s = {waited_s}; pull faster, push again later, or raise a limit"
        );
        let values = [("messages", messages as u64), ("bytes", bytes as u64)];
        Error::with_values(ErrorCode::QueueFull, message, &values)
    }

    /// Checks whether a message has room beside all others in queues.
    ///
    /// # Errors
    /// `queue-full`.
    pub(super) fn check_room(&self, held_bytes: usize, n_bytes: usize) -> Result<()> {
        let most = self.user_bytes;
        if held_bytes.saturating_add(n_bytes) <= most {
            return Ok(());
        }
        let message = format!(
            "the queues of the user hold {held_bytes} bytes, and {n_bytes} more would be beyond engine.bus_user_bytes = {most}; \
             pull what waits in them, or raise the limit"
        );
        let values = [("held_bytes", held_bytes as u64), ("limit", most as u64)];
        Err(Error::with_values(ErrorCode::QueueFull, message, &values))
    }

    pub(super) fn check_topics(&self, n_topics: usize) -> Result<()> {
        let remedy = "take what waits in some, give up pulls, or raise the limit";
        too_many("topics", n_topics, self.topics, "bus_topics", remedy)
    }

    pub(super) fn check_subscriptions(&self, n_subscriptions: usize) -> Result<()> {
        let remedy = "end some, or raise the limit";
        let most = self.subscriptions;
        too_many(
            "subscriptions",
            n_subscriptions,
            most,
            "bus_subscriptions",
            remedy,
        )
    }

    pub(super) fn is_queue_full<M, B>(&self, queue: &Line<M, B>) -> bool {
        queue.n_messages() >= self.queue_messages || queue.n_bytes() >= self.queue_bytes
    }

    pub(super) fn is_subscription_over<M, B>(&self, line: &Line<M, B>) -> bool {
        line.n_messages() > self.subscription_messages || line.n_bytes() > self.subscription_bytes
    }
}

fn too_many(what: &str, n: usize, most: usize, setting: &str, remedy: &str) -> Result<()> {
    if n < most {
        return Ok(());
    }
    let message = format!(
        "the user has {n} {what} in use, the most that engine.{setting} = {most} allows; {remedy}"
    );
    Err(Error::with_values(
        ErrorCode::LimitResources,
        message,
        &[("limit", most as u64)],
    ))
}
