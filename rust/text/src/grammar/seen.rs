//! What was found out about the texts of a grammar, by the tokens before: which may follow, and which must.
//!
//! Behind the same tokens, walked in the same way, the same may follow, so that whatever was found once is never looked
//! for again. Places are the nodes of a tree: a token leads from one to the next. Text that must follow is found where
//! it begins, so that it matters too whether a token was one of those: the way to a place has both.
//!
//! What is kept is bounded; where it is too much, all of it is forgotten, and a text under way goes on without.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::engine::Growth;
use super::token_mask::TokenMask;

/// So many masks of a vocabulary have room.
const N_MASKS: usize = 64;
/// The least and the most bytes for one grammar.
const MIN_BYTES: usize = 128 << 10;
const MAX_BYTES: usize = 1 << 20;
/// Bytes that a place takes, with the way to it: what was found there, and a part of two tables.
const PLACE_BYTES: usize = 160;
/// The most tokens of a mask that is kept as a list of them.
const MAX_LISTED: usize = 256;

/// A place in the texts of a grammar. After everything was forgotten it is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextNode {
    /// How often everything had been forgotten when it was made.
    age: u32,
    index: u32,
}

/// What may follow at a place.
#[derive(Debug, Clone)]
enum Allowed {
    /// These tokens.
    Few(Arc<[u32]>),
    Many(Arc<TokenMask>),
}

/// What was found at a place, each with what looking for it added to a state.
#[derive(Debug, Default)]
struct Found {
    forced: Option<(Arc<[u32]>, Growth)>,
    allowed: Option<(Allowed, Growth)>,
}

/// What was found out about the texts of one grammar.
#[derive(Debug)]
pub(super) struct Seen {
    tree: Mutex<Tree>,
    max_bytes: usize,
    n_tokens: u32,
}

#[derive(Debug, Default)]
struct Tree {
    age: u32,
    places: Vec<Found>,
    /// Where a token leads; with whether it was one of those that had to follow, and more of them are to come.
    ways: HashMap<(u32, u32, bool), u32>,
    /// The beginnings of texts, by the tokens that end them.
    beginnings: HashMap<Arc<[u32]>, u32>,
    /// The masks of many tokens that are kept, each once, by their fingerprints.
    masks: HashMap<u64, Arc<TokenMask>>,
    n_bytes: usize,
}

impl Tree {
    /// Takes room for what is to be kept; where there is none left, everything is forgotten before. False: there can be
    /// none.
    fn make_room(&mut self, n_bytes: usize, max_bytes: usize) -> bool {
        if self.n_bytes + n_bytes > max_bytes {
            *self = Self {
                age: self.age.wrapping_add(1),
                ..Self::default()
            };
            return false;
        }
        self.n_bytes += n_bytes;
        true
    }

    fn add(&mut self) -> u32 {
        self.places.push(Found::default());
        u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
    }

    fn found(&mut self, place: TextNode) -> Option<&mut Found> {
        let is_known = place.age == self.age;
        is_known
            .then(|| self.places.get_mut(place.index as usize))
            .flatten()
    }
}

impl Seen {
    /// Nothing yet, of a vocabulary of so many tokens.
    pub(super) fn new(n_tokens: u32) -> Self {
        let mask_bytes = (n_tokens as usize).div_ceil(8);
        Self {
            tree: Mutex::default(),
            max_bytes: (N_MASKS * mask_bytes).clamp(MIN_BYTES, MAX_BYTES),
            n_tokens,
        }
    }

    /// The most that it takes, in bytes.
    pub(super) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// The beginning of a text that one of the `stop` tokens may end.
    pub(super) fn beginning(&self, stop: &Arc<[u32]>) -> Option<TextNode> {
        self.with(|tree| {
            if let Some(&index) = tree.beginnings.get(stop) {
                return Some(TextNode {
                    age: tree.age,
                    index,
                });
            }
            let n_bytes = PLACE_BYTES + size_of_val(&**stop);
            if !tree.make_room(n_bytes, self.max_bytes) {
                return None;
            }
            let index = tree.add();
            tree.beginnings.insert(stop.clone(), index);
            Some(TextNode {
                age: tree.age,
                index,
            })
        })
    }

    /// The place behind a token. `is_amid`: it was one of those that had to follow, and more of them are to come.
    pub(super) fn next(&self, place: TextNode, token: u32, is_amid: bool) -> Option<TextNode> {
        self.with(|tree| {
            tree.found(place)?;
            let way = (place.index, token, is_amid);
            let known = tree.ways.get(&way).copied();
            if known.is_none() && !tree.make_room(PLACE_BYTES, self.max_bytes) {
                return None;
            }
            let index = known.unwrap_or_else(|| {
                let index = tree.add();
                tree.ways.insert(way, index);
                index
            });
            Some(TextNode {
                age: tree.age,
                index,
            })
        })
    }

    /// The tokens that must follow, where that was found out, and what looking for them added.
    pub(super) fn forced(&self, place: TextNode) -> Option<(Arc<[u32]>, Growth)> {
        self.with(|tree| tree.found(place)?.forced.clone())
    }

