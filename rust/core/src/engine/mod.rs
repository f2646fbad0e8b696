//! The engine of one model: everything that the host keeps behind its lock.

mod requests;

use crate::batch::{Batch, DriverFailure, Sampled};
use crate::config::EngineConfig;
use crate::errors::{Error, Result};
use crate::generation::{FinishReason, GeneratorOptions};
use crate::ids::{BatchId, ContextId, GeneratorId, ProcessId, RequestId};

pub use requests::{Answer, Progress, Submission};

/// What a driver should do next.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Run this.
    Batch(Batch),
    /// Nothing waits: ask again when a request was entered.
    Idle,
    /// Programs are expected back, or pages may come free: ask again at that time, or when a request was entered.
    HoldUntil(u64),
}

/// Counters and gauges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Pages of the pool.
    pub n_pages: u64,
    /// Pages in use.
    pub n_pages_used: u64,
    /// Contexts that live.
    pub n_contexts: u64,
    /// Generators that live.
    pub n_generators: u64,
    /// Requests entered and not yet taken.
    pub n_requests: u64,
    /// Batches that run.
    pub n_in_flight: u64,
    /// Batches planned so far.
    pub n_batches: u64,
    /// Batches that their driver failed.
    pub n_failed_batches: u64,
    /// Sequences of all batches; over `n_batches` it is the mean batch width.
    pub n_sequences: u64,
    /// Rows of logits asked for so far.
    pub n_rows: u64,
    /// Tokens computed so far.
    pub n_tokens: u64,
    /// Page copies so far.
    pub n_copies: u64,
    /// Times that a batch was held for programs expected back.
    pub n_holds: u64,
    /// Requests that failed for want of pages.
    pub n_out_of_pages: u64,
}

/// The state of one model's contexts, generators and requests. Pure: time and randomness are arguments.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
}

fn absent<T>() -> Result<T> {
    Err(Error::internal("this call has no body"))
}

#[expect(missing_docs, reason = "the interface is laid out before its bodies")]
#[allow(unused_variables, clippy::unused_self, clippy::missing_errors_doc)]
impl Engine {
    pub fn new(config: EngineConfig) -> Result<Self> {
        config.check()?;
        Ok(Self { config })
    }
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }
    pub fn new_process(&mut self, process: ProcessId, launch_seed: u64) -> Result<()> {
        absent()
    }
    pub fn end_process(&mut self, process: ProcessId) {}
    pub fn new_context(&mut self, process: ProcessId) -> Result<ContextId> {
        absent()
    }
    pub fn fork(&mut self, context: ContextId) -> Result<ContextId> {
        absent()
    }
    pub fn release(&mut self, context: ContextId) {}
    pub fn append(&mut self, context: ContextId, tokens: &[u32]) -> Result<()> {
        absent()
    }
    pub fn buffer(&self, context: ContextId) -> Result<Vec<u32>> {
        absent()
    }
    pub fn seq_len(&self, context: ContextId) -> Result<u32> {
        absent()
    }
    pub fn length(&self, context: ContextId) -> Result<u32> {
        absent()
    }
    pub fn tail(&self, context: ContextId, n: u32) -> Result<Vec<u32>> {
        absent()
    }
    pub fn truncate(&mut self, context: ContextId, n: u32) -> Result<()> {
        absent()
    }
    pub fn new_generator(
        &mut self,
        context: ContextId,
        options: GeneratorOptions,
    ) -> Result<GeneratorId> {
        absent()
    }
    pub fn set_max_tokens(&mut self, generator: GeneratorId, n: u32) -> Result<()> {
        absent()
    }
    pub fn set_stop(&mut self, generator: GeneratorId, tokens: &[u32]) -> Result<()> {
        absent()
    }
    pub fn add_stop(&mut self, generator: GeneratorId, tokens: &[u32]) -> Result<()> {
        absent()
    }
    pub fn ignore_eos(&mut self, generator: GeneratorId, ignore: bool) -> Result<()> {
        absent()
    }
    pub fn next_step(&mut self, generator: GeneratorId) -> Result<Option<u32>> {
        absent()
    }
    pub fn tokens_generated(&self, generator: GeneratorId) -> Result<u32> {
        absent()
    }
    pub fn finish_reason(&self, generator: GeneratorId) -> Result<Option<FinishReason>> {
        absent()
    }
    pub fn drop_generator(&mut self, generator: GeneratorId) {}
    pub fn submit(
        &mut self,
        request: RequestId,
        submission: Submission,
        now_ns: u64,
    ) -> Result<Progress> {
        absent()
    }
    pub fn take(&mut self, request: RequestId) -> Option<Result<crate::engine::Answer>> {
        None
    }
    pub fn cancel(&mut self, request: RequestId) {}
    pub fn drain_ready(&mut self) -> Vec<RequestId> {
        Vec::new()
    }
    pub fn next_batch(&mut self, now_ns: u64) -> Plan {
        Plan::Idle
    }
    pub fn complete(
        &mut self,
        batch: BatchId,
        outcome: std::result::Result<Sampled, DriverFailure>,
        now_ns: u64,
    ) -> Result<()> {
        absent()
    }
    pub fn stats(&self) -> Stats {
        Stats::default()
    }
    pub fn check(&self) -> std::result::Result<(), String> {
        Ok(())
    }
}
