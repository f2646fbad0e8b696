//! The pages of an arena are those that its sequences have, whatever arenas came before and whoever has those.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::ids::{BatchId, ContextId, PageId, RequestId};

/// A list of pages as a lane has one, and the page behind it.
#[derive(Clone, Debug, Default)]
struct List {
    name: u64,
    pages: Vec<PageId>,
    last: Option<PageId>,
}

/// What befalls lists between batches.
#[derive(Clone, Debug)]
enum Change {
    /// The page behind a list is its next one, and there is another one behind it, or none.
    Grow {
        list: usize,
        goes_on: bool,
    },
    /// The page behind a list is another one.
    Copy(usize),
    Cut {
        list: usize,
        n: usize,
    },
    /// Two sequences change places.
    Swap(usize, usize),
    /// A sequence goes, or comes back.
    Toggle(usize),
}

fn changes() -> impl Strategy<Value = Change> {
    let list = || 0..6usize;
    prop_oneof![
        4 => (list(), any::<bool>()).prop_map(|(list, goes_on)| Change::Grow { list, goes_on }),
        1 => list().prop_map(Change::Copy),
        1 => (list(), 0..4usize).prop_map(|(list, n)| Change::Cut { list, n }),
        1 => (list(), list()).prop_map(|(a, b)| Change::Swap(a, b)),
        1 => list().prop_map(Change::Toggle),
    ]
}

/// A batch: what befell the lists before it, of which sequence one page is replaced, and for how many batches its
/// driver keeps the arena.
type Plan = (Vec<Change>, Option<usize>, usize);

struct Lists {
    lists: Vec<List>,
    is_in: [bool; 6],
    n_pages: u32,
    n_names: u64,
}

impl Lists {
    fn new() -> Self {
        let mut lists = Self {
            lists: vec![List::default(); 6],
            is_in: [true; 6],
            n_pages: 0,
            n_names: 0,
        };
        for list in 0..6 {
            lists.lists[list].last = Some(lists.page());
        }
        lists
    }

    fn page(&mut self) -> PageId {
        self.n_pages += 1;
        PageId(self.n_pages)
    }

    fn name(&mut self) -> u64 {
        self.n_names += 1;
        self.n_names
    }

    fn apply(&mut self, change: &Change) {
        let (page, name) = (self.page(), self.name());
        match *change {
            Change::Grow { list, goes_on } => {
                let list = &mut self.lists[list];
                if list.name == 0 {
                    list.name = name;
                }
                list.pages.push(list.last.unwrap_or(page));
                list.last = goes_on.then_some(PageId(1000 + page.0));
            }
            Change::Copy(list) => self.lists[list].last = Some(page),
            Change::Cut { list, n } => {
                let list = &mut self.lists[list];
                list.pages.truncate(n);
                list.name = if list.pages.is_empty() { 0 } else { name };
                list.last = Some(page);
            }
            Change::Swap(a, b) => self.lists.swap(a, b),
            Change::Toggle(list) => self.is_in[list] ^= true,
        }
    }

    fn present(&self) -> impl Iterator<Item = &List> {
        let all = self.lists.iter().zip(self.is_in);
        all.filter_map(|(list, is_in)| is_in.then_some(list))
            .filter(|list| !list.pages.is_empty() || list.last.is_some())
    }
}

/// Writes a batch of all lists that are in it. Returns it with the pages of its sequences.
fn write(
    builder: &mut ArenaBuilder,
    lists: &Lists,
    replaced: Option<usize>,
) -> (Arc<[u32]>, Vec<Vec<u32>>) {
    let mut expected = Vec::new();
    for (index, list) in lists.present().enumerate() {
        let pages = list.pages.iter().chain(&list.last).map(|page| page.0);
        let mut pages: Vec<u32> = pages.collect();
        let replaced = (replaced == Some(index)).then(|| (pages.len() as u32 - 1, PageId(9999)));
        if let Some((page_idx, page)) = replaced {
            pages[page_idx as usize] = page.0;
        }
        builder.add_sequence(&Sequence {
            context: ContextId(1),
            request: RequestId(1),
            tokens: &[1],
            positions: Positions::From(0),
            masks: Masks::Causal,
            adapter: Adapter::default(),
            media: 0,
            pages: Pages {
                list: list.name,
                ids: &list.pages,
                n: list.pages.len(),
            },
            last_pages: list.last.as_slice(),
            replaced,
            length: 4 * pages.len() as u32,
            reread: false,
            follows: None,
        });
        expected.push(pages);
    }
    (builder.finish(BatchId(7)), expected)
}

fn pages_of(arena: &[u32]) -> Vec<Vec<u32>> {
    let view = ArenaView::parse(arena).expect("the arena is well-formed");
    view.sequences().map(|it| it.pages.to_vec()).collect()
}

/// An arena that a driver has for so many batches, and its pages.
type Held = (usize, Arc<[u32]>, Vec<Vec<u32>>);

fn check(plans: &[Plan]) -> std::result::Result<(), TestCaseError> {
    let (mut builder, mut lists) = (ArenaBuilder::new(4), Lists::new());
    let mut held: Vec<Held> = Vec::new();
    for (changes, replaced, n_held) in plans {
        for change in changes {
            lists.apply(change);
        }
        let (arena, expected) = write(&mut builder, &lists, *replaced);
        prop_assert_eq!(&pages_of(&arena), &expected);
        held.push((*n_held, arena, expected));
        held.retain_mut(|(n_left, ..)| {
            *n_left = n_left.wrapping_sub(1);
            *n_left != usize::MAX
        });
        for (_, arena, expected) in &held {
            prop_assert_eq!(&pages_of(arena), expected);
        }
    }
    Ok(())
}

#[test]
fn what_is_alike_stays_in_the_same_memory() {
    let (mut builder, mut lists) = (ArenaBuilder::new(4), Lists::new());
    for list in 0..6 {
        let grow = Change::Grow {
            list,
            goes_on: true,
        };
        lists.apply(&grow);
    }
    let (first, expected) = write(&mut builder, &lists, None);
    let address = first.as_ptr();
    // Somebody has it: the next one is written elsewhere.
    let (second, _) = write(&mut builder, &lists, None);
    assert_ne!(second.as_ptr(), address);
    drop((first, second));
    lists.apply(&Change::Copy(2));
    let (third, changed) = write(&mut builder, &lists, None);
    assert_ne!(changed, expected);
    assert_eq!(pages_of(&third), changed);
    let address = third.as_ptr();
    drop(third);
    let (fourth, _) = write(&mut builder, &lists, None);
    assert_eq!(fourth.as_ptr(), address);
}

proptest! {
    #[test]
    fn an_arena_has_the_pages_of_its_sequences(
        plans in prop::collection::vec((prop::collection::vec(changes(), 0..4), prop::option::weighted(0.2, 0..6usize), 0..4usize), 1..24)
    ) {
        check(&plans)?;
    }
}
