//! A context as a value: what it says, apart from any engine, device and page. So it can be kept elsewhere, and be a
//! context again in an engine whose pages are of another size.

use std::ops::Range;
use std::sync::Arc;

use super::Context;
use crate::batch::Adapter;
use crate::generation::saved;
use crate::ids::{ProcessId, UserId};
use crate::kv::{Content, Lane, NodeId, PageStore, Traits};

/// What a context says. Whatever counts pages in a context counts tokens here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextImage {
    /// Those that were computed, in the order of storage.
    pub tokens: Vec<u32>,
    /// What those of them were computed with that do not stand at their own position, do not see all before them, or
    /// have an adapter or a medium. Slots ascend.
    pub special: Vec<SpecialSlot>,
    /// The newest tokens of a generation, which were not computed.
    pub pending: Vec<u32>,
    /// What the program appended and no pass has taken.
    pub buffer: Vec<u32>,
    /// Tokens that passes found computed.
    pub n_cached: u32,
    /// Tokens in pages that cannot be truncated any more.
    pub n_committed: u32,
    /// Tokens whose full pages are committed when the program goes on.
    pub n_final: u32,
    /// Slots that the program reserved, those that are filled included.
    pub n_reserved: u32,
    /// Which copy of which fork it is, as a hash: seeds follow from it.
    pub path: u64,
}

/// What the token of a slot was computed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialSlot {
    /// Which slot it is.
    pub slot: u32,
    /// The position of the rotary embedding.
    pub position: u32,
    /// The slots that the token sees, as run lengths over `[0, slot]`, in the shortest form; empty: all of them.
    pub mask: Arc<[u32]>,
    /// The adapter.
    pub adapter: Adapter,
    /// Digest of the medium that the token stands for; 0 is none.
    pub media: u64,
}

impl ContextImage {
    /// All tokens.
    pub const fn length(&self) -> usize {
        self.tokens.len() + self.pending.len() + self.buffer.len()
    }

    /// Adds what lies behind.
    fn push(&mut self, content: &Content) {
        let first = self.tokens.len() as u32;
        let special = content.special(first);
        self.special.extend(special.map(|(slot, traits)| {
            let Traits {
                position,
                mask,
                adapter,
                media,
            } = traits.clone();
            SpecialSlot {
                slot,
                position,
                mask,
                adapter,
                media,
            }
        }));
        self.tokens.extend_from_slice(content.tokens());
    }

    /// The content of some of its slots.
    fn content(&self, slots: Range<u32>) -> Content {
        let tokens = self.tokens[slots.start as usize..slots.end as usize].to_vec();
        let from = self.special.partition_point(|it| it.slot < slots.start);
        let special = self.special[from..]
            .iter()
            .take_while(|it| it.slot < slots.end);
        let mut traits: Option<Vec<Traits>> = None;
        for it in special {
            let all = traits.get_or_insert_with(|| slots.clone().map(Traits::plain).collect());
            all[(it.slot - slots.start) as usize] = Traits {
                position: it.position,
                mask: it.mask.clone(),
                adapter: it.adapter,
                media: it.media,
            };
        }
        match traits {
            None => Content::plain(tokens),
            Some(traits) => Content::new(tokens, traits, slots.start),
        }
    }
}

impl Context {
    /// What it says, as the next copy of it that is kept. Of a context without a pass.
    pub(crate) fn image(&self, store: &PageStore) -> ContextImage {
        let page_size = store.page_size();
        let mut image = ContextImage {
            tokens: Vec::with_capacity(self.n_tokens as usize),
            pending: self.pending.clone(),
            buffer: self.buffer.to_vec(),
            n_cached: self.n_cached,
            n_committed: self.n_committed.saturating_mul(page_size),
            n_final: self.n_final,
            n_reserved: self.n_reserved.saturating_mul(page_size),
            path: saved(self.path, self.n_forks + 1),
            ..ContextImage::default()
        };
        for node in self.full_nodes(store) {
            if let Some(page) = store.content(node) {
                image.push(page);
            }
        }
        image.push(&self.tail);
        image
    }

    /// The full pages of what was computed, apart from a pass under way, in their order.
    pub(crate) fn full_nodes(&self, store: &PageStore) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut next = self.last_full(store);
        while let Some(node) = next {
            nodes.push(node);
            next = store.parent(node);
        }
        nodes.reverse();
        nodes
    }

    /// A context of a process that says what an image does, whose tokens are some of the model and whose slots ascend.
    /// It has nothing ready: what others have computed of it is adopted, and the rest computed, by the pass that comes.
    pub(crate) fn of_image(
        process: ProcessId,
        user: UserId,
        image: &ContextImage,
        store: &mut PageStore,
    ) -> Self {
        let page_size = store.page_size();
        let n_tokens = image.tokens.len() as u32;
        let n_full = n_tokens / page_size * page_size;
        let pages = (0..n_full / page_size)
            .map(|page_idx| image.content(page_idx * page_size..(page_idx + 1) * page_size));
        let lane = Lane::of_pages(store, user, pages);
        let n_reserved = image.n_reserved.div_ceil(page_size).min(store.n_pages());
        Self {
            n_tokens,
            tail: image.content(n_full..n_tokens),
            pending: image.pending.clone(),
            n_cached: image.n_cached.min(n_full),
            buffer: Arc::new(image.buffer.clone()),
            n_committed: image.n_committed.min(n_tokens) / page_size,
            n_final: image.n_final.min(n_tokens),
            n_reserved,
            n_paid: n_full / page_size,
            ..Self::new(process, lane)
        }
    }
}
