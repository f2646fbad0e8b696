//! Work whose time and memory grow with a text: charged, bounded, and where it is long done apart from the threads that run programs.

use pie_core::ErrorCode;

use crate::Error;
use crate::budget::{Charge, Purpose};
use crate::host::{Shared, stopped};
use crate::process::state::{ProcessState, Record};
use crate::sandbox::trim::give_back_freed;

/// The longest text that is worked on where the program runs: a few milliseconds of encoding.
const SHORT_TEXT_BYTES: usize = 8 << 10;
/// What encoding takes at most for each byte of a text: 415 bytes for each part that the tokenizer splits the text into before it merges
/// (measured with parts of two bytes), and a part has at least one. Prose takes about 100.
const WORK_BYTES: u64 = 448;
/// Work that took more leaves so much free memory in the allocator that it is worth giving back.
const WORTH_TRIMMING_BYTES: u64 = 32 << 20;

impl ProcessState {
    /// Charges the user with what a call works on, until it is done; a short text is part of what each process is
    /// charged with.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn charge_text(&self, n_bytes: usize) -> Result<Option<Charge>, Error> {
        if n_bytes <= SHORT_TEXT_BYTES {
            return Ok(None);
        }
        let account = &self.record.account;
        account.charge(Purpose::Text, n_bytes as u64).map(Some)
    }

    /// Runs work whose time and memory grow with `text`. Users take turns at long ones, which are done on threads of low priority.
    ///
    /// # Errors
    /// `limit-engine-memory` where there is no room for it, `limit-queue` where too many wait, `engine-stopped`.
    pub(crate) async fn with_text<T: Send + 'static>(
        &mut self,
        text: String,
        work: impl FnOnce(&str) -> T + Send + 'static,
    ) -> Result<T, Error> {
        if text.len() <= SHORT_TEXT_BYTES {
            return Ok(work(&text));
        }
        apart(&self.host, &self.record, text, work).await
    }
}

async fn apart<T: Send + 'static>(
    host: &Shared,
    record: &Record,
    text: String,
    work: impl FnOnce(&str) -> T + Send + 'static,
) -> Result<T, Error> {
    let n_bytes = text.len() as u64;
    let mut charge = record.account.charge(Purpose::Text, n_bytes)?;
    let turn = host.encoding.take(&record.username).await?;
    let work_bytes = n_bytes.saturating_mul(WORK_BYTES);
    charge.resize(work_bytes)?;
    let done = host.background.spawn_blocking(move || {
        let done = work(&text);
        drop(text);
        if work_bytes > WORTH_TRIMMING_BYTES {
            give_back_freed();
        }
        drop((charge, turn));
        done
    });
    done.await.map_err(|error| {
        if error.is_panic() {
            Error::internal("the engine met a fault of its own while it encoded a text; what it printed on stderr says more")
        } else {
            stopped()
        }
    })
}

/// Refuses a text that no context of a model can hold, before anything is computed.
///
/// # Errors
/// `context-full`.
pub(crate) fn check_fits(n_bytes: usize, most_bytes: usize, max_context: u32) -> Result<(), Error> {
    if n_bytes <= most_bytes {
        return Ok(());
    }
    Err(Error::with_values(
        ErrorCode::ContextFull,
        format!(
            "a text of {n_bytes} bytes does not fit: contexts of the model hold {max_context} tokens, and no text of more than {most_bytes} bytes is looked at; \
             give a shorter one"
        ),
        &[("bytes", n_bytes as u64), ("limit", most_bytes as u64)],
    ))
}
