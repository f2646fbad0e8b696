//! The Rust SDK: programs that run beside the model.
