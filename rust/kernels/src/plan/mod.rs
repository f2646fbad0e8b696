//! A plan: a model's packed weights, its buffers and the list of operations of one pass.
//!
//! A plan is built in calls (weights, tables, the pool of keys and values), then *sealed* with its buffers and
//! operations, which are checked against each other once; after that a step is one call. Everything belongs to the
//! plan: threads, scratch memory, weights. Two plans share nothing.

mod adapters;
mod buffer;
mod checks;
mod op;
mod options;
mod step;
mod weights;

pub(crate) use adapters::LowRankPart;
pub(crate) use options::Options;
pub(crate) use weights::Table;

pub use buffer::RawBuffer;
pub use op::RawOp;
pub use options::RawOptions;

use adapters::{Adapters, SlotShape};
use buffer::{Buffer, Counts};
use checks::OpChecks;
use op::Op;
use step::Step;
use weights::Weights;

use crate::arena::{AdapterKey, ArenaBounds, Batch};
use crate::element::{Bf16, Dtype};
use crate::error::{Error, Result};
use crate::float_env::FloatEnvironment;
use crate::kv::{KvMemory, KvShape};
use crate::memory::Words;
use crate::ops::attention::scratch_len;
use crate::ops::linear::{Outputs, Part, n_words};
use crate::ops::rows::round_row;
use crate::ops::stream::stream;
use crate::pool::Pool;

/// Most weights, buffers or operations of a plan: a model of a thousand layers fits.
const MAX_ITEMS: usize = 1 << 16;

/// A model ready to run, or in the making.
pub(crate) struct Plan {
    options: Options,
    pool: Pool,
    weights: Weights,
    adapters: Adapters,
    kv: Option<KvMemory>,
    /// Copies of pages that were swapped out; none where the plan cannot swap.
    host: Option<KvMemory>,
    /// Empty until the plan is sealed.
    ops: Vec<Op>,
    buffers: Vec<Buffer>,
    /// A word for each page, for the check of a batch.
    page_users: Vec<u32>,
    /// Scores of attention, for each thread.
    scratch: Words,
    /// Tokens and rows of the newest step.
    counts: Counts,
}

impl Plan {
    /// A plan without weights.
    pub(crate) fn new(options: Options) -> Result<Self> {
        Ok(Self {
            pool: Pool::new(options.n_threads)?,
            weights: Weights::default(),
            adapters: Adapters::default(),
            kv: None,
            host: None,
            ops: Vec::new(),
            buffers: Vec::new(),
            page_users: vec![0; options.limits.n_pages],
            scratch: Words::zeroed(0),
            counts: Counts::default(),
            options,
        })
    }

    /// The code of the instruction set in use.
    pub(crate) fn isa_code(&self) -> u32 {
        self.options.isa.code()
    }

