//! Work that blocks, off the threads that run programs.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::Error;

/// Runs `work` off the threads that run programs. The permit stays with the work, which continues when the launch that
/// waits for it is cancelled.
///
/// # Errors
/// `internal` where the work panicked.
pub(crate) async fn off_thread<T: Send + 'static>(
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let permit = permits
        .clone()
        .acquire_owned()
        .await
        .map_err(Error::internal)?;
    let work = move || {
        let _permit = permit;
        work()
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Error::internal)
}

/// Reads or hashes off the threads that run programs.
///
/// # Errors
/// `internal` where the work panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn work_whose_launch_is_cancelled_keeps_its_permit_until_it_is_done() {
        let permits = Arc::new(Semaphore::new(1));
        let (started, has_started) = tokio::sync::oneshot::channel();
        let (finish, finished) = mpsc::channel::<()>();
        {
            let mut work = pin!(off_thread(&permits, move || {
                started.send(()).unwrap();
                // The other end is dropped.
                assert!(finished.recv().is_err());
            }));
            tokio::select! {
                biased;
                _ = &mut work => panic!("the work cannot be done"),
                started = has_started => started.unwrap(),
            }
        }
        assert_eq!(permits.available_permits(), 0);
        drop(finish);
        drop(permits.acquire().await.unwrap());
    }
}
