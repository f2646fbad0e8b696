//! The pool of keys and values: where they lie in memory that the caller owns.
//!
//! One array `[n_pages][n_layers][keys, values][n_kv_heads][page_size * head_dim]`. Keys of a head are stored transposed,
//! `[head_dim][page_size]`, so that sixteen slots are scored at once, each in a lane of its own that walks the head in order;
//! values are stored `[page_size][head_dim]`. So neither needs a sum across lanes, and no result depends on where a page ends.
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
    /// `start` points to `n_bytes` initialised bytes that live as long as the result, that nobody else touches during a step, and that
    /// no other `KvMemory` shares.
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

    /// Copies a whole page to another memory of such pages, or to another page of this one. The caller has checked the indices, and
    /// that no page is both read and written.
    pub(crate) fn copy_page(&self, src: usize, to: &Self, dst: usize) {
        let same = std::ptr::eq(self.start, to.start);
        assert!(
            src < self.shape.n_pages
                && dst < to.shape.n_pages
                && !(same && src == dst)
                && self.page_bytes() == to.page_bytes(),
            "page copies are checked before"
        );
        let page_bytes = self.page_bytes();
        // SAFETY: both pages lie in their memories, which do not overlap (the contract of `new`), and are two different ones.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.start.add(src * page_bytes),
                to.start.add(dst * page_bytes),
                page_bytes,
            )
        }
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
        let heads = ((page * self.shape.n_layers + self.layer) * 2 + usize::from(values))
            * self.shape.n_kv_heads
            + head;
        // SAFETY: the assertion keeps this inside the pool.
        unsafe { self.start.add(heads * self.shape.head_len()) }
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
