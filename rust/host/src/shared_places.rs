//! How many of something there are at once: of each who has some, and of all. Whoever finds no place is refused at
//! once.
//!
//! Where all together have a bound, they share it:
//!
//! | part of the places | who gets from it |
//! |---|---|
//! | a half, which is reserved | each user up to the floor, a 512th of the whole, and at least one |
//! | the other half | users above their floor, each up to a half of what the others leave of it |
//!
//! So the share of a user shrinks as others come, and however many take all that they may, whoever comes next finds a
//! place: the floors of as many users as processes live where nothing else is set fit into the reserved half.
//!
//! Where there is one user alone, nothing is kept for others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::sync::lock;

/// One part in this many of the whole is the floor of a user. By default that is 2 of 1,024, for which a half has room
/// with 256 users, as many as processes live.
const FLOOR_PART: usize = 512;

/// The places for something, by whoever has them. As long as one has some, there is an `X` for all of theirs.
#[derive(Debug)]
pub struct SharedPlaces<X = ()> {
    most_of_one: usize,
    /// None: each has their own, and all together any number.
    most: Option<usize>,
    /// All together share the whole: something is kept for those who come next.
    is_split: bool,
    state: Mutex<State<X>>,
}

#[derive(Debug)]
struct State<X> {
    n: usize,
    /// What users have above their floors.
    n_above: usize,
    /// Those who have some.
    of: HashMap<Arc<str>, OfOne<X>>,
}

#[derive(Debug)]
struct OfOne<X> {
    n: usize,
    extra: X,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub struct SharedPlace<X = ()> {
    places: Arc<SharedPlaces<X>>,
    whose: Arc<str>,
    extra: X,
}

/// Why there is no place: how many there are, of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The user has as many as one may have.
    OfOne {
        /// Those of the user.
        n: usize,
        /// The most of one.
        most: usize,
    },
    /// All are taken.
    OfAll {
        /// Those of all.
        n: usize,
        /// The most of all.
        most: usize,
    },
    /// The user has as many as the others leave to one.
    Share {
        /// Those of the user.
        n: usize,
        /// What the others leave.
        share: usize,
        /// The most of all.
        most: usize,
    },
}

impl Full {
    /// How many there are.
    pub fn n(self) -> usize {
        match self {
            Self::OfOne { n, .. } | Self::OfAll { n, .. } | Self::Share { n, .. } => n,
        }
    }

    /// Whether it is all that have them, and not the user.
    pub fn is_of_all(self) -> bool {
        matches!(self, Self::OfAll { .. })
    }

    /// The bound that was met, by the names of the settings for one and for all.
    pub fn bound(self, of_one: &str, of_all: &str) -> String {
        match self {
            Self::OfOne { most, .. } => format!("{of_one} = {most}"),
            Self::OfAll { most, .. } => format!("{of_all} = {most}"),
            Self::Share { share, most, .. } => {
                format!("what others leave to one user (of {of_all} = {most}) = {share}")
            }
        }
    }
}

impl<X: Clone + Default> SharedPlaces<X> {
    /// `most_of_one` for each, however many there are.
    pub fn of_each(most_of_one: usize) -> Arc<Self> {
        Self::new(most_of_one, None, false)
    }

    /// `most` in all, of which each has a share, and `most_of_one` for each.
    pub fn of_all(most_of_one: usize, most: usize) -> Arc<Self> {
        Self::new(most_of_one, Some(most), true)
    }

    /// `most` in all for whoever comes first, and `most_of_one` for each: where there is one user alone.
    pub fn of_whole(most_of_one: usize, most: usize) -> Arc<Self> {
        Self::new(most_of_one, Some(most), false)
    }

    fn new(most_of_one: usize, most: Option<usize>, is_split: bool) -> Arc<Self> {
        Arc::new(Self {
            most_of_one,
            most,
            is_split,
            state: Mutex::new(State {
                n: 0,
                n_above: 0,
                of: HashMap::new(),
            }),
        })
    }

