//! What a plan computes: one file an operation.

pub(crate) mod attention;
pub(crate) mod linear;
pub(crate) mod lora;
pub(crate) mod rotary;
pub(crate) mod rows;
pub(crate) mod stream;