    /// Keeps which tokens must follow.
    pub(super) fn keep_forced(&self, place: TextNode, forced: Arc<[u32]>, growth: Growth) {
        self.with(|tree| {
            let is_new = tree.found(place).is_some_and(|it| it.forced.is_none());
            if is_new
                && tree.make_room(size_of_val(&*forced), self.max_bytes)
                && let Some(found) = tree.found(place)
            {
                found.forced = Some((forced, growth));
            }
        });
    }

    /// The tokens that may follow, where that was found out, and what looking for them added.
    pub(super) fn allowed(&self, place: TextNode) -> Option<(Arc<TokenMask>, Growth)> {
        let (allowed, growth) = self.with(|tree| tree.found(place)?.allowed.clone())?;
        let mask = match allowed {
            Allowed::Many(mask) => mask,
            Allowed::Few(tokens) => {
                let mut mask = TokenMask::new(Vec::new(), self.n_tokens);
                for &token in &*tokens {
                    mask.allow(token);
                }
                Arc::new(mask)
            }
        };
        Some((mask, growth))
    }

    /// Keeps which tokens may follow.
    pub(super) fn keep_allowed(&self, place: TextNode, mask: &Arc<TokenMask>, growth: Growth) {
        let listed = mask.listed(MAX_LISTED);
        let fingerprint = listed.is_none().then(|| mask.fingerprint());
        self.with(|tree| {
            if tree.found(place).is_none_or(|it| it.allowed.is_some()) {
                return;
            }
            let known = fingerprint.and_then(|it| tree.masks.get(&it));
            let allowed = match (listed, known.filter(|known| *known == mask)) {
                (None, Some(known)) => Allowed::Many(known.clone()),
                (None, None) => {
                    if !tree.make_room(mask.max_bytes(), self.max_bytes) {
                        return;
                    }
                    // Of two with the same fingerprint the second is kept at its place alone.
                    let fingerprint = fingerprint.unwrap_or_default();
                    tree.masks
                        .entry(fingerprint)
                        .or_insert_with(|| mask.clone());
                    Allowed::Many(mask.clone())
                }
                (Some(tokens), _) => {
                    if !tree.make_room(size_of_val(&*tokens), self.max_bytes) {
                        return;
                    }
                    Allowed::Few(tokens.into())
                }
            };
            if let Some(found) = tree.found(place) {
                found.allowed = Some((allowed, growth));
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut Tree) -> T) -> T {
        work(&mut self.tree.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N_TOKENS: u32 = 4096;

    fn mask(tokens: impl IntoIterator<Item = u32>) -> Arc<TokenMask> {
        let mut mask = TokenMask::new(Vec::new(), N_TOKENS);
        for token in tokens {
            mask.allow(token);
        }
        Arc::new(mask)
    }

    #[test]
    fn what_was_found_is_known_behind_the_same_tokens_alone() {
        let seen = Seen::new(N_TOKENS);
        let stop: Arc<[u32]> = vec![7].into();
        let start = seen.beginning(&stop).unwrap();
        assert_eq!(seen.beginning(&stop), Some(start));
        assert_ne!(seen.beginning(&vec![8].into()), Some(start));
        let behind = seen.next(start, 5, false).unwrap();
        let growth = Growth::default();
        let others = [(5, true), (6, false)].map(|(token, amid)| seen.next(start, token, amid));
        for few in [mask([3]), mask(0..200), mask((0..2000).map(|it| 2 * it))] {
            let place = seen.next(behind, few.words()[0], false).unwrap();
            assert_eq!(seen.allowed(place), None);
            seen.keep_allowed(place, &few, growth);
            assert_eq!(seen.allowed(place), Some((few, growth)));
        }
        seen.keep_forced(behind, vec![1, 2].into(), growth);
        assert_eq!(seen.forced(behind), Some((vec![1, 2].into(), growth)));
        for other in others {
            assert_eq!(
                (seen.forced(other.unwrap()), seen.allowed(other.unwrap())),
                (None, None)
            );
        }
    }

    #[test]
    fn where_it_is_too_much_all_is_forgotten() {
        let seen = Seen::new(N_TOKENS);
        let start = seen.beginning(&vec![].into()).unwrap();
        let mut place = start;
        let mut n_places = 0;
        while let Some(next) = seen.next(place, 1, false) {
            seen.keep_allowed(
                next,
                &mask((n_places..n_places + 1000).map(|it| it * 3 % N_TOKENS)),
                Growth::default(),
            );
            assert!(seen.with(|tree| tree.n_bytes) <= seen.max_bytes());
            (place, n_places) = (next, n_places + 1);
        }
        assert!(n_places > 50, "{n_places}");
        assert_eq!(
            (seen.next(start, 1, false), seen.allowed(place)),
            (None, None)
        );
        assert_ne!(seen.beginning(&vec![].into()), Some(start));
    }
}
