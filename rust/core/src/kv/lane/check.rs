//! What holds of a lane in each of its states, verified.

use super::super::store::PageStore;
use super::{Lane, LaneState};

impl Lane {
    /// Verifies that it is as its state says.
    ///
    /// # Errors
    /// A sentence that names what is not.
    pub(crate) fn check(&self, store: &PageStore) -> Result<(), String> {
        let state = self.state();
        let (end, page_size) = (store.end(self.pin), store.page_size());
        let has_partial = self.tail.has_partial();
        let last = end + if has_partial { page_size } else { 0 };
        let n_full = self.pages.len();
        let parked_behind = self
            .tail
            .parked()
            .is_none_or(|parked| parked.n_ready > store.end(self.reach));
        let holds = [
            (
                n_full * page_size == end,
                "has other full pages than those up to its pin",
            ),
            (
                (end..=last).contains(&self.n_ready),
                "has tokens ready outside of its pages",
            ),
            (
                store.ancestor(self.reach, end) == self.pin,
                "is pinned elsewhere than it reaches",
            ),
            (
                self.pages.is_sound(),
                "has another number of full pages than it counts, or a wrong name for them",
            ),
            (parked_behind, "has parked no token"),
            (
                self.path.is_empty() || self.pin != self.reach,
                "has a path to where it is",
            ),
            (
                state != LaneState::Away || self.n_ready == 0,
                "is away with tokens ready",
            ),
            (
                state != LaneState::Torn || !has_partial,
                "is torn and has a partial page",
            ),
            (
                state == LaneState::Whole || !self.tail.is_shared(),
                "writes on a page that others see, of what it has not whole",
            ),
        ];
        match holds.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(format!("a lane that is {state:?} {what}: {self:?}")),
            None => Ok(()),
        }
    }
}
