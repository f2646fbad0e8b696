//! The pure engine logic of Pie: pages, contexts, scheduling, batches, generation, sampling, and messages between
//! programs.
//!
//! No input or output, no clock, no threads, no environment, no log: time and randomness are arguments. One [`Engine`]
//! is the state of one model; the host keeps it behind a mutex that is never held while a driver runs.

pub mod batch;
pub mod brle;
mod budget;
pub mod bus;
pub mod command;
pub mod config;
mod context;
pub mod dummy;
pub mod engine;
pub mod errors;
mod faults;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod generation;
pub mod hash;
pub mod ids;
mod kv;
pub mod market;
pub mod masks;
pub mod sampling;
mod sched;
pub mod settings;
mod slab;

pub use batch::{
    Adapter, Batch, Capabilities, DriverAnswer, DriverFailure, LateDraw, LateDrawn, LateMask,
    LateRow, RowOutput, RowResult, SampleJobs, Sampled, SequenceRows,
};
pub use budget::TokenBudget;
pub use command::{
    AdapterName, Command, CommandFailure, DriverCommand, MAX_MOVED_PAGES, MoveDirection, PageMove,
};
pub use config::{EngineConfig, SettingNames};
pub use context::{ContextImage, SpecialSlot};
pub use engine::{
    Answer, Engine, Entering, Figure, Forward, Histogram, HostData, Input, MAX_FORWARD_ROWS,
    NextWork, PageCounts, Progress, ReadMasks, RowRequest, Stats, Submission, UserStats,
    check_snapshot_name, check_tokens,
};
pub use errors::{Error, ErrorCode, Result};
pub use generation::{
    DraftEvent, Drafting, DraftsWanted, FinishReason, GeneratorOptions, Output, Speculation,
};
pub use ids::{
    BatchId, CommandId, ContentId, ContextId, GeneratorId, HostSlot, PageId, ProcessId, RequestId,
    UserId,
};
pub use sampling::{Method, Probe, Reading, Sampler};
