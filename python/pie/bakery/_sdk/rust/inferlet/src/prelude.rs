//! The common names: `use inferlet::prelude::*;`.

pub use crate::{
    Context, FutureStringExt, GenStep, Generator, Model, Output, Result, Sampler, chat, main,
    runtime,
};
