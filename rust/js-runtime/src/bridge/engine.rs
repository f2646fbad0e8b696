//! What a program may know of the engine and of its own launch.

use rquickjs::{BigInt, Ctx, Result};

use crate::bindings::pie::core::runtime;

pub(super) fn models() -> Vec<String> {
    runtime::models()
}

pub(super) fn version() -> String {
    runtime::version()
}

pub(super) fn instance_id() -> String {
    runtime::instance_id()
}

pub(super) fn username() -> String {
    runtime::username()
}

pub(super) fn args() -> Vec<String> {
    runtime::args()
}

pub(super) fn launch_seed(ctx: Ctx<'_>) -> Result<BigInt<'_>> {
    BigInt::from_u64(ctx, runtime::launch_seed())
}
