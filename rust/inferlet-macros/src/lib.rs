//! The attribute macros of the inferlet crate.
