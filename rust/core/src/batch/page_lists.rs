//! The pages of the sequences of a batch, most of which stand in an arena before.
//!
//! A list of pages only grows under its name. So the ids that an arena has of it are written once: where the next arena
//! has the same fields, and nobody else has that one any more, they stay where they are in its memory; else they are
//! copied from there, those of neighbours at once. Only what a list grew by is read from the list.

use std::ops::Range;
use std::sync::Arc;

use super::layout::{FIELDS_AT, Field};
use super::view::ArenaView;
use crate::ids::{BatchId, PageId};

/// Arenas that are kept: a driver may have one while the next is made.
const N_KEPT: usize = 2;

static NO_PAGES: Vec<PageId> = Vec::new();

/// The first pages of a list.
#[derive(Clone, Copy, Debug)]
pub struct Pages<'a> {
    /// The name of the list: under it the ids of a list stay as they are, and others are added. 0: it has none.
    pub list: u64,
    /// The list. It is not looked at where its ids are known.
    pub ids: &'a Vec<PageId>,
    /// How many are meant, and no more than there are.
    pub n: usize,
}

impl Default for Pages<'_> {
    /// No pages.
    fn default() -> Self {
        Self {
            list: 0,
            ids: &NO_PAGES,
            n: 0,
        }
    }
}

/// What an arena has of the pages of a sequence.
#[derive(Clone, Copy, Debug)]
struct Listed {
    /// The name of the list of its first pages; 0: none that may be relied upon.
    list: u64,
    n_of_list: u32,
    /// The page behind those, where there is one; the next sequence may have others.
    last: Option<PageId>,
    /// Where its ids begin among those of the arena.
    start: u32,
    /// Where as many of its first ids begin in the arena before as are copied from there.
    kept_from: u32,
    n_kept: u32,
}

/// The arena of a batch before, and what it has of the pages of its sequences.
#[derive(Debug)]
struct PastArena {
    arena: Arc<[u32]>,
    lists: Vec<Listed>,
}

/// The pages of the batch that is being planned, and of the arenas before.
#[derive(Debug, Default)]
pub(super) struct PageLists {
    lists: Vec<Listed>,
    /// Ids of all sequences.
    n_ids: u32,
    /// Those of them that the arena before does not have, in their order.
    new: Vec<u32>,
    /// The arena from which the others come.
    before: Option<PastArena>,
    /// Arenas of the latest batches, the last one first.
    kept: Vec<PastArena>,
}

impl PageLists {
    /// Ids of all sequences.
    pub(super) const fn n_ids(&self) -> usize {
        self.n_ids as usize
    }

    /// Adds those of the next sequence: `pages`, and `last` behind them. Returns the end of its ids among those of all.
    pub(super) fn add(&mut self, pages: Pages<'_>, last: &[PageId]) -> u32 {
        if self.lists.is_empty() && self.before.is_none() {
            self.before = self.choose();
        }
        let mut listed = Listed {
            list: pages.list,
            n_of_list: pages.n as u32,
            last: last.first().copied().filter(|_| last.len() == 1),
            start: self.n_ids,
            kept_from: 0,
            n_kept: 0,
        };
        let before = self.before.as_ref();
        let before = before.and_then(|before| before.lists.get(self.lists.len()));
        if let Some(before) = before.filter(|it| it.list == pages.list && pages.list != 0) {
            listed.kept_from = before.start;
            listed.n_kept = before.n_of_list.min(listed.n_of_list);
            let is_alike = listed.last.is_some() && listed.last == before.last;
            listed.n_kept += u32::from(is_alike && before.n_of_list == listed.n_of_list);
        }
        self.n_ids += (pages.n + last.len()) as u32;
        if listed.n_kept < listed.n_of_list {
            let new = pages.ids.get(listed.n_kept as usize..pages.n);
            let new = new.unwrap_or_default();
            self.new.extend(new.iter().map(|page| page.0));
        }
        if listed.n_kept <= listed.n_of_list {
            self.new.extend(last.iter().map(|page| page.0));
        }
        self.lists.push(listed);
        self.n_ids
    }

