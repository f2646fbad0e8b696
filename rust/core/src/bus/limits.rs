//! The bounds of what programs send to each other.

use super::line::Line;
use crate::errors::{Error, ErrorCode, Result};

/// Bytes of the name of a topic.
const MAX_TOPIC_BYTES: usize = 256;
/// Bytes of a name that a message repeats.
const MAX_SHOWN: usize = 80;

/// What a message holds beside its bytes: its place in a queue, and its topic where it is the only one.
pub(super) const BESIDE_BYTES: usize = 512;

/// Where users find the bounds of a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusSettingNames {
    /// What gives more [`BusLimits::message_bytes`].
    pub message_bytes: &'static str,
    /// What gives more [`BusLimits::queue_messages`].
    pub queue_messages: &'static str,
    /// What gives more [`BusLimits::queue_bytes`].
    pub queue_bytes: &'static str,
    /// What gives more [`BusLimits::user_bytes`].
    pub user_bytes: &'static str,
    /// What gives more [`BusLimits::topics`].
    pub topics: &'static str,
    /// What gives more [`BusLimits::subscriptions`].
    pub subscriptions: &'static str,
    /// What has a push wait longer for room.
    pub push_wait: &'static str,
}

impl BusSettingNames {
    /// The names of the fields.
    pub const PLAIN: Self = Self {
        message_bytes: "message_bytes",
        queue_messages: "queue_messages",
        queue_bytes: "queue_bytes",
        user_bytes: "user_bytes",
        topics: "topics",
        subscriptions: "subscriptions",
        push_wait: "push_wait",
    };
}

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
    /// Names of settings in messages.
    pub names: BusSettingNames,
}

impl BusLimits {
    /// Checks the length of a message.
    ///
    /// # Errors
    /// `limit-message`.
    pub fn check_message(&self, n_bytes: usize) -> Result<()> {
        let (most, setting) = (self.message_bytes, self.names.message_bytes);
        if n_bytes <= most {
            return Ok(());
        }
        let message = format!(
            "a message of {n_bytes} bytes is longer than {setting} = {most}; send it in parts, or raise the limit"
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
        let BusSettingNames {
            queue_messages,
            queue_bytes,
            push_wait,
            ..
        } = self.names;
        let message = format!(
            "the queue {topic:?} is full at {queue_messages} = {messages} or {queue_bytes} = {bytes}, and nobody made room within \
             {push_wait} = {waited_s}; pull faster, push again later, or raise a limit"
        );
        let values = [("messages", messages as u64), ("bytes", bytes as u64)];
        Error::with_values(ErrorCode::QueueFull, message, &values)
    }

    /// Checks whether a message has room beside all others in queues.
    ///
    /// # Errors
    /// `queue-full`.
    pub(super) fn check_room(&self, held_bytes: usize, n_bytes: usize) -> Result<()> {
        let (most, setting) = (self.user_bytes, self.names.user_bytes);
        if held_bytes.saturating_add(n_bytes) <= most {
            return Ok(());
        }
        let message = format!(
            "the queues of the user hold {held_bytes} bytes, and {n_bytes} more would be beyond {setting} = {most}; \
             pull what waits in them, or raise the limit"
        );
        let values = [("held_bytes", held_bytes as u64), ("limit", most as u64)];
        Err(Error::with_values(ErrorCode::QueueFull, message, &values))
    }

    pub(super) fn check_topics(&self, n_topics: usize) -> Result<()> {
        let remedy = "take what waits in some, give up pulls, or raise the limit";
        too_many("topics", n_topics, self.topics, self.names.topics, remedy)
    }

    pub(super) fn check_subscriptions(&self, n_subscriptions: usize) -> Result<()> {
        let remedy = "end some, or raise the limit";
        let most = self.subscriptions;
        too_many(
            "subscriptions",
            n_subscriptions,
            most,
            self.names.subscriptions,
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
        "the user has {n} {what} in use, the most that {setting} = {most} allows; {remedy}"
    );
    Err(Error::with_values(
        ErrorCode::LimitResources,
        message,
        &[("limit", most as u64)],
    ))
}
