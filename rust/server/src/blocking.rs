//! Work that blocks.

use pie_host::Error;

/// Runs work that blocks, off the threads of the connections.
///
/// # Errors
/// Those of the work; `internal` where it panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal(error)))
}
