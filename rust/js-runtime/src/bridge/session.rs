//! The channel to the client.

use rquickjs::{Ctx, Function, IntoJs, Result, TypedArray, Value};

use super::error::EngineError;
use super::values;
use crate::bindings::pie::core::futures::{FutureBlob, FutureString};
use crate::bindings::pie::core::session;
use crate::bindings::wasi::io::poll::Pollable;
use crate::event_loop::{self, Awaited, WaitHandle};

pub(super) fn send(message: String) {
    session::send(&message);
}

pub(super) fn receive<'js>(ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
    let future = Box::new(session::receive());
    event_loop::current(&ctx, |event_loop| event_loop.wait(&ctx, future, settle))
}

pub(super) fn send_file<'js>(ctx: Ctx<'js>, data: TypedArray<'js, u8>) -> Result<()> {
    session::send_file(&values::bytes(&ctx, &data)?);
    Ok(())
}

pub(super) fn receive_file<'js>(ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
    let future = Box::new(session::receive_file());
    event_loop::current(&ctx, |event_loop| event_loop.wait(&ctx, future, settle))
}

impl Awaited for FutureString {
    fn pollable(&self) -> Pollable {
        FutureString::pollable(self)
    }

    fn take<'js>(
        &self,
        ctx: &Ctx<'js>,
    ) -> Option<Result<std::result::Result<Value<'js>, EngineError>>> {
        match self.get()? {
            Ok(text) => Some(text.into_js(ctx).map(Ok)),
            Err(error) => Some(Ok(Err(error))),
        }
    }
}

impl Awaited for FutureBlob {
    fn pollable(&self) -> Pollable {
        FutureBlob::pollable(self)
    }

    fn take<'js>(
        &self,
        ctx: &Ctx<'js>,
    ) -> Option<Result<std::result::Result<Value<'js>, EngineError>>> {
        match self.get()? {
            Ok(data) => {
                let array = values::byte_array(ctx, data);
                Some(array.and_then(|array| array.into_js(ctx)).map(Ok))
            }
            Err(error) => Some(Ok(Err(error))),
        }
    }
}
