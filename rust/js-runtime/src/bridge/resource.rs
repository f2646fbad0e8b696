//! What JavaScript holds of the engine: its resources, and waits for its answers.

use std::any::Any;
use std::rc::Rc;

use rquickjs::{Ctx, Function, Result};

use crate::event_loop::{self, Awaited, Kept, WaitHandle};

/// A resource with the one that it was made of, which lives as long: a program may keep nothing but a generator, or
/// nothing but a promise of it. Dropped in this order.
pub(super) struct Resource<T> {
    pub(super) raw: T,
    _of: Option<Rc<dyn Any>>,
}

impl<T> Resource<T> {
    /// A resource that needs no other.
    pub(super) fn alone(raw: T) -> Rc<Self> {
        Rc::new(Self { raw, _of: None })
    }

    /// A resource made of another one.
    pub(super) fn of<O: 'static>(raw: T, owner: Rc<Resource<O>>) -> Rc<Self> {
        Rc::new(Self {
            raw,
            _of: Some(owner),
        })
    }
}

/// Waits for a future, and keeps `owner` as long.
pub(super) fn wait<'js, O: 'static>(
    ctx: &Ctx<'js>,
    future: impl Awaited + 'static,
    owner: O,
    settle: Function<'js>,
) -> Result<WaitHandle> {
    let future = Box::new(Kept::new(future, owner));
    event_loop::current(ctx, |event_loop| event_loop.wait(ctx, future, settle))
}

/// The class of a resource.
macro_rules! handle {
    ($handle:ident, $raw:path) => {
        #[derive(rquickjs::class::Trace, rquickjs::JsLifetime)]
        #[rquickjs::class]
        pub(super) struct $handle {
            #[qjs(skip_trace)]
            held: std::rc::Rc<Resource<$raw>>,
        }

        impl Write for std::rc::Rc<Resource<$raw>> {
            fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
                let made = Class::instance(ctx.clone(), $handle { held: self })?;
                Ok(made.into_value())
            }
        }

        impl Write for $raw {
            fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
                Resource::alone(self).write(ctx)
            }
        }
    };
}
pub(super) use handle;

/// A future of the engine.
macro_rules! awaited {
    ($future:path) => {
        impl crate::event_loop::Awaited for $future {
            fn pollable(&self) -> crate::bindings::wasi::io::poll::Pollable {
                <$future>::pollable(self)
            }

            fn is_work(&self) -> bool {
                crate::event_loop::is_work(stringify!($future))
            }

            fn take<'js>(
                &self,
                ctx: &Ctx<'js>,
            ) -> Option<Result<std::result::Result<Value<'js>, $crate::errors::EngineError>>> {
                Some(match self.get()? {
                    Ok(answer) => answer.write(ctx).map(Ok),
                    Err(error) => Ok(Err(error)),
                })
            }
        }
    };
}
pub(super) use awaited;
