//! The pool of keys and values: where they lie in memory that the caller owns.
//!
//! One array `[n_pages][n_layers][keys, values][n_kv_heads][page_size *
//! head_dim]`. Keys of a head are stored transposed, `[head_dim][page_size]`, so that sixteen slots are scored at once,
//! each in a lane of its own that walks the head in order; values are stored `[page_size][head_dim]`. So neither needs
//! a sum across lanes, and no result depends on where a page ends.
#![allow(unsafe_code)] // The pool is memory of the caller, written and read through pointers.

use std::marker::PhantomData;

use crate::element::Element;
use crate::error::{Error, Result};

/// Sizes of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KvShape {
    pub(crate) n_pages: usize,
    pub(crate) page_size: usize,
    pub(crate) n_layers: usize,
    pub(crate) n_kv_heads: usize,
    pub(crate) head_dim: usize,
}

impl KvShape {
    /// Elements of the keys (or the values) of one head in one page.
    fn head_len(&self) -> usize {
        self.page_size * self.head_dim
    }

    /// Elements of a page.
    pub(crate) fn page_len(&self) -> usize {
        self.n_layers * 2 * self.n_kv_heads * self.head_len()
    }

    /// Where the keys (or the values) of a head of a layer begin in a page, in elements from the start of the pool.
    /// Pools have more than 2^32 elements.
    #[inline(always)]
    fn head_start(&self, page: usize, layer: usize, values: bool, head: usize) -> usize {
        let heads = ((page * self.n_layers + layer) * 2 + usize::from(values)) * self.n_kv_heads;
        (heads + head) * self.head_len()
    }

    /// Elements of the pool; None where that is beyond memory.
    pub(crate) fn checked_len(&self) -> Option<usize> {
        [
            2,
            self.n_layers,
            self.n_kv_heads,
            self.page_size,
            self.head_dim,
        ]
        .iter()
        .try_fold(self.n_pages, |len, &n| len.checked_mul(n))
    }
}

/// Memory of the caller for a pool.
#[derive(Clone, Copy)]
pub(crate) struct KvMemory {
    start: *mut u8,
    shape: KvShape,
    element_bytes: usize,
}

// SAFETY: a pointer to memory that the plan alone uses while a step runs (the contract of `new`).
unsafe impl Send for KvMemory {}
// SAFETY: as above.
unsafe impl Sync for KvMemory {}

impl KvMemory {
    /// Takes memory of the caller: `n_bytes` of it must hold a pool of that shape.
    ///
    /// # Safety
    /// `start` points to `n_bytes` initialised bytes that live as long as the result, that nobody else touches during a
    /// step, and that no other `KvMemory` shares.
    pub(crate) unsafe fn new(
        start: *mut u8,
        n_bytes: usize,
        shape: KvShape,
        element_bytes: usize,
    ) -> Result<Self> {
        let needed = shape
            .checked_len()
            .and_then(|len| len.checked_mul(element_bytes))
            .filter(|&needed| needed <= isize::MAX as usize);
        let Some(needed) = needed else {
            return Err(Error::argument(format!(
                "a pool of {} pages is larger than memory; ask for fewer pages",
                shape.n_pages
            )));
        };
        if n_bytes != needed {
            return Err(Error::argument(format!(
                "the pool has {n_bytes} bytes, but {} pages need {needed}",
                shape.n_pages
            )));
        }
        if start.is_null() || !start.addr().is_multiple_of(element_bytes) {
            return Err(Error::argument(
                "the pool is null or not aligned to its elements",
            ));
        }
        Ok(Self {
            start,
            shape,
            element_bytes,
        })
    }

    /// Pages that it holds.
    pub(crate) fn n_pages(&self) -> usize {
        self.shape.n_pages
    }

