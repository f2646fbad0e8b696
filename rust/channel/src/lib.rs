//! Batches to a driver in another process, and its rows of logits back, through shared memory.
//!
//! The host makes the memory ([`HostEnd`]) and hands its descriptors to the process of the driver, which opens it
//! ([`DriverEnd`]). Each of the two batches that may be under way at once has a *slot*: an area that holds the batch,
//! and one that holds its rows. Areas are anonymous files that only the host makes larger and nobody can make smaller,
//! so that no access faults, and nothing of them is left when both processes have ended, however they ended. Three
//! counters say how far both have come:
//!
//! | counter | whose | what it counts |
//! |---|---|---|
//! | `sent` | host | batches that were handed over |
//! | `awaited` | host | batches whose answer was waited for: the driver need not expect another one before it answers them |
//! | `answered` | driver | batches that were answered |
//!
//! Who waits looks at a counter for some microseconds, which is cheaper than sleeping where the other side is quick,
//! then sleeps until the other side wakes it, or is gone.
//!
//! A driver is trusted code that may break off anywhere. So what the host reads of it is bounded by what the host
//! itself knows, and nothing that it finds there leads outside the areas.

#![cfg(target_os = "linux")]

mod area;
mod control;
mod driver_end;
mod event;
mod host_end;
#[cfg(test)]
mod tests;

pub use area::View;
pub use driver_end::{Arrived, DriverEnd, Received};
pub use host_end::{Answer, HostEnd, Outcome, Waited};

/// Batches that may be under way at once.
const N_SLOTS: usize = 2;
/// Bytes of what a driver says about a batch beside its rows: why it failed, or which of its sequences did.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
