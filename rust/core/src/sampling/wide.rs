//! Loops over whole rows, compiled for several instruction sets.
//!
//! The compiler makes vectors as wide as the set allows, and the processor says which it has. Every operation is one of
//! IEEE floats or of whole numbers, in the order that the loop states, and none is fused with another: so the bits are
//! the same with each set.

#![allow(unsafe_code)] // What is compiled for an instruction set may be called where the processor has it.

/// Runs a loop, which has to be inlined to be of use, by the widest instructions that the processor has.
#[inline(always)]
pub(super) fn widest<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
            // SAFETY: the processor has both.
            return unsafe { with_avx512(work) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has it.
            return unsafe { with_avx2(work) };
        }
    }
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn with_avx512<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<T>(work: impl FnOnce() -> T) -> T {
    work()
}
