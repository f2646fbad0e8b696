//! The channel to the client that launched the program.
//!
//! ```no_run
//! use inferlet::session;
//!
//! # async fn talk() {
//! session::send("ready");
//! let message: Option<String> = session::receive().await;
//! session::send_file(b"any bytes");
//! let file: Option<Vec<u8>> = session::receive_file().await;
//! # }
//! ```
//!
//! [`FutureStringExt::wait_async`] and [`FutureBlobExt::wait_async`] are the same wait as a method.

use std::pin::Pin;

use serde::Serialize;

use crate::bindings::pie::core::futures::{FutureBlob, FutureString};
use crate::bindings::pie::core::session as raw;
use crate::kept::Keeper;
use crate::stdout::flush_output;
use crate::task::answer_soon;
use crate::{ErrorCode, Result, errors};

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

/// The next message or signal of the client: `session::receive().await` is its text, or none after a disconnect, and at
/// once in a program that another one has started, which has no client. What was sent before the program asks is kept.
/// Dropping the wait loses no message. [`FutureStringExt::try_wait_async`] gives the error `session-closed` in place of
/// none.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub fn receive() -> FutureString {
    raw::receive()
}

/// Signals and messages come in one order, through one queue; this name says that a program expects a signal. Otherwise
/// as [`receive`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub fn receive_signal() -> FutureString {
    raw::receive()
}

/// The next file of the client: `session::receive_file().await` is its bytes, or none after a disconnect. Files wait in
/// a queue of their own; what was sent before the program asks is kept. Dropping the wait loses no file.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub fn receive_file() -> FutureBlob {
    raw::receive_file()
}

/// Awaits a [`FutureString`], as `receive` returns it.
pub trait FutureStringExt {
    /// The text, or none once its source is closed: after the client has disconnected, and at once in a child, which
    /// has no client. Dropping the wait loses no message. Another error gives none too, and fails the program at its
    /// end; see [`FutureStringExt::try_wait_async`].
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

impl IntoFuture for FutureString {
    type Output = Option<String>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output>>>;

    /// As [`FutureStringExt::wait_async`]: `session::receive().await`.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait_async())
    }
}

impl IntoFuture for FutureBlob {
    type Output = Option<Vec<u8>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output>>>;

    /// As [`FutureBlobExt::wait_async`]: `session::receive_file().await`.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait_async())
    }
}

/// Awaits a [`FutureBlob`], as `receive_file` returns it.
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

/// The answer, or none. An error that is not the end of the source is kept, so that it is not silent.
fn unless_closed<T>(answer: Result<T>) -> Option<T> {
    answer
        .inspect_err(|error| {
            if errors::error_code(error) != Some(ErrorCode::SessionClosed) {
                Keeper::new().keep(error.as_str());
            }
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept;

    #[test]
    fn a_disconnect_is_none_and_any_other_error_is_kept() {
        assert_eq!(unless_closed(Ok(1)), Some(1));
        let closed: Result<u32> = Err(errors::text(ErrorCode::SessionClosed, "the client left"));
        assert_eq!(unless_closed(closed), None);
        assert_eq!(kept::take_unmet(), None);
        let taken = errors::text(ErrorCode::FutureTaken, "it was taken");
        assert_eq!(unless_closed::<u32>(Err(taken.clone())), None);
        assert_eq!(kept::take_unmet(), Some(taken));
    }
}