    /// The same for a sequence that uses another page than its list says at one place, in this batch alone.
    pub(super) fn add_with(
        &mut self,
        pages: Pages<'_>,
        last: &[PageId],
        (page_idx, page): (u32, PageId),
    ) -> u32 {
        let first = self.new.len();
        let end = self.add(Pages { list: 0, ..pages }, last);
        if let Some(entry) = self.new.get_mut(first + page_idx as usize) {
            *entry = page.0;
        }
        end
    }

    /// The arena to take ids from: one that nobody else has, or else the last one.
    fn choose(&mut self) -> Option<PastArena> {
        let free = |kept: &PastArena| Arc::strong_count(&kept.arena) == 1;
        let index = self.kept.iter().position(free).unwrap_or(0);
        (index < self.kept.len()).then(|| self.kept.remove(index))
    }

    /// The arena before, to be written on, where it has that header of fields and every id that stays is in its place.
    pub(super) fn take_arena(&mut self, n_words: usize, spans: &[u32]) -> Option<Arc<[u32]>> {
        let stays = |listed: &Listed| listed.n_kept == 0 || listed.kept_from == listed.start;
        let before = self.before.as_mut()?;
        let header = before.arena.get(FIELDS_AT..FIELDS_AT + spans.len());
        let is_alike = before.arena.len() == n_words && header == Some(spans);
        let can_stay = is_alike && self.lists.iter().all(stays);
        if !can_stay || Arc::get_mut(&mut before.arena).is_none() {
            return None;
        }
        self.before.take().map(|before| before.arena)
    }

    /// Writes the ids into their field, in which those that are kept stand already where the arena before was taken.
    pub(super) fn write(&self, words: &mut [u32]) {
        let before = self.before.as_ref().map_or(&[][..], |before| {
            let at = FIELDS_AT + 2 * Field::KvIndices as usize;
            let (start, n) = (before.arena[at] as usize, before.arena[at + 1] as usize);
            &before.arena[start..start + n]
        });
        // Kept ids of neighbours, which are neighbours in the arena before too.
        let mut run = Run::default();
        let (mut new, mut start) = (&self.new[..], 0);
        for (index, listed) in self.lists.iter().enumerate() {
            let end = self.lists.get(index + 1).map_or(self.n_ids, |it| it.start) as usize;
            let n_kept = listed.n_kept as usize;
            if self.before.is_some() {
                run.add(listed, words, before);
            }
            let own;
            (own, new) = new.split_at(end - start - n_kept);
            words[start + n_kept..end].copy_from_slice(own);
            start = end;
        }
        run.copy(words, before);
    }

    /// The arena of a batch, where it is kept.
    pub(super) fn arena_of(&self, id: BatchId) -> Option<&[u32]> {
        let mut arenas = self.kept.iter().map(|kept| &*kept.arena);
        arenas.find(|arena| ArenaView::built(arena).batch_id() == id.0)
    }

    /// The batch has this arena; the next one begins without any sequence.
    pub(super) fn keep(&mut self, arena: Arc<[u32]>) {
        let lists = self.before.take().map(|before| before.lists);
        let lists = std::mem::replace(&mut self.lists, lists.unwrap_or_default());
        self.lists.clear();
        self.kept.insert(0, PastArena { arena, lists });
        self.kept.truncate(N_KEPT);
        self.n_ids = 0;
        self.new.clear();
    }
}

/// Ids that are copied from the arena before at once.
#[derive(Debug, Default)]
struct Run {
    from: usize,
    to: Range<usize>,
}

impl Run {
    /// Adds the kept ids of a sequence; copies those before where they are not their neighbours.
    fn add(&mut self, listed: &Listed, words: &mut [u32], before: &[u32]) {
        let (from, to, n) = (
            listed.kept_from as usize,
            listed.start as usize,
            listed.n_kept as usize,
        );
        if n == 0 {
            return;
        }
        if self.to.end != to || self.from + self.to.len() != from {
            self.copy(words, before);
            (self.from, self.to) = (from, to..to);
        }
        self.to.end += n;
    }

    fn copy(&self, words: &mut [u32], before: &[u32]) {
        words[self.to.clone()].copy_from_slice(&before[self.from..self.from + self.to.len()]);
    }
}
