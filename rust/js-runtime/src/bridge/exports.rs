//! How functions are exported to JavaScript.

use rquickjs::{Ctx, Function, Result};

/// Every export: its name, and how it is made.
pub(super) type Export = (
    &'static str,
    for<'js> fn(&Ctx<'js>) -> Result<Function<'js>>,
);

/// Names a Rust function as an export.
macro_rules! export {
    ($name:literal, $function:path) => {
        ($name, |ctx| {
            Function::new(ctx.clone(), $function)?.with_name($name)
        })
    };
}
pub(super) use export;
