//! What the pages of a tick cost whom.

use std::collections::BTreeMap;

use crate::ids::{PageId, ProcessId};

/// A context that holds pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resident {
    pub(crate) process: ProcessId,
    /// What it bids, in micro-credits a page.
    pub(crate) bid: u64,
    pub(crate) pages: Vec<PageId>,
}

/// What each process owes for the pages of its contexts, at this price a page. The contexts that share a page pay for
/// it together, each an equal part; where the price cannot be divided, the first pay one micro-credit more. Nobody pays
/// more than a part of its own bid.
pub(crate) fn rents(price: u64, n_pages: u32, residents: &[Resident]) -> BTreeMap<ProcessId, u128> {
    let mut n_left = vec![0u32; n_pages as usize];
    for page in residents.iter().flat_map(|resident| &resident.pages) {
        if let Some(n) = n_left.get_mut(page.0 as usize) {
            *n += 1;
        }
    }
    let n_sharing = n_left.clone();
    let mut owed: BTreeMap<ProcessId, u128> = BTreeMap::new();
    for resident in residents {
        let most = u64::min(price, resident.bid);
        let mut due = 0;
        for page in &resident.pages {
            let page = page.0 as usize;
            if let Some((n, left)) = n_sharing.get(page).zip(n_left.get_mut(page)) {
                *left -= 1;
                // Over all of `n` that pay the same this adds up to just that.
                due += (u128::from(most) + u128::from(*left)) / u128::from(*n);
            }
        }
        *owed.entry(resident.process).or_insert(0) += due;
    }
    owed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident(process: u64, bid: u64, pages: &[u32]) -> Resident {
        Resident {
            process: ProcessId(process),
            bid,
            pages: pages.iter().copied().map(PageId).collect(),
        }
    }

    fn check(price: u64, residents: &[Resident], expected: &[(u64, u128)]) {
        let owed = rents(price, 8, residents);
        let owed: Vec<(u64, u128)> = owed.into_iter().map(|(id, due)| (id.0, due)).collect();
        assert_eq!(owed, expected);
    }

    #[test]
    fn a_page_costs_the_price() {
        let both = [resident(1, 9, &[0, 3]), resident(2, 7, &[5])];
        check(7, &both, &[(1, 14), (2, 7)]);
        check(0, &[resident(1, 9, &[0, 3])], &[(1, 0)]);
    }

    #[test]
    fn nobody_pays_more_than_it_bids() {
        let both = [resident(1, 4, &[0, 3]), resident(2, 0, &[5])];
        check(7, &both, &[(1, 8), (2, 0)]);
    }

    #[test]
    fn those_who_share_a_page_pay_for_it_together() {
        let three = [
            resident(1, 9, &[0, 1]),
            resident(1, 9, &[0, 2]),
            resident(2, 9, &[0]),
        ];
        // 8 for one page: 3 and 3 and 2, the first pay what cannot be divided.
        check(8, &three, &[(1, 22), (2, 2)]);
        check(9, &three, &[(1, 24), (2, 3)]);
    }

    #[test]
    fn a_page_that_is_not_there_costs_nothing() {
        check(7, &[resident(1, 9, &[8, u32::MAX])], &[(1, 0)]);
    }
}