    /// Copies a whole page to another memory of such pages, or to another page of this one. The caller has checked the
    /// indices, and that no page is both read and written.
    pub(crate) fn copy_page(&self, src: usize, to: &Self, dst: usize) {
        let same = std::ptr::eq(self.start, to.start);
        assert!(
            src < self.shape.n_pages
                && dst < to.shape.n_pages
                && !(same && src == dst)
                && self.page_bytes() == to.page_bytes(),
            "page copies are checked before"
        );
        // SAFETY: both pages lie in their memories, which do not overlap (the contract of `new`), and are two different
        // ones.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.start.add(self.page_start(src)),
                to.start.add(to.page_start(dst)),
                self.page_bytes(),
            )
        }
    }

    /// Where a page begins, in bytes.
    fn page_start(&self, page: usize) -> usize {
        page * self.page_bytes()
    }

    fn page_bytes(&self) -> usize {
        self.shape.page_len() * self.element_bytes
    }

    /// The part of one layer.
    pub(crate) fn layer<E: Element>(&self, layer: usize) -> KvLayer<'_, E> {
        assert!(
            layer < self.shape.n_layers && size_of::<E>() == self.element_bytes,
            "operations are checked before"
        );
        KvLayer {
            start: self.start.cast(),
            shape: self.shape,
            layer,
            pool: PhantomData,
        }
    }
}

/// The keys and values of one layer.
#[derive(Clone, Copy)]
pub(crate) struct KvLayer<'a, E> {
    start: *mut E,
    shape: KvShape,
    layer: usize,
    pool: PhantomData<&'a KvMemory>,
}

// SAFETY: as for `KvMemory`; which parts are written and which are read is in the contracts of the methods.
unsafe impl<E: Send> Send for KvLayer<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Sync for KvLayer<'_, E> {}

