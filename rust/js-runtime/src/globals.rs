//! What the globals of a program stand on: clock, timers, randomness, output, text.

use rquickjs::convert::List;
use rquickjs::{Ctx, Function, Object, Result, TypedArray};

use crate::bindings::wasi::cli::{stderr, stdout};
use crate::bindings::wasi::clocks::monotonic_clock;
use crate::bindings::wasi::io::streams::OutputStream;
use crate::bindings::wasi::random::random;
use crate::{builtins, clock, errors, event_loop};

/// Most bytes that one blocking write of WASI takes.
const WRITE_BYTES: usize = 4096;

/// Most bytes that one call gives, as the Web's `getRandomValues` has it.
const RANDOM_BYTES: u32 = 65_536;

pub(crate) fn start_timer<'js>(
    ctx: Ctx<'js>,
    callback: Function<'js>,
    delay_ms: f64,
    repeat: bool,
) -> Result<u32> {
    event_loop::current(&ctx, |event_loop| {
        event_loop.start_timer(&ctx, callback, delay_ms, repeat)
    })
}

pub(crate) fn stop_timer(ctx: Ctx<'_>, id: u32) -> Result<()> {
    event_loop::current(&ctx, |event_loop| event_loop.stop_timer(id))
}

/// Notes that the program begins.
pub(crate) fn begin() {
    clock::begin(monotonic_clock::now());
}

/// Milliseconds since the program began.
pub(crate) fn elapsed_ms() -> f64 {
    let now = monotonic_clock::now();
    now.saturating_sub(clock::began().unwrap_or(now)) as f64 / 1e6
}

pub(crate) fn random_bytes<'js>(ctx: Ctx<'js>, n_bytes: u32) -> Result<TypedArray<'js, u8>> {
    if n_bytes > RANDOM_BYTES {
        let message = format!(
            "{n_bytes} random bytes are too many for one call; ask for at most {RANDOM_BYTES}"
        );
        return Err(errors::throw(&ctx, "invalid-argument", message));
    }
    TypedArray::new(ctx, random::get_random_bytes(u64::from(n_bytes)))
}

/// A number in [0, 1), uniform over the multiples of 2^-53.
pub(crate) fn random_unit() -> f64 {
    (random::get_random_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Writes a text to `stdout` or `stderr`.
pub(crate) fn write(stream: String, text: String) {
    match stream.as_str() {
        "stderr" => write_all(&stderr::get_stderr(), &text),
        _ => write_all(&stdout::get_stdout(), &text),
    }
}

/// Writes all of a text; a closed stream takes nothing more, which is no error of the program.
pub(crate) fn write_all(stream: &OutputStream, text: &str) {
    for part in text.as_bytes().chunks(WRITE_BYTES) {
        if stream.blocking_write_and_flush(part).is_err() {
            return;
        }
    }
}

pub(crate) fn encode_utf8(ctx: Ctx<'_>, text: String) -> Result<TypedArray<'_, u8>> {
    TypedArray::new(ctx, text.into_bytes())
}

/// Decodes bytes as `[text, number of bytes at the end that begin a character and were
/// left]`. Only with `more` is anything left. Other faults become U+FFFD, or with `fatal` undefined.
pub(crate) fn decode_utf8<'js>(
    ctx: Ctx<'js>,
    bytes: TypedArray<'js, u8>,
    fatal: bool,
    more: bool,
) -> Result<Option<List<(String, u32)>>> {
    // SAFETY: no JavaScript runs while the slice lives.
    let Some(bytes) = (unsafe { bytes.as_bytes() }) else {
        let message =
            "the buffer of the byte array was transferred away; pass an array that still has one";
        return Err(errors::throw(&ctx, "invalid-argument", message.to_owned()));
    };
    let left = if more { incomplete_suffix(bytes) } else { 0 };
    let (whole, _) = bytes.split_at(bytes.len() - left);
    Ok(match std::str::from_utf8(whole) {
        Ok(text) => Some(List((text.to_owned(), left as u32))),
        Err(_) if fatal => None,
        Err(_) => Some(List((
            String::from_utf8_lossy(whole).into_owned(),
            left as u32,
        ))),
    })
}

/// How many bytes at the end begin a character that more bytes could complete.
fn incomplete_suffix(bytes: &[u8]) -> usize {
    // A character has at most four bytes, so that three can be a beginning.
    (1..=bytes.len().min(3))
        .find(|&length| {
            let (_, tail) = bytes.split_at(bytes.len() - length);
            matches!(std::str::from_utf8(tail), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}

/// Loads a module of the runtime at its first use.
pub(crate) fn import_now<'js>(ctx: Ctx<'js>, name: String) -> Result<Object<'js>> {
    builtins::import_now(&ctx, &name)
}
