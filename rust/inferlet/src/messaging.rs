//! Messages between the programs of one user that run in one engine.
//!
//! Each topic has a queue, from which every message is taken once, and broadcasts, of which every subscription gets a
//! copy. Queues and broadcasts of one name have nothing to do with each other.
//!
//! ```no_run
//! use inferlet::messaging;
//! use inferlet::{FutureStringExt, SubscriptionExt};
//!
//! # async fn talk() -> inferlet::Result<()> {
//! messaging::push("jobs", "count the words")?;
//! let job: Option<String> = messaging::pull("jobs").wait_async().await;
//!
//! let sub = messaging::subscribe("news");
//! messaging::broadcast("news", "it rains")?;
//! let news: Option<String> = sub.get_async().await;
//! sub.unsubscribe();
//! # Ok(())
//! # }
//! ```

use crate::Result;
use crate::bindings::pie::core::futures::FutureString;
use crate::bindings::pie::core::messaging as raw;
use crate::bindings::wasi::io::poll::Pollable;
use crate::kept::Keeper;
use crate::stdout::flush_output;
use crate::task::{answer, may_go_on};

/// Adds a message to the queue of a topic. It waits there until somebody pulls it, also when this program has ended.
/// Where the queue is full the program is suspended until there is room, up to the time that the engine allows.
///
/// # Errors
/// `queue-full` where there is no room in time, `limit-message` for a message that is too long, `invalid-argument` for
/// a topic that is not a name.
pub fn push(topic: &str, message: &str) -> Result<()> {
    flush_output();
    Ok(raw::push(topic, message)?)
}

/// The next message of the queue of a topic, as a future to await by [`FutureStringExt`](crate::FutureStringExt).
/// Messages are taken in the order in which they were pushed. A pull that is dropped takes none. What is wrong with the
/// topic makes it none. What a program in Python or TypeScript pushed as JSON is the text of it: `serde_json::from_str`
/// reads that.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub fn pull(topic: &str) -> FutureString {
    raw::pull(topic)
}

/// Gives a message to every subscription of a topic that there is. Nobody waits for it: a subscription that holds too
/// much drops its oldest message.
///
/// # Errors
/// `limit-message` for a message that is too long, `invalid-argument` for a topic that is not a name.
pub fn broadcast(topic: &str, message: &str) -> Result<()> {
    Ok(raw::broadcast(topic, message)?)
}

/// Subscribes to what is broadcast from now on. Where the call fails, as for a topic that is not a name, the
/// subscription has ended from the start, and the error fails the program at its end; see [`try_subscribe`].
pub fn subscribe(topic: &str) -> Subscription {
    Subscription {
        raw: raw::subscribe(topic)
            .inspect_err(|error| Keeper::new().keep(error.clone()))
            .ok(),
    }
}

/// Subscribes to what is broadcast from now on.
///
/// # Errors
/// `invalid-argument` for a topic that is not a name, `limit-resources` where there are too many subscriptions.
pub fn try_subscribe(topic: &str) -> Result<Subscription> {
    let raw = Some(raw::subscribe(topic)?);
    Ok(Subscription { raw })
}

/// Holds what was broadcast until it is taken. Dropping it ends it.
#[derive(Debug)]
pub struct Subscription {
    /// None where it could not be made.
    raw: Option<raw::Subscription>,
}

impl Subscription {
    /// Ready when a message is there, and when the subscription has ended.
    pub fn pollable(&self) -> Pollable {
        match &self.raw {
            Some(raw) => raw.pollable(),
            None => crate::bindings::wasi::clocks::monotonic_clock::subscribe_duration(0),
        }
    }

    /// The next message, if one is there.
    pub fn get(&self) -> Option<String> {
        self.raw.as_ref()?.get()
    }

    /// How many messages were dropped because too many waited.
    pub fn lagged(&self) -> u64 {
        self.raw.as_ref().map_or(0, raw::Subscription::lagged)
    }

    /// Ends the subscription, with what it holds. Again it does nothing.
    pub fn unsubscribe(&self) {
        if let Some(raw) = &self.raw {
            raw.unsubscribe();
        }
    }
}

/// Awaits the messages of a [`Subscription`].
pub trait SubscriptionExt {
    /// The next message; none when the subscription has ended. Dropping the wait loses no message.
    fn get_async(&self) -> impl Future<Output = Option<String>>;
}

impl SubscriptionExt for Subscription {
    async fn get_async(&self) -> Option<String> {
        let raw = self.raw.as_ref()?;
        if may_go_on()
            && let Some(message) = raw.get()
        {
            return Some(message);
        }
        answer(raw.next()).await.ok().flatten()
    }
}
