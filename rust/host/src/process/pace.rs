//! Where a program runs. One that waits often runs on the threads of programs; one that computes without waiting is
//! handed to threads of lower priority, until it waits again. So do programs of a user who owes time to others. So
//! programs that spin, and storms of short ones, share what the model and the programs that use it leave.
//!
//! Nothing that a program can see depends on where it runs.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::record::ProcessRecord;
use super::standing::{Standing, Standings};

/// Processor time that a program may use without waiting before it is handed to the background: a few times what a
/// language runtime takes to start a program, which would wait long among programs that spin; and little enough that
/// many which begin to spin at once are soon out of the way.
const PATIENCE: Duration = Duration::from_millis(20);

/// The life of a process, as a task that moves between threads.
pub(crate) type Life = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs a process to its end, on the calling runtime and on `background` in turns.
pub(crate) async fn run(
    mut life: Life,
    record: Arc<ProcessRecord>,
    users: Arc<Standings>,
    background: Handle,
) {
    let user = users.of(&record.username);
    let mut waits = false;
    while foreground(&mut life, &record, &users, &user, waits).await == SliceEnd::Computes {
        waits = true;
        let record = record.clone();
        let turn = background.spawn(async move {
            let turn = in_background(&mut life, &record).await;
            (life, turn)
        });
        match turn.await {
            Ok((_, SliceEnd::Ended)) => return,
            Ok((back, _)) => life = back,
            // The background was shut down with the host; a panic was printed when it happened.
            Err(_) => return,
        }
    }
}

/// Why a program stopped to run for the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SliceEnd {
    Ended,
    Computes,
    Waits,
}

/// Runs until the process has ended, has computed for [`PATIENCE`] without waiting, or wakes while its user owes time
/// to others. One that `waits` has to be polled once before it can wake.
async fn foreground(
    life: &mut Life,
    record: &ProcessRecord,
    users: &Standings,
    user: &Standing,
    mut waits: bool,
) -> SliceEnd {
    let mut waited_at = record.cpu.used();
    let mut spent = waited_at;
    poll_fn(|context| {
        if !std::mem::take(&mut waits) && user.owes() {
            return Poll::Ready(SliceEnd::Computes);
        }
        let ended = life.as_mut().poll(context).is_ready();
        // With what the engine did for the program while it waited.
        let (used, now) = (record.cpu.used(), Instant::now());
        user.spend(used.saturating_sub(spent), now);
        spent = used;
        users.count(now);
        if ended {
            return Poll::Ready(SliceEnd::Ended);
        }
        record.settle_memory();
        let has_yielded = record.cpu.take_yielded();
        record.settle_lines(!has_yielded);
        if !has_yielded {
            waited_at = used;
        } else if used.saturating_sub(waited_at) >= PATIENCE {
            return Poll::Ready(SliceEnd::Computes);
        }
        Poll::Pending
    })
    .await
}

/// Runs until the process has ended or waits.
async fn in_background(life: &mut Life, record: &ProcessRecord) -> SliceEnd {
    poll_fn(|context| {
        if life.as_mut().poll(context).is_ready() {
            return Poll::Ready(SliceEnd::Ended);
        }
        record.settle_memory();
        let has_yielded = record.cpu.take_yielded();
        record.settle_lines(!has_yielded);
        if has_yielded {
            Poll::Pending
        } else {
            // Whoever polls next is woken by what it waits for.
            Poll::Ready(SliceEnd::Waits)
        }
    })
    .await
}
