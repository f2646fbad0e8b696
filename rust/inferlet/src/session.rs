//! The channel to the client that launched the program.
//!
//! ```no_run
//! use inferlet::pie::core::session;
//! use inferlet::{FutureBlobExt, FutureStringExt};
//!
//! # async fn talk() {
//! session::send("ready");
//! let message: Option<String> = session::receive().wait_async().await;
//! session::send_file(b"any bytes");
//! let file: Option<Vec<u8>> = session::receive_file().wait_async().await;
//! # }
//! ```

use serde::Serialize;

use crate::bindings::pie::core::futures::{FutureBlob, FutureString};
use crate::bindings::pie::core::session as raw;
/// Signals and messages come in one order, through one queue; this name says that a program expects a signal.
pub use crate::bindings::pie::core::session::receive as receive_signal;
pub use crate::bindings::pie::core::session::{receive, receive_file};
use crate::error_codes::ErrorCode;
use crate::errors::error_code;
use crate::kept::Keeper;
use crate::stdout::flush_output;
use crate::task::answer_soon;
use crate::{Result, errors};

/// Sends a text: the client's `Stdout` event, marked as a text. What was printed before is sent before it. A slow
/// client suspends the program.
pub fn send(message: &str) {
    flush_output();
    raw::send(message);
}

/// Sends a value as JSON: the client's `Stdout` event, marked as JSON. Otherwise as [`send`].
///
/// # Errors
/// `invalid-argument` for a value that JSON cannot hold.
pub fn send_json(value: &impl Serialize) -> Result<()> {
    let text = errors::to_json("what is sent", value)?;
    flush_output();
    raw::send_json(&text);
    Ok(())
}

/// Tells the client something beside the output: its `Message` event, in order with the others. It is in no log, and
/// `pie run` does not print it. A slow client suspends the program.
pub fn message(text: &str) {
    flush_output();
    raw::message(text);
}

/// Sends bytes: one `File` event of the client, in order with the texts. A slow client suspends the program.
pub fn send_file(data: &[u8]) {
    flush_output();
    raw::send_file(data);
}

/// Awaiting a [`FutureString`].
pub trait FutureStringExt {
    /// The text, or none once its source is closed: after the client has disconnected. Dropping the wait loses no
    /// message. Another error gives none too, and fails the program at its end; see
    /// [`FutureStringExt::try_wait_async`].
    fn wait_async(self) -> impl Future<Output = Option<String>>;

    /// The text, as a fallible call.
    ///
    /// # Errors
    /// `session-closed` after the client has disconnected, and whatever else kept the text away.
    fn try_wait_async(self) -> impl Future<Output = Result<String>>;
}

impl FutureStringExt for FutureString {
    async fn wait_async(self) -> Option<String> {
        unless_closed(answer_soon(self).await)
    }

    async fn try_wait_async(self) -> Result<String> {
        answer_soon(self).await
    }
}

/// Awaiting a [`FutureBlob`].
pub trait FutureBlobExt {
    /// The bytes, or none once their source is closed: after the client has disconnected. Dropping the wait loses no
    /// file. Another error gives none too, and fails the program at its end; see [`FutureBlobExt::try_wait_async`].
    fn wait_async(self) -> impl Future<Output = Option<Vec<u8>>>;

    /// The bytes, as a fallible call.
    ///
    /// # Errors
    /// `session-closed` after the client has disconnected, and whatever else kept the bytes away.
    fn try_wait_async(self) -> impl Future<Output = Result<Vec<u8>>>;
}

impl FutureBlobExt for FutureBlob {
    async fn wait_async(self) -> Option<Vec<u8>> {
        unless_closed(answer_soon(self).await)
    }

    async fn try_wait_async(self) -> Result<Vec<u8>> {
        answer_soon(self).await
    }
}

/// What came, or none where its source was closed. Another error is kept.
fn unless_closed<T>(answer: Result<T>) -> Option<T> {
    answer
        .map_err(|error| {
            if error_code(&error) != Some(ErrorCode::SessionClosed) {
                Keeper::new().keep(error);
            }
        })
        .ok()
}
