//! How a process is kept whose readers come and go, and who is told what happens in it.

use std::fmt;
use std::sync::Arc;

use crate::event::Event;

/// Who is told what happens in processes that are launched with it. It is called from the threads that run programs and
/// must not wait.
pub trait Observer: Send + Sync {
    /// The process wrote `text` to its standard error.
    fn stderr(&self, pid: u64, text: &str);

    /// The process has ended with `last`, which its readers get after this call.
    fn ended(&self, pid: u64, last: &Event);
}

/// How a process is kept whose readers come and go.
#[derive(Clone)]
pub struct Serving {
    /// Bytes of events kept while nobody is attached, each counted with 64 bytes beside what it carries.
    pub kept_bytes: usize,
    /// Bytes of output kept as a log.
    pub log_bytes: usize,
    /// Window of the reader that is attached from the beginning; none: nobody is.
    pub window_bytes: Option<usize>,
    /// Who is told what happens.
    pub observer: Arc<dyn Observer>,
}

impl fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Serving")
            .field("kept_bytes", &self.kept_bytes)
            .field("log_bytes", &self.log_bytes)
            .field("window_bytes", &self.window_bytes)
            .finish_non_exhaustive()
    }
}