impl<E: Element> KvLayer<'_, E> {
    /// Slots of a page.
    #[inline(always)]
    pub(crate) fn page_size(&self) -> usize {
        self.shape.page_size
    }

    #[inline(always)]
    fn head(&self, page: u32, head: usize, values: bool) -> *mut E {
        let page = page as usize;
        assert!(
            page < self.shape.n_pages && head < self.shape.n_kv_heads,
            "pages are checked before"
        );
        let start = self.shape.head_start(page, self.layer, values, head);
        // SAFETY: the assertion keeps this inside the pool.
        unsafe { self.start.add(start) }
    }

    /// Keys of a head in a page, `[head_dim][page_size]`.
    ///
    /// # Safety
    /// Nobody writes this page meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn keys(&self, page: u32, head: usize) -> &[E] {
        // SAFETY: inside the pool, and not written meanwhile.
        unsafe { std::slice::from_raw_parts(self.head(page, head, false), self.shape.head_len()) }
    }

    /// Values of a head in a page, `[page_size][head_dim]`.
    ///
    /// # Safety
    /// Nobody writes this page meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn values(&self, page: u32, head: usize) -> &[E] {
        // SAFETY: inside the pool, and not written meanwhile.
        unsafe { std::slice::from_raw_parts(self.head(page, head, true), self.shape.head_len()) }
    }

    /// Writes the key and the value of a head for one slot of a page.
    ///
    /// # Safety
    /// Nobody reads this page or writes this slot meanwhile.
    pub(crate) unsafe fn write(&self, page: u32, slot: usize, head: usize, key: &[E], value: &[E]) {
        let KvShape {
            page_size,
            head_dim,
            ..
        } = self.shape;
        assert!(
            slot < page_size && key.len() == head_dim && value.len() == head_dim,
            "slots are checked before"
        );
        let (keys, values) = (self.head(page, head, false), self.head(page, head, true));
        // SAFETY: slot and elements lie inside the head's part of the page, which this thread alone writes.
        unsafe {
            for (d, &key) in key.iter().enumerate() {
                *keys.add(d * page_size + slot) = key;
            }
            std::ptr::copy_nonoverlapping(value.as_ptr(), values.add(slot * head_dim), head_dim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pools of more than 2^32 elements, none of which is made: heads lie one behind the other, up to the very end.
    #[test]
    fn heads_fill_a_pool_without_gaps_however_large_it_is() {
        let shapes = [
            (3, 5, 2, 3, 6),
            (70_000, 16, 36, 8, 128),
            (1 << 22, 1, 64, 1, 512),
        ];
        for (n_pages, page_size, n_layers, n_kv_heads, head_dim) in shapes {
            let shape = KvShape {
                n_pages,
                page_size,
                n_layers,
                n_kv_heads,
                head_dim,
            };
            let step = n_pages.div_ceil(1000);
            let mut pages: Vec<usize> = (0..n_pages).step_by(step).collect();
            pages.push(n_pages - 1);
            for page in pages {
                let mut next = page as u128 * shape.page_len() as u128;
                for (layer, values) in
                    (0..n_layers).flat_map(|layer| [(layer, false), (layer, true)])
                {
                    for head in 0..n_kv_heads {
                        let start = shape.head_start(page, layer, values, head);
                        assert_eq!(start as u128, next, "{shape:?}: page {page}, layer {layer}");
                        next += (page_size * head_dim) as u128;
                    }
                }
                let len = shape.checked_len().unwrap();
                assert_eq!(next == len as u128, page == n_pages - 1);
            }
        }
        assert_eq!(
            KvShape {
                n_pages: usize::MAX / 2,
                page_size: 2,
                n_layers: 2,
                n_kv_heads: 1,
                head_dim: 1
            }
            .checked_len(),
            None
        );
    }

    /// Bytes by where heads lie, which is not how pages are copied.
    #[test]
    fn a_copied_page_has_the_heads_of_its_source_and_no_other_page_changes() {
        for element_bytes in [2, 4] {
            let shape = KvShape {
                n_pages: 4,
                page_size: 3,
                n_layers: 2,
                n_kv_heads: 5,
                head_dim: 7,
            };
            let n_bytes = shape.checked_len().unwrap() * element_bytes;
            let before: Vec<u8> = (0..n_bytes).map(|n| (n % 251) as u8).collect();
            let mut pool = before.clone();
            let memory = KvMemory {
                start: pool.as_mut_ptr(),
                shape,
                element_bytes,
            };
            memory.copy_page(1, &memory, 3);
            for page in 0..4 {
                let source = if page == 3 { 1 } else { page };
                let heads =
                    (0..2).flat_map(|layer| (0..10).map(move |n| (layer, n % 2 == 1, n / 2)));
                for (layer, values, head) in heads {
                    let of = |page: usize, bytes: &[u8]| {
                        let start = shape.head_start(page, layer, values, head) * element_bytes;
                        bytes[start..start + 3 * 7 * element_bytes].to_vec()
                    };
                    assert_eq!(
                        of(page, &pool),
                        of(source, &before),
                        "page {page} of {element_bytes}"
                    );
                }
            }
        }
    }

    /// The slot behind the last one is the first of the next head.
    #[test]
    #[should_panic(expected = "slots are checked before")]
    fn a_slot_behind_its_page_is_not_written() {
        let shape = KvShape {
            n_pages: 1,
            page_size: 2,
            n_layers: 1,
            n_kv_heads: 2,
            head_dim: 3,
        };
        let mut pool = vec![0.0f32; shape.checked_len().unwrap()];
        let memory = KvMemory {
            start: pool.as_mut_ptr().cast(),
            shape,
            element_bytes: 4,
        };
        // SAFETY: nobody else has the pool.
        unsafe {
            memory.layer::<f32>(0).write(0, 2, 0, &[1.0; 3], &[2.0; 3]);
        }
    }

    #[test]
    fn pages_of_large_pools_begin_with_their_first_head() {
        let shape = KvShape {
            n_pages: 70_000,
            page_size: 16,
            n_layers: 36,
            n_kv_heads: 8,
            head_dim: 128,
        };
        let mut nothing = [0u8; 2];
        for element_bytes in [2, 4] {
            let memory = KvMemory {
                start: nothing.as_mut_ptr(),
                shape,
                element_bytes,
            };
            for page in [0, 1, 29_127, 29_128, 69_999] {
                let first = shape.head_start(page, 0, false, 0) as u128;
                assert_eq!(
                    memory.page_start(page) as u128,
                    first * element_bytes as u128
                );
            }
        }
    }
}
