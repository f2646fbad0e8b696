//! The C symbols. Declared to Python in `python/pie/backends/cpu/kernels.h`; a test compares the sizes.
//!
//! Every function checks its arguments, catches panics, returns 0 or an error code, and writes a message where the
//! caller gave room for one. What a pointer points to is the caller's promise; that it is not null, and long enough for
//! the counts beside it, is checked wherever it can be.
#![allow(unsafe_code)] // The C boundary: raw pointers in, exported symbols out.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::arena::AdapterKey;
use crate::element::Dtype;
use crate::error::{Error, ErrorCode, Result};
use crate::noise::NoiseStream;
use crate::ops::linear::Part;
use crate::plan::{LowRankPart, Options, Plan, Table};

pub use crate::plan::{RawBuffer, RawOp, RawOptions};

/// Changes with every change of the declarations.
pub const ABI_VERSION: u32 = 4;

/// Bytes of a message, the final NUL included.
const MESSAGE_BYTES: usize = 508;

/// A plan, opaque to C.
pub struct PlanHandle {
    plan: Plan,
}

/// `pie_k_error`: room for what went wrong.
#[repr(C)]
pub struct RawError {
    /// 0, or an error code.
    pub code: u32,
    /// UTF-8, ended by NUL, cut where it is too long.
    pub message: [c_char; MESSAGE_BYTES],
}

/// `pie_k_part`: rows of a weight in the caller's memory, row-major.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawPart {
    /// The first element; any alignment.
    pub data: *const c_void,
    /// Bytes of all rows.
    pub n_bytes: u64,
    /// Rows; of a vector, elements.
    pub n_rows: u32,
    /// 1 bfloat16, 2 float32.
    pub dtype: u32,
}

/// `pie_k_low_rank`: what an adapter changes in one linear, row-major in the caller's memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawLowRank {
    /// A [rank, inputs]; any alignment.
    pub a: *const c_void,
    /// B [outputs, rank]; any alignment.
    pub b: *const c_void,
    /// Bytes of A.
    pub a_bytes: u64,
    /// Bytes of B.
    pub b_bytes: u64,
    /// Which linear, as an operation of the plan names it.
    pub slot: u32,
    /// Rows of A.
    pub rank: u32,
    /// The product of both is multiplied by this.
    pub scale: f32,
    /// 1 bfloat16, 2 float32.
    pub dtype: u32,
}

/// The version of these declarations.
#[unsafe(no_mangle)]
pub extern "C" fn pie_k_abi_version() -> u32 {
    ABI_VERSION
}

/// Bytes of the structures: 0 options, 1 part, 2 buffer, 3 op, 4 error, 5 low_rank; else 0.
#[unsafe(no_mangle)]
pub extern "C" fn pie_k_struct_bytes(which: u32) -> u32 {
    let bytes = match which {
        0 => size_of::<RawOptions>(),
        1 => size_of::<RawPart>(),
        2 => size_of::<RawBuffer>(),
        3 => size_of::<RawOp>(),
        4 => size_of::<RawError>(),
        5 => size_of::<RawLowRank>(),
        _ => 0,
    };
    bytes as u32
}

/// Makes a plan without weights and writes it to `plan`.
///
/// # Safety
/// The pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_new(
    options: *const RawOptions,
    plan: *mut *mut PlanHandle,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        // SAFETY: null or valid, by the contract.
        let (Some(options), Some(plan)) = (unsafe { options.as_ref() }, unsafe { plan.as_mut() })
        else {
            return Err(null("options or plan"));
        };
        *plan = Box::into_raw(Box::new(PlanHandle {
            plan: Plan::new(Options::new(options)?)?,
        }));
        Ok(())
    })
}

/// Ends a plan and its threads. Null is nothing.
///
/// # Safety
/// `plan` came from `pie_k_plan_new` and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_free(plan: *mut PlanHandle) {
    if !plan.is_null() {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: it came from a box, by the contract.
            drop(unsafe { Box::from_raw(plan) });
        }));
        // There is nobody to tell: the plan is gone either way.
        drop(ended);
    }
}

/// Writes the code of the instruction set in use: 1 portable, 2 AVX-512, 3 AVX2.
///
/// # Safety
/// The pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_isa(
    plan: *mut PlanHandle,
    isa: *mut u32,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        // SAFETY: by the contract.
        let (plan, isa) = unsafe { (handle(plan)?, isa.as_mut().ok_or_else(|| null("isa"))?) };
        *isa = plan.isa_code();
        Ok(())
    })
}

