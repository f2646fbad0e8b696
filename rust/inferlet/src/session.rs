//! The channel to the client that launched the program.
//!
//! ```no_run
//! use inferlet::pie::core::session;
//! use inferlet::FutureStringExt;
//!
//! # async fn talk() {
//! session::send("ready");
//! let message: Option<String> = session::receive().wait_async().await;
//! # }
//! ```

use crate::bindings::pie::core::futures::FutureString;
pub use crate::bindings::pie::core::session::{receive, send};
use crate::task::answer;

/// Awaiting a [`FutureString`].
pub trait FutureStringExt {
    /// The text, or none once its source is closed: after the client has disconnected. Dropping the wait loses no message.
    fn wait_async(self) -> impl Future<Output = Option<String>>;
}

impl FutureStringExt for FutureString {
    async fn wait_async(self) -> Option<String> {
        answer(self).await.ok()
    }
}
