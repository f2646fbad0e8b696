//! The time of an answer, as its connection looks at it: a connection whose answer is overdue ends, whether its client
//! takes some of the answer or nothing.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// When the answer that is being sent has to be over; none: it may take any time, or none is.
pub(super) type Due = watch::Sender<Option<Instant>>;

/// Waits until an answer has not been over in its time.
pub(super) async fn overdue(due: &mut watch::Receiver<Option<Instant>>) {
    loop {
        let until = *due.borrow_and_update();
        let is_over = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = is_over => return,
            changed = due.changed() => if changed.is_err() {
                // Nobody asks any more: the connection ends by itself.
                std::future::pending::<()>().await;
            },
        }
    }
}

/// An answer that has a time, until it is dropped.
pub(super) struct Timed {
    due: Arc<Due>,
    /// Waits for what ends it before.
    waiting: Option<AbortHandle>,
}

impl Timed {
    /// It has to be over at that time; none: it may take any.
    pub(super) fn new(due: &Arc<Due>, until: Option<Instant>) -> Self {
        due.send_replace(until);
        Self {
            due: due.clone(),
            waiting: None,
        }
    }

    /// The same, which is over too when something else happens; none: nothing does.
    pub(super) fn unless(
        mut self,
        happens: Option<impl Future<Output = ()> + Send + 'static>,
    ) -> Self {
        let due = self.due.clone();
        let waiting = happens.map(|happens| async move {
            happens.await;
            due.send_replace(Some(Instant::now()));
        });
        self.waiting = waiting.map(|waiting| tokio::spawn(waiting).abort_handle());
        self
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        if let Some(waiting) = &self.waiting {
            waiting.abort();
        }
        self.due.send_replace(None);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_overdue_until_it_is_dropped() {
        let (due, mut is_due) = watch::channel(None);
        let due = Arc::new(due);
        let past = Instant::now();
        drop(Timed::new(&due, Some(past)));
        let waited = timeout(Duration::from_millis(20), overdue(&mut is_due)).await;
        assert!(waited.is_err(), "nothing is sent");
        let later = Timed::new(&due, Some(past + Duration::from_secs(3600)));
        let waited = timeout(Duration::from_millis(20), overdue(&mut is_due)).await;
        assert!(waited.is_err(), "it has time");
        drop(later);
        let timed = Timed::new(&due, Some(past));
        overdue(&mut is_due).await;
        drop(timed);
        let (happens, happened) = oneshot::channel::<()>();
        let _timed = Timed::new(&due, None).unless(Some(async move { drop(happened.await) }));
        happens.send(()).unwrap();
        overdue(&mut is_due).await;
    }
}
