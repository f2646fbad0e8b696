//! Memory of the kernels: aligned words, and slices that several threads fill in parts.
#![allow(unsafe_code)] // `Disjoint` hands parts of one slice to several threads; huge pages are asked for by address.

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
        let n_lines = len.div_ceil(16);
        let mut lines = Vec::with_capacity(n_lines);
        ask_for_huge_pages(&mut lines);
        lines.resize(n_lines, Line::zeroed());
        Self { lines }
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

/// Weights are streamed: with pages of 2 MiB the walks of the page tables vanish from the time of a step.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(lines: &mut Vec<Line>) {
    const HUGE_PAGE: usize = 2 << 20;
    let room = lines.spare_capacity_mut();
    let address = room.as_mut_ptr().addr();
    let (start, end) = (
        address.next_multiple_of(HUGE_PAGE),
        (address + size_of_val(room)) & !(HUGE_PAGE - 1),
    );
    if start < end {
        // SAFETY: whole pages inside the allocation; the advice changes how they are backed, never what they hold. A
        // kernel that declines it is fine.
        unsafe {
            libc::madvise(
                room.as_mut_ptr().cast::<u8>().add(start - address).cast(),
                end - start,
                libc::MADV_HUGEPAGE,
            )
        };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_lines: &mut Vec<Line>) {}

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
