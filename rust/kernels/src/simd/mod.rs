//! Sixteen float lanes, written once for every instruction set.
//!
//! An operation is a [`Kernel`] that is generic over [`Simd`], so that the order of its arithmetic stands in one place;
//! the implementations differ only in how a lane operation is done, and each lane operation has one IEEE-defined
//! result. That is why all instruction sets give the same bits. A value of an implementation is the proof that the CPU
//! has the instructions.

mod lanes;
mod portable;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(crate) use lanes::{Kernel, LANES, Simd};
pub(crate) use portable::Portable;

use crate::error::{Error, Result};

/// An instruction set that this CPU has.
#[derive(Clone, Copy)]
pub(crate) enum Isa {
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Isa {
    /// The code for "the best of this CPU" at the C boundary.
    pub(crate) const AUTO: u32 = 0;
    /// The code of the portable implementation.
    pub(crate) const PORTABLE: u32 = 1;
    /// The code of AVX-512 with bfloat16.
    pub(crate) const AVX512: u32 = 2;
    /// The code of AVX2 with FMA.
    pub(crate) const AVX2: u32 = 3;

    /// The instruction set of that code; an error where this CPU lacks it.
    pub(crate) fn choose(code: u32) -> Result<Self> {
        let lacks = |what: &str| {
            Error::argument(format!(
                "this CPU has no {what}; choose auto, or one that it has: {}",
                Self::names().join(", ")
            ))
        };
        match code {
            Self::AUTO => Ok(Self::avx512()
                .or_else(Self::avx2)
                .unwrap_or(Self::Portable(Portable))),
            Self::PORTABLE => Ok(Self::Portable(Portable)),
            Self::AVX512 => Self::avx512().ok_or_else(|| lacks("AVX-512 with bfloat16")),
            Self::AVX2 => Self::avx2().ok_or_else(|| lacks("AVX2 with FMA")),
            other => Err(Error::argument(format!(
                "instruction set {other} is unknown; 0 is auto, 1 portable, 2 AVX-512, 3 AVX2"
            ))),
        }
    }

    /// The code of this instruction set.
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Portable(_) => Self::PORTABLE,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Self::AVX2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Self::AVX512,
        }
    }

    /// The names, at the surface, of all that this CPU has; the best first.
    fn names() -> Vec<&'static str> {
        let found = [
            Self::avx512().map(|_| "avx512"),
            Self::avx2().map(|_| "avx2"),
            Some("portable"),
        ];
        found.into_iter().flatten().collect()
    }

    #[cfg(target_arch = "x86_64")]
    fn avx2() -> Option<Self> {
        Avx2::detect().map(Self::Avx2)
    }

    #[cfg(target_arch = "x86_64")]
    fn avx512() -> Option<Self> {
        Avx512::detect().map(Self::Avx512)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn avx2() -> Option<Self> {
        None
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn avx512() -> Option<Self> {
        None
    }

    /// Runs a kernel compiled for this instruction set.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Self::Portable(simd) => simd.vectorize(
                #[inline(always)]
                || kernel.run(simd),
            ),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.vectorize(
                #[inline(always)]
                || kernel.run(simd),
            ),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.vectorize(
                #[inline(always)]
                || kernel.run(simd),
            ),
        }
    }
}

/// All instruction sets of this CPU.
#[cfg(test)]
pub(crate) fn all_isas() -> Vec<Isa> {
    [Isa::PORTABLE, Isa::AVX2, Isa::AVX512]
        .into_iter()
        .filter_map(|code| Isa::choose(code).ok())
        .collect()
}

#[cfg(test)]
mod tests;
