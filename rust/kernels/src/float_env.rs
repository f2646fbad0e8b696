//! The floating-point environment that the kernels compute in.
//!
//! A library built with fast-math may set flush-to-zero for a whole thread; the kernels' results must not depend on who
//! else is loaded. On x86-64 the control register is set for the time of a step and put back; other machines start
//! threads in the IEEE default and have no such habit.
#![allow(unsafe_code)] // The control register is reached by instructions only.

/// Round to nearest even, no flushing of denormals, all exceptions masked.
#[cfg(target_arch = "x86_64")]
const IEEE_DEFAULT: u32 = 0x1f80;

/// The same with denormal inputs taken as zero (DAZ, bit 6) and denormal results flushed to zero (FTZ, bit 15).
#[cfg(target_arch = "x86_64")]
const FLUSHING: u32 = IEEE_DEFAULT | 1 << 15 | 1 << 6;

/// Holds an environment on this thread; restores the former one when dropped.
pub(crate) struct FloatEnvironment {
    #[cfg(target_arch = "x86_64")]
    former: u32,
}

impl FloatEnvironment {
    /// Enters the IEEE default environment.
    pub(crate) fn enter() -> Self {
        #[cfg(target_arch = "x86_64")]
        return Self::set(IEEE_DEFAULT);
        #[cfg(not(target_arch = "x86_64"))]
        Self {}
    }

    /// Enters the environment in which denormals are zero, inside of which only vector arithmetic runs that expects it.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn enter_flushing() -> Self {
        Self::set(FLUSHING)
    }

    #[cfg(target_arch = "x86_64")]
    fn set(control: u32) -> Self {
        let mut former = 0u32;
        // SAFETY: stores the control register into a local; SSE is part of x86-64.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut former, options(nostack)) };
        set_control(control);
        Self { former }
    }
}

impl Drop for FloatEnvironment {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        set_control(self.former);
    }
}

#[cfg(target_arch = "x86_64")]
fn set_control(value: u32) {
    // SAFETY: the value is one of the two above or one that the register held before.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &value, options(nostack)) };
}
