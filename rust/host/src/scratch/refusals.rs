//! Why the engine refused a process something: the system interface has a number for it, and no words.

use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;
use wasmtime_wasi::p2::bindings::filesystem::types;
use wasmtime_wasi::p2::{FsError, StreamError};

use super::folder::Fault;
use crate::Error;
use crate::sync::lock;

/// What one process was refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Mutex<Refused>>);

#[derive(Debug, Default)]
struct Refused {
    /// Why the process has no folder of its own: that stays.
    off: Option<Error>,
    /// The last refusal, until something fails for another reason.
    last: Option<Error>,
}

impl Refusals {
    /// The process has no folder of its own.
    pub(super) fn note_off(&self, error: Error) {
        lock(&self.0).off = Some(error);
    }

    /// The number of what failed. A refusal is noted; what else fails makes the last one stale, since the libraries of
    /// most languages have one number for both, and ask whether it was the engine.
    pub(crate) fn failed(&self, fault: Fault) -> FsError {
        self.note(&fault);
        match fault {
            Fault::Io(error) => error.into(),
            Fault::Refused(error) => number(&error).into(),
        }
    }

    /// The same of what the engine refuses by a number of its own.
    pub(crate) fn refused(&self, error: Error, number: types::ErrorCode) -> FsError {
        lock(&self.0).last = Some(error);
        number.into()
    }

    /// The same, of a stream.
    pub(super) fn stream_failed(&self, fault: Fault) -> StreamError {
        self.note(&fault);
        StreamError::LastOperationFailed(match fault {
            Fault::Io(error) => error.into(),
            Fault::Refused(error) => error.into(),
        })
    }

    fn note(&self, fault: &Fault) {
        lock(&self.0).last = match fault {
            Fault::Io(_) => None,
            Fault::Refused(error) => Some(error.clone()),
        };
    }

    /// Something failed, and not by the engine.
    pub(crate) fn forget(&self) {
        lock(&self.0).last = None;
    }

    /// Why the process has no folder of its own.
    pub(crate) fn off(&self) -> Option<Error> {
        lock(&self.0).off.clone()
    }

    /// The last one.
    pub(crate) fn last(&self) -> Option<Error> {
        let refused = lock(&self.0);
        refused.last.clone().or_else(|| refused.off.clone())
    }
}

/// The number of the system interface for a refusal.
pub(crate) fn number(error: &Error) -> types::ErrorCode {
    match error.code {
        ErrorCode::LimitFiles => types::ErrorCode::Quota,
        ErrorCode::FilesStalled => types::ErrorCode::Io,
        _ => types::ErrorCode::InsufficientMemory,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn codes(refusals: &Refusals) -> Option<ErrorCode> {
        refusals.last().map(|error| error.code)
    }

    #[test]
    fn what_fails_by_itself_is_not_told_of_as_the_refusal_before_it() {
        let refusals = Refusals::default();
        let refused = || Fault::Refused(Error::new(ErrorCode::LimitFiles, "full"));
        let broken = || Fault::Io(io::ErrorKind::Other.into());
        drop(refusals.failed(refused()));
        assert_eq!(codes(&refusals), Some(ErrorCode::LimitFiles));
        drop(refusals.failed(broken()));
        assert_eq!(codes(&refusals), None);
        drop(refusals.stream_failed(refused()));
        assert_eq!(codes(&refusals), Some(ErrorCode::LimitFiles));
        drop(refusals.stream_failed(broken()));
        assert_eq!(codes(&refusals), None);
    }

    #[test]
    fn that_there_is_no_folder_stays() {
        let refusals = Refusals::default();
        refusals.note_off(Error::new(ErrorCode::FilesOff, "off"));
        let full = Error::new(ErrorCode::LimitResources, "too many");
        drop(refusals.failed(full.into()));
        assert_eq!(codes(&refusals), Some(ErrorCode::LimitResources));
        refusals.forget();
        assert_eq!(codes(&refusals), Some(ErrorCode::FilesOff));
    }
}
