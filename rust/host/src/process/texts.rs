//! Work whose time and memory grow with a text: charged, bounded, and where it is long done apart from the threads that
//! run programs.

use std::sync::Arc;

use super::record::ProcessRecord;
use super::surroundings::Surroundings;
use crate::Error;
use crate::budget::{Charge, Purpose};
use crate::errors::stopped;
use crate::sandbox::trim::give_back_freed;

/// The longest text that is worked on where the program runs: a few milliseconds of encoding.
const SHORT_TEXT_BYTES: usize = 8 << 10;
/// What encoding takes at most for each byte of a text: 415 bytes for each part that the tokenizer splits the text into
/// before it merges (measured with parts of two bytes), and a part has at least one. Prose takes about 100.
const WORK_BYTES: u64 = 448;
/// Work that took more leaves so much free memory in the allocator that it is worth giving back.
const WORTH_TRIMMING_BYTES: u64 = 32 << 20;

/// The texts of one process.
pub(crate) struct Texts {
    record: Arc<ProcessRecord>,
    surroundings: Arc<Surroundings>,
}

impl Texts {
    /// Those of a process.
    pub(crate) fn new(record: Arc<ProcessRecord>, surroundings: Arc<Surroundings>) -> Self {
        Self {
            record,
            surroundings,
        }
    }

    /// Charges the user with what a call works on, until it is done; a short text is part of what each process is
    /// charged with.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn charge(&self, n_bytes: usize) -> Result<Option<Charge>, Error> {
        if n_bytes <= SHORT_TEXT_BYTES {
            return Ok(None);
        }
        let account = &self.record.account;
        account.charge(Purpose::Text, n_bytes as u64).map(Some)
    }

    /// Runs work whose time and memory grow with `text`. Users take turns at long ones, which are done on threads of
    /// low priority. What has begun is done to its end, also where the process ends: the tokenizer cannot be
    /// interrupted in the middle of a text. It has its turn and its charge until then.
    ///
    /// # Errors
    /// `limit-engine-memory` where there is no room for it, `limit-queue` where too many wait, `engine-stopped`.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        text: String,
        work: impl FnOnce(&str) -> T + Send + 'static,
    ) -> Result<T, Error> {
        if text.len() <= SHORT_TEXT_BYTES {
            return Ok(work(&text));
        }
        self.apart(text, work).await
    }

    async fn apart<T: Send + 'static>(
        &self,
        text: String,
        work: impl FnOnce(&str) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let Surroundings {
            encoding,
            background,
            ..
        } = &*self.surroundings;
        let n_bytes = text.len() as u64;
        let mut charge = self.record.account.charge(Purpose::Text, n_bytes)?;
        let turn = encoding.take(&self.record.username).await?;
        let work_bytes = n_bytes.saturating_mul(WORK_BYTES);
        charge.resize(work_bytes)?;
        let done = background.spawn_blocking(move || {
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
}