/// Packs a linear of `n_inputs` columns from parts stacked by rows, and writes its index. The parts are copied.
///
/// # Safety
/// The pointers are null or valid for the counts beside them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_add_linear(
    plan: *mut PlanHandle,
    parts: *const RawPart,
    n_parts: u32,
    n_inputs: u32,
    weight: *mut u32,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        // SAFETY: by the contract.
        let (plan, weight) = unsafe {
            (
                handle(plan)?,
                weight.as_mut().ok_or_else(|| null("weight"))?,
            )
        };
        // SAFETY: by the contract.
        let parts = unsafe { slice(parts, n_parts as usize, "parts")? };
        // SAFETY: by the contract.
        let parts = parts
            .iter()
            .map(|part| unsafe { read_part(part) })
            .collect::<Result<Vec<_>>>()?;
        *weight = plan.add_linear(&parts, n_inputs as usize)?;
        Ok(())
    })
}

/// Copies a vector of weights and writes its index.
///
/// # Safety
/// The pointers are null or valid for the counts beside them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_add_vector(
    plan: *mut PlanHandle,
    part: *const RawPart,
    weight: *mut u32,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        // SAFETY: by the contract.
        let (plan, weight) = unsafe {
            (
                handle(plan)?,
                weight.as_mut().ok_or_else(|| null("weight"))?,
            )
        };
        // SAFETY: by the contract.
        let part = unsafe { read_part(part.as_ref().ok_or_else(|| null("part"))?)? };
        *weight = plan.add_vector(part)?;
        Ok(())
    })
}

/// Sets the embedding table: `vocab_size` rows of `width`. It is not copied.
///
/// # Safety
/// The pointers are null or valid for the counts beside them; the table lives unchanged as long as the plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_set_table(
    plan: *mut PlanHandle,
    part: *const RawPart,
    width: u32,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        // SAFETY: by the contract.
        let (plan, part) = unsafe {
            (
                handle(plan)?,
                read_part(part.as_ref().ok_or_else(|| null("part"))?)?,
            )
        };
        plan.set_table(Table {
            bytes: part.bytes,
            dtype: part.dtype,
            width: width as usize,
        })
    })
}

/// Copies the rotary tables, `n` elements each: `[max_positions][head_dim / 2]`.
///
/// # Safety
/// The pointers are null or valid for the counts beside them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_set_rotary(
    plan: *mut PlanHandle,
    cos: *const f32,
    sin: *const f32,
    n: u64,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        let n = usize_of(n)?;
        // SAFETY: by the contract.
        let (plan, cos, sin) =
            unsafe { (handle(plan)?, slice(cos, n, "cos")?, slice(sin, n, "sin")?) };
        plan.set_rotary(cos, sin)
    })
}

/// Sets the memory of keys and values: `[n_pages][n_layers][2][n_kv_heads][page_size * head_dim]` of the plan's dtype.
///
/// # Safety
/// The memory is initialised, lives as long as the plan, and nobody else touches it during a step.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_set_kv(
    plan: *mut PlanHandle,
    start: *mut c_void,
    n_bytes: u64,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        let n_bytes = usize_of(n_bytes)?;
        // SAFETY: by the contract.
        unsafe { handle(plan)?.set_kv(start.cast(), n_bytes) }
    })
}

/// Sets the memory that pages are swapped out to, a whole number of pages. It is used in place; without it the plan
/// cannot swap.
///
/// # Safety
/// The pointers are null or valid for the counts beside them; the memory lives as long as the plan, nobody else touches
/// it during a step, and it does not overlap that of the pages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_set_host(
    plan: *mut PlanHandle,
    start: *mut c_void,
    n_bytes: u64,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        let n_bytes = usize_of(n_bytes)?;
        // SAFETY: by the contract.
        unsafe { handle(plan)?.set_host(start.cast(), n_bytes) }
    })
}

/// Checks buffers and operations; afterwards the plan can run and takes no more weights.
///
/// # Safety
/// The pointers are null or valid for the counts beside them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_seal(
    plan: *mut PlanHandle,
    buffers: *const RawBuffer,
    n_buffers: u32,
    ops: *const RawOp,
    n_ops: u32,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        // SAFETY: by the contract.
        let (plan, buffers, ops) = unsafe {
            (
                handle(plan)?,
                slice(buffers, n_buffers as usize, "buffers")?,
                slice(ops, n_ops as usize, "ops")?,
            )
        };
        plan.seal(buffers, ops)
    })
}

