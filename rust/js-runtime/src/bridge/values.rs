//! Values on their way between JavaScript and the engine.

use rquickjs::convert::List;
use rquickjs::{BigInt, Ctx, IntoJs, Object, Result, TypedArray, Value};

use super::error::throw;

/// The token ids of an array.
pub(super) fn tokens(ctx: &Ctx<'_>, array: &TypedArray<'_, u32>) -> Result<Vec<u32>> {
    // SAFETY: no JavaScript runs while the slice lives; it is copied at once.
    let bytes = unsafe { array.as_bytes() };
    let Some(bytes) = bytes else {
        let message =
            "the buffer of the token array was transferred away; pass an array that still has one";
        return Err(throw(ctx, "invalid-argument", message.to_owned()));
    };
    let (words, _) = bytes.as_chunks::<4>();
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

/// A token array of JavaScript.
pub(super) fn token_array<'js>(ctx: &Ctx<'js>, tokens: Vec<u32>) -> Result<TypedArray<'js, u32>> {
    TypedArray::new(ctx.clone(), tokens)
}

/// The bytes of an array.
pub(super) fn bytes(ctx: &Ctx<'_>, array: &TypedArray<'_, u8>) -> Result<Vec<u8>> {
    // SAFETY: no JavaScript runs while the slice lives; it is copied at once.
    let bytes = unsafe { array.as_bytes() };
    bytes.map(<[u8]>::to_vec).ok_or_else(|| {
        let message =
            "the buffer of the byte array was transferred away; pass an array that still has one";
        throw(ctx, "invalid-argument", message.to_owned())
    })
}

/// A byte array of JavaScript.
pub(crate) fn byte_array<'js>(ctx: &Ctx<'js>, bytes: Vec<u8>) -> Result<TypedArray<'js, u8>> {
    TypedArray::new(ctx.clone(), bytes)
}

/// A seed, which the SDK passes as a bigint below 2^64 or as undefined.
pub(super) fn seed(value: Option<BigInt<'_>>) -> Result<Option<u64>> {
    // The conversion wraps modulo 2^64, so the cast gives back the upper half of the range.
    value
        .map(|seed| seed.to_i64().map(|bits| bits as u64))
        .transpose()
}

/// Token ids with their bytes, as `[Uint32Array, Uint8Array[]]`.
pub(super) fn vocabulary<'js>(
    ctx: &Ctx<'js>,
    (ids, bytes): (Vec<u32>, Vec<Vec<u8>>),
) -> Result<Value<'js>> {
    let bytes: Vec<_> = bytes
        .into_iter()
        .map(|bytes| byte_array(ctx, bytes))
        .collect::<Result<_>>()?;
    List((token_array(ctx, ids)?, bytes)).into_js(ctx)
}

/// An object `{ type, [field]: value }`.
pub(super) fn event<'js>(
    ctx: &Ctx<'js>,
    kind: &str,
    field: Option<(&str, Value<'js>)>,
) -> Result<Object<'js>> {
    let event = Object::new(ctx.clone())?;
    event.set("type", kind)?;
    if let Some((name, value)) = field {
        event.set(name, value)?;
    }
    Ok(event)
}
