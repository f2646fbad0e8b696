//! Values on their way between JavaScript and the engine. The SDK has checked what it hands over.

use rquickjs::convert::List;
use rquickjs::{BigInt, Ctx, Error, FromJs, IntoJs, Object, Result, TypedArray, Value};

use crate::errors::{EngineError, throw, throw_engine};

/// What the engine takes from JavaScript.
pub(super) trait Read: Sized {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self>;
}

/// What the engine gives to JavaScript.
pub(super) trait Write {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>>;
}

/// The value as a `T`.
pub(super) fn read<'js, T: Read>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<T> {
    T::read(ctx, value)
}

/// A field of an object as a `T`.
pub(super) fn field<'js, T: Read>(ctx: &Ctx<'js>, object: &Object<'js>, name: &str) -> Result<T> {
    T::read(ctx, object.get(name)?)
}

/// Throws what a name that is no case of an enum is refused with.
pub(super) fn unknown(ctx: &Ctx<'_>, kind: &str, name: &str, cases: &[&str]) -> Error {
    let cases = cases.join(", ");
    let message = format!("'{name}' is not a {kind}; it is one of {cases}");
    throw(ctx, "invalid-argument", message)
}

/// An object `{ type }`, or `{ type, value }`.
pub(super) fn variant<'js>(
    ctx: &Ctx<'js>,
    case: &str,
    value: Option<impl Write>,
) -> Result<Value<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("type", case)?;
    if let Some(value) = value {
        object.set("value", value.write(ctx)?)?;
    }
    Ok(object.into_value())
}

/// A byte array of JavaScript.
pub(crate) fn byte_array<'js>(ctx: &Ctx<'js>, bytes: Vec<u8>) -> Result<TypedArray<'js, u8>> {
    TypedArray::new(ctx.clone(), bytes)
}

/// The bytes of such an array.
pub(crate) fn bytes_of<'js>(ctx: &Ctx<'js>, array: &TypedArray<'js, u8>) -> Result<Vec<u8>> {
    // SAFETY: no JavaScript runs while the slice lives; it is copied at once.
    let bytes = unsafe { array.as_bytes() };
    bytes.map(<[u8]>::to_vec).ok_or_else(|| transferred(ctx))
}

macro_rules! as_in_quickjs {
    ($($type:ty),*) => {$(
        impl Read for $type {
            fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
                Self::from_js(ctx, value)
            }
        }

        impl Write for $type {
            fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
                self.into_js(ctx)
            }
        }
    )*};
}
as_in_quickjs!(bool, u32, f64, String);

impl Write for &str {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        self.into_js(ctx)
    }
}

impl Write for () {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        Ok(Value::new_undefined(ctx.clone()))
    }
}

impl Read for f32 {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        f64::from_js(ctx, value).map(|value| value as Self)
    }
}

impl Read for u64 {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        // The conversion wraps modulo 2^64, so the cast gives back the upper half of the range.
        BigInt::from_js(ctx, value)?
            .to_i64()
            .map(|bits| bits as Self)
    }
}

impl Write for u64 {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        BigInt::from_u64(ctx.clone(), self)?.into_js(ctx)
    }
}

impl Read for Vec<u32> {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let array = TypedArray::<u32>::from_js(ctx, value)?;
        // SAFETY: no JavaScript runs while the slice lives; it is copied at once.
        let bytes = unsafe { array.as_bytes() };
        let (words, _) = bytes.ok_or_else(|| transferred(ctx))?.as_chunks::<4>();
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }
}

impl Read for Vec<u8> {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        bytes_of(ctx, &TypedArray::from_js(ctx, value)?)
    }
}

impl Read for i64 {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        BigInt::from_js(ctx, value)?.to_i64()
    }
}

impl Read for Vec<Vec<u32>> {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let items = Vec::<Value<'js>>::from_js(ctx, value)?;
        items.into_iter().map(|item| read(ctx, item)).collect()
    }
}

impl Read for Vec<String> {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let items = Vec::<Value<'js>>::from_js(ctx, value)?;
        items.into_iter().map(|item| read(ctx, item)).collect()
    }
}

impl Write for f32 {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        f64::from(self).into_js(ctx)
    }
}

impl Write for Vec<f32> {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        TypedArray::new(ctx.clone(), self).map(TypedArray::into_value)
    }
}

impl Write for Vec<u32> {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        TypedArray::new(ctx.clone(), self).map(TypedArray::into_value)
    }
}

impl Write for Vec<u8> {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        byte_array(ctx, self).map(TypedArray::into_value)
    }
}

impl Write for Vec<String> {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        self.into_js(ctx)
    }
}

/// An array of these.
pub(super) fn list<'js, T: Write>(ctx: &Ctx<'js>, items: Vec<T>) -> Result<Value<'js>> {
    let items = items.into_iter().map(|item| item.write(ctx));
    items.collect::<Result<Vec<_>>>()?.into_js(ctx)
}

/// A list of what the bridge writes is an array.
macro_rules! listed {
    ($type:ty) => {
        impl Write for Vec<$type> {
            fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
                $crate::bridge::values::list(ctx, self)
            }
        }
    };
}
pub(super) use listed;

/// An array is read as a list of these.
macro_rules! listed_in {
    ($type:ty) => {
        impl Read for Vec<$type> {
            fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
                let items: Vec<Value<'js>> = value.get()?;
                items.into_iter().map(|item| read(ctx, item)).collect()
            }
        }
    };
}
pub(super) use listed_in;

impl Write for Vec<Vec<u32>> {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        list(ctx, self)
    }
}

impl Write for Vec<Vec<u8>> {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        list(ctx, self)
    }
}

impl<T: Read> Read for Option<T> {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        if value.is_undefined() {
            return Ok(None);
        }
        T::read(ctx, value).map(Some)
    }
}

impl<T: Write> Write for Option<T> {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        match self {
            Some(value) => value.write(ctx),
            None => ().write(ctx),
        }
    }
}

impl<A: Write, B: Write> Write for (A, B) {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        List((self.0.write(ctx)?, self.1.write(ctx)?)).into_js(ctx)
    }
}

/// An error of the engine is thrown.
impl<T: Write> Write for std::result::Result<T, EngineError> {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        self.map_err(|error| throw_engine(ctx, &error))?.write(ctx)
    }
}

fn transferred(ctx: &Ctx<'_>) -> Error {
    let message = "the buffer of the array was transferred away; pass an array that still has one";
    throw(ctx, "invalid-argument", message.to_owned())
}