    /// Packs a linear; returns its index.
    pub(crate) fn add_linear(&mut self, parts: &[Part<'_>], n_inputs: usize) -> Result<u32> {
        self.check_open(self.weights.linears.len())?;
        self.weights.add_linear(parts, n_inputs, self.options.dtype)
    }

    /// Copies a vector of weights, widened to f32; returns its index.
    pub(crate) fn add_vector(&mut self, part: Part<'_>) -> Result<u32> {
        self.check_open(self.weights.vectors.len())?;
        self.weights.add_vector(part)
    }

    /// Sets the embedding table, a row of `width` elements for each token of the vocabulary.
    pub(crate) fn set_table(&mut self, table: Table) -> Result<()> {
        self.check_open(0)?;
        self.weights
            .set_table(table, self.options.limits.vocab_size)
    }

    /// Sets the rotation angles of all positions.
    pub(crate) fn set_rotary(&mut self, cos: &[f32], sin: &[f32]) -> Result<()> {
        self.check_open(0)?;
        let needed = self.options.limits.max_positions * (self.options.heads.head_dim / 2);
        self.weights.set_rotary(cos, sin, needed)
    }

    /// Sets the memory of keys and values.
    ///
    /// # Safety
    /// That of [`KvMemory::new`].
    #[allow(unsafe_code)] // Forwards a pointer of the caller.
    pub(crate) unsafe fn set_kv(&mut self, start: *mut u8, n_bytes: usize) -> Result<()> {
        self.check_open(0)?;
        // SAFETY: forwarded.
        self.kv = Some(unsafe {
            KvMemory::new(
                start,
                n_bytes,
                self.options.kv,
                self.options.dtype.n_bytes(),
            )?
        });
        Ok(())
    }

    /// Sets the memory that pages are swapped out to: a slot for each page that fits.
    ///
    /// # Safety
    /// That of [`KvMemory::new`].
    #[allow(unsafe_code)] // Forwards a pointer of the caller.
    pub(crate) unsafe fn set_host(&mut self, start: *mut u8, n_bytes: usize) -> Result<()> {
        self.check_open(0)?;
        let element_bytes = self.options.dtype.n_bytes();
        let page = KvShape {
            n_pages: 1,
            ..self.options.kv
        };
        let page_bytes = page
            .checked_len()
            .and_then(|len| len.checked_mul(element_bytes))
            .unwrap_or(usize::MAX);
        let shape = KvShape {
            n_pages: n_bytes / page_bytes,
            ..page
        };
        // SAFETY: forwarded.
        self.host = Some(unsafe { KvMemory::new(start, n_bytes, shape, element_bytes)? });
        Ok(())
    }

    /// Checks the buffers and operations and makes the plan ready to run.
    pub(crate) fn seal(&mut self, buffers: &[RawBuffer], ops: &[RawOp]) -> Result<()> {
        self.check_open(buffers.len().max(ops.len()))?;
        if ops.is_empty() {
            return Err(Error::argument("a plan needs operations"));
        }
        let buffers = buffers
            .iter()
            .enumerate()
            .map(|(idx, raw)| Buffer::new(idx, raw, &self.options))
            .collect::<Result<Vec<_>>>()?;
        let checks = OpChecks {
            options: &self.options,
            weights: &self.weights,
            buffers: &buffers,
            has_kv: self.kv.is_some(),
        };
        let mut checked = Vec::with_capacity(ops.len());
        let mut adapters = Adapters::default();
        for (idx, raw) in ops.iter().enumerate() {
            let at = |error: Error| Error::argument(format!("operation {idx}: {}", error.message));
            let op = checks.check(raw).map_err(at)?;
            if let Op::Lora {
                src,
                slot,
                n_outputs,
                ..
            } = op
            {
                let n_inputs = buffers[src].width;
                let shape = SlotShape {
                    n_inputs,
                    n_outputs,
                };
                adapters.add_slot(slot, shape).map_err(at)?;
            }
            checked.push(op);
        }
        self.buffers = buffers;
        self.ops = checked;
        self.adapters = adapters;
        Ok(())
    }

    /// Copies an adapter, in place of one of the same name; sequences can be computed with it from now on.
    pub(crate) fn put_adapter(
        &mut self,
        key: AdapterKey,
        sigma: f32,
        parts: &[LowRankPart<'_>],
    ) -> Result<()> {
        if self.ops.is_empty() {
            return Err(Error::argument("the plan is not sealed"));
        }
        self.adapters.put(key, sigma, parts)
    }

    /// Forgets an adapter. None of that name is no error.
    pub(crate) fn forget_adapter(&mut self, key: AdapterKey) {
        self.adapters.forget(key);
    }

    /// Runs a batch: writes its keys and values, and the logits f32 `[R, V]`.
    ///
    /// A batch that is refused changes nothing.
    pub(crate) fn step(&mut self, arena: &[u32], logits: &mut [f32]) -> Result<()> {
        if self.ops.is_empty() {
            return Err(Error::argument("the plan is not sealed"));
        }
        let _environment = FloatEnvironment::enter();
        let Options {
            limits,
            heads,
            dtype,
            ..
        } = self.options;
        let limits = ArenaBounds {
            host_pages: self.host.as_ref().map_or(0, KvMemory::n_pages),
            ..limits
        };
        let batch = Batch::read(arena, &limits, &mut self.page_users)?;
        if logits.len() != batch.row_token.len() * limits.vocab_size {
            return Err(Error::argument(format!(
                "room for {} logits, not for {} rows of {}",
                logits.len(),
                batch.row_token.len(),
                limits.vocab_size
            )));
        }
        let scratch_words = self.pool.n_threads() * scratch_len(batch.longest(), heads);
        if self.scratch.view::<f32>().len() < scratch_words {
            self.scratch = Words::zeroed(scratch_words);
        }
        self.copy_pages(&batch);
        self.counts = Counts {
            n_tokens: batch.tokens.len(),
            n_rows: batch.row_token.len(),
        };
        if batch.tokens.is_empty() {
            return Ok(());
        }
        let mut step = Step {
            options: &self.options,
            pool: &mut self.pool,
            weights: &self.weights,
            kv: self.kv.as_ref(),
            buffers: &mut self.buffers,
            scratch: &mut self.scratch,
            counts: self.counts,
            slots: batch.slots_to_write(),
            adapted: self.adapters.adapted(&batch),
            batch: &batch,
            logits,
        };
        for op in &self.ops {
            match dtype {
                Dtype::Bf16 => step.run::<Bf16>(op)?,
                Dtype::F32 => step.run::<f32>(op)?,
            }
        }
        Ok(())
    }

    /// Makes the copies of a checked batch: out, in, then from page to page.
    fn copy_pages(&self, batch: &Batch<'_>) {
        let Some(kv) = &self.kv else { return };
        if let Some(host) = &self.host {
            for (page, slot) in batch.swap_outs.pairs() {
                kv.copy_page(page, host, slot);
            }
            for (slot, page) in batch.swap_ins.pairs() {
                host.copy_page(slot, kv, page);
            }
        }
        for (src, dst) in batch.copies.pairs() {
            kv.copy_page(src, kv, dst);
        }
    }

    /// y[m, N] = x[m, K] W^T for one of the plan's linears, x rounded to its type first.
    pub(crate) fn linear(
        &mut self,
        weight: u32,
        x: &[f32],
        n_rows: usize,
        y: &mut [f32],
    ) -> Result<()> {
        let Some(linear) = self.weights.linears.get(weight as usize) else {
            return Err(Error::argument(format!(
                "linear {weight} of {}",
                self.weights.linears.len()
            )));
        };
        let (n_inputs, n_outputs) = (linear.n_inputs(), linear.n_outputs());
        if x.len() != n_rows * n_inputs || y.len() != n_rows * n_outputs {
            return Err(Error::argument(format!(
                "{n_rows} rows of {n_inputs} and {n_outputs} elements do not fit {} and {}",
                x.len(),
                y.len()
            )));
        }
        let _environment = FloatEnvironment::enter();
        let row_words = n_words(n_inputs, linear.dtype());
        let mut rounded = Words::zeroed(n_rows * row_words);
        let (isa, dtype) = (self.options.isa, linear.dtype());
        let words = &mut rounded.view_mut::<u32>()[..n_rows * row_words];
        self.pool.for_each_row(words, row_words, |row, out| {
            round_row(isa, dtype, &x[row * n_inputs..][..n_inputs], out)
        })?;
        let outputs = Outputs {
            y,
            stride: n_outputs,
            accumulate: false,
        };
        linear.apply(&mut self.pool, isa, rounded.view(), n_rows, outputs)
    }

    /// Reads words on all threads; returns their exclusive or.
    pub(crate) fn read_memory(&mut self, words: &[u32]) -> Result<u32> {
        stream(&mut self.pool, self.options.isa, words)
    }

    /// The rows of a buffer as the newest step left them, as f32; returns how many elements there are.
    pub(crate) fn read_buffer(&self, buffer: u32, out: &mut [f32]) -> Result<usize> {
        let Some(buffer) = self.buffers.get(buffer as usize) else {
            return Err(Error::argument(format!(
                "buffer {buffer} of {}",
                self.buffers.len()
            )));
        };
        let len = buffer.n_rows(self.counts) * buffer.width;
        if out.len() < len {
            return Err(Error::argument(format!(
                "room for {} of {len} elements",
                out.len()
            )));
        }
        buffer.read(self.options.dtype, &mut out[..len]);
        Ok(len)
    }

    fn check_open(&self, n_items: usize) -> Result<()> {
        if !self.ops.is_empty() {
            return Err(Error::argument("the plan is sealed"));
        }
        if n_items >= MAX_ITEMS {
            return Err(Error::argument(format!(
                "a plan has at most {MAX_ITEMS} weights, buffers or operations"
            )));
        }
        Ok(())
    }
}
