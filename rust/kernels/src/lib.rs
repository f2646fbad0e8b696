//! CPU kernels with a C ABI and a fixed summation order.
//!
//! A *plan* holds the packed weights of a model and the list of operations of one pass; `pie_k_step` runs a batch
//! through it. Every output of every operation has an accumulator of its own that walks its inputs in an order given by
//! the shapes of the model alone. So a row of logits has the same bits whatever else is in the batch, however a prompt
//! was cut into chunks, wherever its pages lie, on any number of threads, and on every instruction set.
//!
//! From the boundary inwards: [`ffi`] (C symbols, catches panics), `plan` (checks and the interpreter), `arena` (the
//! batch, checked), `ops` (what is computed), `simd` (sixteen lanes on each instruction set), `pool` (threads).

pub mod ffi;

mod arena;
mod element;
mod error;
mod float_env;
mod kv;
mod math;
mod memory;
mod noise;
mod ops;
mod plan;
mod pool;
mod simd;
