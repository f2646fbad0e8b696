//! Memory of the kernels: aligned words, and slices that several threads fill in parts.
#![allow(unsafe_code)] // `Disjoint` hands parts of one slice to several threads.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};

/// One cache line, which is also one vector register.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u32; 16]);

/// A zeroed array of 32-bit words that starts on a cache line and can be seen as floats or as bfloat16.
pub(crate) struct Words {
    lines: Vec<Line>,
}

impl Words {
    /// At least `len` zero words.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self {
            lines: bytemuck::allocation::zeroed_vec(len.div_ceil(16)),
        }
    }

    /// The array as elements of another plain type.
    pub(crate) fn view<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(&self.lines)
    }

    /// The array as elements of another plain type, to be written.
    pub(crate) fn view_mut<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }
}

/// A slice whose parts are written by several threads at once, each part by one of them.
///
/// The borrow of the whole slice lasts as long as this value, so nobody else reads or writes it meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Disjoint<'a, T> {
    start: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: it stands for a `&mut [T]`, of which each thread takes parts that no other takes (the contract of `part`).
unsafe impl<T: Send> Send for Disjoint<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    /// Takes the slice for as long as the parts are in use.
    pub(crate) fn new(whole: &'a mut [T]) -> Self {
        Self {
            start: whole.as_mut_ptr(),
            len: whole.len(),
            borrow: PhantomData,
        }
    }

    /// One part.
    ///
    /// # Panics
    /// Where the range leaves the slice.
    ///
    /// # Safety
    /// While a part is in use, no other part that overlaps it may be.
    #[inline(always)]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "part outside of the slice"
        );
        // SAFETY: inside the borrowed slice, and exclusive by the contract of this function.
        unsafe {
            std::slice::from_raw_parts_mut(self.start.add(range.start), range.end - range.start)
        }
    }
}