    /// A place for `whose`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn take(self: &Arc<Self>, whose: &str) -> Result<SharedPlace<X>, Full> {
        let mut state = lock(&self.state);
        let n = state.of.get(whose).map_or(0, |of_one| of_one.n);
        self.check(&state, n)?;
        let whose: Arc<str> = whose.into();
        state.n += 1;
        state.n_above += usize::from(n >= self.floor());
        let of_one = state.of.entry(whose.clone()).or_insert_with(|| OfOne {
            n: 0,
            extra: X::default(),
        });
        of_one.n += 1;
        Ok(SharedPlace {
            extra: of_one.extra.clone(),
            places: self.clone(),
            whose,
        })
    }
}

impl<X> SharedPlaces<X> {
    /// Looks whether one who has `n` may have one more.
    fn check(&self, state: &State<X>, n: usize) -> Result<(), Full> {
        if n >= self.most_of_one {
            let most = self.most_of_one;
            return Err(Full::OfOne { n, most });
        }
        let Some(most) = self.most else {
            return Ok(());
        };
        if state.n >= most {
            return Err(Full::OfAll { n: state.n, most });
        }
        if !self.is_split {
            return Ok(());
        }
        let above_of_others = state.n_above - n.saturating_sub(self.floor());
        let shared = most - most / 2;
        let share = self.floor() + shared.saturating_sub(above_of_others).div_ceil(2);
        if n >= share {
            return Err(Full::Share { n, share, most });
        }
        Ok(())
    }

    /// What each user gets, whatever the others have.
    fn floor(&self) -> usize {
        self.most.map_or(0, |most| (most / FLOOR_PART).max(1))
    }

    /// Those that are taken.
    pub fn n_taken(&self) -> usize {
        lock(&self.state).n
    }
}

impl<X> SharedPlace<X> {
    /// What there is for all places of whoever has this one.
    pub fn extra(&self) -> &X {
        &self.extra
    }
}

