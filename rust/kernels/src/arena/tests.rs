//! Batches that do not fit are refused.