/// Copies an adapter that changes `n_parts` linears, in place of one of the same name. `sigma` is by how much it is
/// perturbed where a sequence asks for that.
///
/// # Safety
/// The pointers are null or valid for the counts beside them; not while a step of the plan runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_put_adapter(
    plan: *mut PlanHandle,
    id: u64,
    version: u32,
    sigma: f32,
    parts: *const RawLowRank,
    n_parts: u32,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        // SAFETY: by the contract.
        let (plan, parts) = unsafe { (handle(plan)?, slice(parts, n_parts as usize, "parts")?) };
        // SAFETY: by the contract.
        let parts = parts
            .iter()
            .map(|part| unsafe { read_low_rank(part) })
            .collect::<Result<Vec<_>>>()?;
        plan.put_adapter(AdapterKey { id, version }, sigma, &parts)
    })
}

/// Forgets an adapter; none of that name is no error.
///
/// # Safety
/// The pointers are null or valid; not while a step of the plan runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_forget_adapter(
    plan: *mut PlanHandle,
    id: u64,
    version: u32,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        // SAFETY: by the contract.
        let plan = unsafe { handle(plan)? };
        plan.forget_adapter(AdapterKey { id, version });
        Ok(())
    })
}

/// Writes `n` numbers of the noise by which adapters are perturbed: those from `first` on of a stream under a seed.
///
/// # Safety
/// The pointers are null or valid for the counts beside them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_noise(
    seed: u64,
    stream: u32,
    first: u64,
    out: *mut f32,
    n: u64,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        let n = usize_of(n)?;
        // SAFETY: by the contract.
        let out = unsafe { slice_mut(out, n, "out")? };
        let number = stream;
        NoiseStream { seed, number }.fill(first, out);
        Ok(())
    })
}

/// Runs a batch: reads the arena of `n_words` words, writes keys and values, and `n_logits` = R * V floats.
///
/// # Safety
/// The pointers are null or valid for the counts beside them; one call at a time for a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_step(
    plan: *mut PlanHandle,
    arena: *const u32,
    n_words: u64,
    logits: *mut f32,
    n_logits: u64,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        let (n_words, n_logits) = (usize_of(n_words)?, usize_of(n_logits)?);
        // SAFETY: by the contract.
        let (plan, arena, logits) = unsafe {
            (
                handle(plan)?,
                slice(arena, n_words, "arena")?,
                slice_mut(logits, n_logits, "logits")?,
            )
        };
        plan.step(arena, logits)
    })
}

/// y = x W^T for one linear: `n_rows` rows of `n_x` and `n_y` floats in all.
///
/// # Safety
/// The pointers are null or valid for the counts beside them; one call at a time for a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_linear(
    plan: *mut PlanHandle,
    weight: u32,
    n_rows: u32,
    x: *const f32,
    n_x: u64,
    y: *mut f32,
    n_y: u64,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        let (n_x, n_y) = (usize_of(n_x)?, usize_of(n_y)?);
        // SAFETY: by the contract.
        let (plan, x, y) = unsafe { (handle(plan)?, slice(x, n_x, "x")?, slice_mut(y, n_y, "y")?) };
        plan.linear(weight, x, n_rows as usize, y)
    })
}

/// Reads `n_bytes` (the last words that fill no cache line aside) on all threads of the plan, as fast as memory gives
/// them, and writes their exclusive or. It computes nothing: the bandwidth that it reaches is what the linears are
/// measured by.
///
/// # Safety
/// The pointers are null or valid for the counts beside them; one call at a time for a plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_read_memory(
    plan: *mut PlanHandle,
    start: *const c_void,
    n_bytes: u64,
    parity: *mut u32,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        let n_words = usize_of(n_bytes)? / size_of::<u32>();
        // SAFETY: by the contract.
        let (plan, words, parity) = unsafe {
            (
                handle(plan)?,
                slice(start.cast::<u32>(), n_words, "start")?,
                parity.as_mut().ok_or_else(|| null("parity"))?,
            )
        };
        *parity = plan.read_memory(words)?;
        Ok(())
    })
}

