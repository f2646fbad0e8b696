//! Loops over whole rows, compiled for several instruction sets.
//!
//! The compiler makes vectors as wide as the set allows, and the processor says which it has. Every operation is one of
//! IEEE floats or of whole numbers, in the order that the loop states, and none is fused with another: so the bits are
//! the same with each set.

/// Defines a function that does its work by the widest instructions that the processor has. What it calls has to be
/// always inlined, and a closure called once: what is not inlined is compiled for the narrowest.
macro_rules! widest {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),+) $(-> $out:ty)? $body:block) => {
        $(#[$doc])*
        #[allow(unsafe_code)] // What is compiled for an instruction set may be called where the processor has it.
        fn $name($($arg: $type),+) $(-> $out)? {
            #[inline(always)]
            fn narrow($($arg: $type),+) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq")]
                fn with_avx512($($arg: $type),+) $(-> $out)? {
                    narrow($($arg),+)
                }

                #[target_feature(enable = "avx2")]
                fn with_avx2($($arg: $type),+) $(-> $out)? {
                    narrow($($arg),+)
                }

                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                    // SAFETY: the processor has both.
                    return unsafe { with_avx512($($arg),+) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has it.
                    return unsafe { with_avx2($($arg),+) };
                }
            }
            narrow($($arg),+)
        }
    };
}
pub(super) use widest;
