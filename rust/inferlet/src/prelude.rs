//! The common names: `use inferlet::prelude::*;`.

pub use crate::sample::Probe;
pub use crate::spec::Speculator;
pub use crate::{
    Adapter, Context, Forward, ForwardPassExt, FutureStringExt, GenStep, Generator, Model, Output,
    ProbeHandle, Result, SampleHandle, Sampler, Schema, StreamExt, SubscriptionExt, chat, main,
    messaging, reasoning, runtime, tools,
};