/// Copies the rows of a buffer as the newest step left them to `out` (room for `n`), and writes how many floats there
/// are.
///
/// # Safety
/// The pointers are null or valid for the counts beside them; not while a step of the plan runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pie_k_plan_read(
    plan: *mut PlanHandle,
    buffer: u32,
    out: *mut f32,
    n: u64,
    written: *mut u64,
    error: *mut RawError,
) -> u32 {
    guarded(error, || {
        let n = usize_of(n)?;
        // SAFETY: by the contract.
        let (plan, out, written) = unsafe {
            (
                handle(plan)?,
                slice_mut(out, n, "out")?,
                written.as_mut().ok_or_else(|| null("written"))?,
            )
        };
        *written = plan.read_buffer(buffer, out)? as u64;
        Ok(())
    })
}

/// Runs `f`, turns a panic into an error, and reports.
fn guarded(error: *mut RawError, f: impl FnOnce() -> Result<()>) -> u32 {
    let result = catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|_| Err(Error::internal("a kernel panicked; its results are void")));
    let (code, message) = match &result {
        Ok(()) => (0, ""),
        Err(error) => (error.code as u32, error.message.as_str()),
    };
    // SAFETY: null or valid, by the contract of every caller.
    if let Some(error) = unsafe { error.as_mut() } {
        error.code = code;
        let mut end = message.len().min(MESSAGE_BYTES - 1);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        for (to, &from) in error
            .message
            .iter_mut()
            .zip(message.as_bytes()[..end].iter().chain([&0]))
        {
            *to = from as c_char;
        }
    }
    code
}

fn null(what: &str) -> Error {
    Error {
        code: ErrorCode::InvalidArgument,
        message: format!("{what} is null"),
    }
}

fn usize_of(n: u64) -> Result<usize> {
    usize::try_from(n)
        .map_err(|_| Error::argument(format!("{n} elements are more than memory holds")))
}

/// # Safety
/// Null, or from `pie_k_plan_new` and in use by nobody else.
unsafe fn handle<'a>(plan: *mut PlanHandle) -> Result<&'a mut Plan> {
    // SAFETY: by the contract.
    unsafe { plan.as_mut() }
        .map(|handle| &mut handle.plan)
        .ok_or_else(|| null("plan"))
}

/// # Safety
/// Null, or valid for `n` elements for as long as the result is used.
unsafe fn slice<'a, T>(start: *const T, n: usize, what: &str) -> Result<&'a [T]> {
    check_span(start, n, what)?;
    if n == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null, aligned, not longer than memory, and valid by the contract.
    Ok(unsafe { std::slice::from_raw_parts(start, n) })
}

/// # Safety
/// Null, or valid for `n` elements, which nobody else uses as long as the result is used.
unsafe fn slice_mut<'a, T>(start: *mut T, n: usize, what: &str) -> Result<&'a mut [T]> {
    check_span(start, n, what)?;
    if n == 0 {
        return Ok(&mut []);
    }
    // SAFETY: not null, aligned, not longer than memory, and valid by the contract.
    Ok(unsafe { std::slice::from_raw_parts_mut(start, n) })
}

fn check_span<T>(start: *const T, n: usize, what: &str) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    if start.is_null() {
        return Err(null(what));
    }
    if !start.is_aligned() || n > isize::MAX as usize / size_of::<T>() {
        return Err(Error::argument(format!(
            "{what} is not aligned to its elements, or longer than memory"
        )));
    }
    Ok(())
}

/// # Safety
/// Its data is null, or valid for its bytes for as long as the result is used.
unsafe fn read_part<'a>(part: &RawPart) -> Result<Part<'a>> {
    let Some(dtype) = Dtype::from_code(part.dtype) else {
        return Err(Error::argument(format!(
            "dtype {} is unknown; 1 is bfloat16, 2 float32",
            part.dtype
        )));
    };
    // SAFETY: by the contract.
    let bytes = unsafe { slice(part.data.cast::<u8>(), usize_of(part.n_bytes)?, "data")? };
    Ok(Part {
        bytes,
        n_rows: part.n_rows as usize,
        dtype,
    })
}

/// # Safety
/// Its data is null, or valid for its bytes for as long as the result is used.
unsafe fn read_low_rank<'a>(part: &RawLowRank) -> Result<LowRankPart<'a>> {
    let read = |data, n_bytes| {
        let part = RawPart {
            data,
            n_bytes,
            n_rows: part.rank,
            dtype: part.dtype,
        };
        // SAFETY: by the contract.
        unsafe { read_part(&part) }
    };
    let (a, b) = (read(part.a, part.a_bytes)?, read(part.b, part.b_bytes)?);
    Ok(LowRankPart {
        slot: part.slot,
        rank: part.rank as usize,
        scale: part.scale,
        dtype: a.dtype,
        a: a.bytes,
        b: b.bytes,
    })
}