impl<X> Drop for SharedPlace<X> {
    fn drop(&mut self) {
        let floor = self.places.floor();
        let mut state = lock(&self.places.state);
        let Some(of_one) = state.of.get_mut(&self.whose) else {
            debug_assert!(false, "who has a place is known");
            tracing::error!("a place was given back that nobody had");
            return;
        };
        let is_above = of_one.n > floor;
        of_one.n -= 1;
        if of_one.n == 0 {
            state.of.remove(&self.whose);
        }
        state.n -= 1;
        state.n_above -= usize::from(is_above);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// All that a user gets.
    fn all_of(places: &Arc<SharedPlaces>, user: &str) -> Vec<SharedPlace> {
        std::iter::from_fn(|| places.take(user).ok()).collect()
    }

    #[test]
    fn each_has_places_of_their_own() {
        let places: Arc<SharedPlaces> = SharedPlaces::of_each(2);
        let mut ada = all_of(&places, "ada");
        assert_eq!(ada.len(), 2);
        let refused = places.take("ada").unwrap_err();
        assert_eq!(refused, Full::OfOne { n: 2, most: 2 });
        let bob = places.take("bob").unwrap();
        ada.pop();
        drop(places.take("ada").unwrap());
        drop((ada, bob));
        let state = lock(&places.state);
        assert!(state.of.is_empty() && (state.n, state.n_above) == (0, 0));
    }

    #[test]
    fn a_user_has_a_part_and_all_have_the_whole() {
        let places = SharedPlaces::of_all(2, 3);
        let ada = all_of(&places, "ada");
        assert_eq!(ada.len(), 2);
        let refused = places.take("ada").unwrap_err();
        assert_eq!(refused.bound("one", "all"), "one = 2");
        let bob = places.take("bob").unwrap();
        let refused = places.take("bob").unwrap_err();
        assert_eq!(refused.bound("one", "all"), "all = 3");
        assert_eq!((refused.n(), refused.is_of_all()), (3, true));
        drop((ada, bob));
        assert_eq!(places.n_taken(), 0);
    }

    /// Eight names of 128 were all places of the defaults.
    #[test]
    fn names_that_take_all_they_may_leave_a_place_to_each_newcomer() {
        let places = SharedPlaces::of_all(128, 1024);
        let greedy: Vec<_> = (0..16)
            .map(|n| all_of(&places, &format!("greedy {n}")))
            .collect();
        let first: Vec<_> = greedy.iter().map(Vec::len).take(6).collect();
        assert_eq!(first, [128, 128, 128, 69, 36, 19]);
        let refused = places.take("greedy 15").unwrap_err();
        let bound = refused.bound("one", "all");
        assert!(
            bound.starts_with("what others leave to one user (of all = 1024) = "),
            "{bound}"
        );
        // As many names as processes that live by default: each has the floor.
        let others: Vec<_> = (16..256)
            .map(|n| all_of(&places, &format!("other {n}")))
            .collect();
        assert!(others.iter().all(|of_user| of_user.len() >= 2));
        drop((greedy, others));
        assert_eq!(all_of(&places, "late").len(), 128);
        let state = lock(&places.state);
        assert_eq!((state.n, state.n_above, state.of.len()), (0, 0, 0));
    }

    #[test]
    fn whoever_is_alone_has_the_whole() {
        let most = 1024;
        let places = SharedPlaces::of_whole(2048, most);
        let all = all_of(&places, "ada");
        assert_eq!(all.len(), most);
        let refused = places.take("ada").unwrap_err();
        assert_eq!(refused, Full::OfAll { n: most, most });
        drop(all);
        let state = lock(&places.state);
        assert_eq!((state.n, state.n_above, state.of.len()), (0, 0, 0));
    }

    #[test]
    fn one_place_is_somebodys() {
        let places = SharedPlaces::of_all(8, 1);
        let only = places.take("ada").unwrap();
        assert!(places.take("bob").is_err());
        drop::<SharedPlace>(only);
        assert!(places.take("bob").is_ok());
    }

    #[test]
    fn what_belongs_to_all_places_of_one_is_there_as_long_as_one_is() {
        let places: Arc<SharedPlaces<Arc<()>>> = SharedPlaces::of_each(8);
        let [first, second] = [places.take("ada").unwrap(), places.take("ada").unwrap()];
        let other = places.take("bob").unwrap();
        assert!(Arc::ptr_eq(first.extra(), second.extra()));
        assert!(!Arc::ptr_eq(first.extra(), other.extra()));
        let kept = first.extra().clone();
        drop((first, second));
        assert!(!Arc::ptr_eq(&kept, places.take("ada").unwrap().extra()));
    }

    proptest! {
        /// The sums are those of the places that are held, nothing goes beyond its bound, and the floor is everybody's.
        #[test]
        fn sums_are_those_of_the_places(steps in prop::collection::vec((0..8_u8, any::<bool>()), 1..400)) {
            let places: Arc<SharedPlaces> = SharedPlaces::of_all(16, 64);
            let mut held: BTreeMap<u8, Vec<SharedPlace>> = BTreeMap::new();
            for (user, sends) in steps {
                let of_user = held.entry(user).or_default();
                match places.take(&user.to_string()) {
                    Ok(place) if sends => of_user.push(place),
                    Ok(_) => drop(of_user.pop()),
                    Err(_) => {
                        prop_assert!(!of_user.is_empty(), "the floor is everybody's");
                        of_user.pop();
                    }
                }
                let in_all: usize = held.values().map(Vec::len).sum();
                let above: usize = held.values().map(|of_user| of_user.len().saturating_sub(1)).sum();
                let state = lock(&places.state);
                prop_assert_eq!((state.n, state.n_above), (in_all, above));
                prop_assert!(above <= 32 && held.values().all(|of_user| of_user.len() <= 16));
            }
        }
    }
}
