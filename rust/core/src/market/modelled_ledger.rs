//! The accounts against a model that hands out every micro-credit by itself: whatever is opened, closed, charged and
//! settled, in any order, each account is what the rules say, and none is made or lost.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Ledger;
use crate::ids::ProcessId;

type Outcome = Result<(), TestCaseError>;

/// Numbers of processes.
const MANY: u64 = 8;
/// What a child gets at most where nobody says how much.
const USUAL: u64 = 50;

#[derive(Clone, Debug)]
enum Op {
    Open(u64, u64),
    OpenChild {
        process: u64,
        parent: u64,
        wanted: Option<u64>,
    },
    Close(u64),
    Charge(u64, u64),
    Settle(u64, Vec<(u64, u64)>),
    Rest,
}

fn op() -> impl Strategy<Value = Op> {
    let process = || 0..MANY;
    let amount =
        || prop_oneof![1 => Just(0u64), 6 => 0u64..200, 1 => Just(1_000_000_000_000_000u64)];
    prop_oneof![
        4 => (process(), amount()).prop_map(|(process, endowment)| Op::Open(process, endowment)),
        4 => (process(), process(), prop::option::of(amount()))
            .prop_map(|(process, parent, wanted)| Op::OpenChild { process, parent, wanted }),
        3 => process().prop_map(Op::Close),
        4 => (process(), amount()).prop_map(|(process, price)| Op::Charge(process, price)),
        6 => (0u64..9, prop::collection::vec((process(), amount()), 0..6))
            .prop_map(|(rent, owed)| Op::Settle(rent, owed)),
        1 => Just(Op::Rest),
    ]
}

/// What a process has, in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Naive {
    id: u64,
    parent: Option<u64>,
    endowment: u128,
    balance: u128,
    paid: u128,
    dividends: u128,
    dividend: u128,
}

#[derive(Debug, Default)]
struct Model {
    accounts: Vec<Naive>,
    rent: u64,
}

impl Model {
    fn get(&mut self, id: u64) -> Option<&mut Naive> {
        self.accounts.iter_mut().find(|account| account.id == id)
    }

    fn open(&mut self, id: u64, endowment: u128, parent: Option<u64>) {
        self.accounts.push(Naive {
            id,
            parent,
            endowment,
            balance: endowment,
            ..Naive::default()
        });
        self.accounts.sort_by_key(|account| account.id);
    }

    fn open_child(&mut self, id: u64, parent: u64, wanted: Option<u64>) {
        let Some(above) = self.get(parent) else {
            return self.open(id, 0, None);
        };
        let half = u128::from(USUAL).min(above.balance / 2);
        let wanted = wanted.map_or(half, u128::from);
        let given = [wanted, above.balance, above.endowment].into_iter().min();
        let given = given.unwrap_or(0);
        above.balance -= given;
        above.endowment -= given;
        self.open(id, given, Some(parent));
    }

    fn close(&mut self, id: u64) {
        let Some(index) = self.accounts.iter().position(|account| account.id == id) else {
            return;
        };
        let closed = self.accounts.remove(index);
        for account in &mut self.accounts {
            if account.parent == Some(id) {
                account.parent = closed.parent;
            }
        }
        if let Some(parent) = closed.parent.and_then(|id| self.get(id)) {
            parent.endowment += closed.endowment;
            parent.balance += closed.balance;
            parent.paid += closed.paid;
            parent.dividends += closed.dividends;
        }
    }

    fn pay(&mut self, id: u64, due: u128) -> u128 {
        let Some(account) = self.get(id) else {
            return 0;
        };
        let paid = account.balance.min(due);
        account.balance -= paid;
        account.paid += paid;
        paid
    }

    fn settle(&mut self, rent: u64, owed: &BTreeMap<ProcessId, u128>) {
        self.rent = rent;
        let endowed: u128 = self.accounts.iter().map(|account| account.endowment).sum();
        if endowed == 0 {
            return;
        }
        let mut left: u128 = owed.iter().map(|(id, due)| self.pay(id.0, *due)).sum();
        let revenue = left;
        let quota = |account: &Naive| revenue * account.endowment;
        for account in &mut self.accounts {
            account.dividend = quota(account) / endowed;
            left -= account.dividend;
        }
        let mut late: Vec<u64> = Vec::new();
        while left > 0 {
            // Whoever is the furthest below its quota, and the first of those who are as far.
            let waits = self.accounts.iter().filter(|it| !late.contains(&it.id));
            let next = waits.max_by_key(|it| (quota(it) % endowed, std::cmp::Reverse(it.id)));
            let next = next.map(|it| it.id);
            let next = next.expect("remainders add up to what is left");
            late.push(next);
            if let Some(account) = self.get(next) {
                account.dividend += 1;
            }
            left -= 1;
        }
        for account in &mut self.accounts {
            account.balance += account.dividend;
            account.dividends += account.dividend;
        }
    }
}

fn run(ops: Vec<Op>) -> Outcome {
    let (mut ledger, mut model) = (Ledger::default(), Model::default());
    for op in ops {
        match op {
            Op::Open(id, endowment) => {
                ledger.open(ProcessId(id), endowment);
                if model.get(id).is_none() {
                    model.open(id, u128::from(endowment), None);
                }
            }
            Op::OpenChild {
                process,
                parent,
                wanted,
            } => {
                ledger.open_child(ProcessId(process), ProcessId(parent), wanted, USUAL);
                if model.get(process).is_none() {
                    model.open_child(process, parent, wanted);
                }
            }
            Op::Close(id) => {
                ledger.close(ProcessId(id));
                model.close(id);
            }
            Op::Charge(id, price) => {
                ledger.charge(ProcessId(id), u128::from(price));
                model.pay(id, u128::from(price));
            }
            Op::Settle(rent, owed) => {
                let owed = owed.into_iter();
                let owed = owed.map(|(id, due)| (ProcessId(id), u128::from(due)));
                let owed: BTreeMap<ProcessId, u128> = owed.collect();
                ledger.settle(rent, &owed);
                model.settle(rent, &owed);
            }
            Op::Rest => {
                ledger.rest();
                model.rent = 0;
            }
        }
        ledger.check().map_err(TestCaseError::fail)?;
        prop_assert_eq!(ledger.rent(), model.rent);
        for id in 0..MANY {
            let found = ledger.account(ProcessId(id)).map(|account| Naive {
                id,
                parent: account.parent.map(|parent| parent.0),
                endowment: account.endowment,
                balance: account.balance,
                paid: account.paid,
                dividends: account.dividends,
                dividend: account.dividend,
            });
            prop_assert_eq!(found, model.get(id).copied());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_account_is_what_the_rules_say(ops in prop::collection::vec(op(), 1..120)) {
        run(ops)?;
    }
}

#[test]
fn rent_returns_by_endowment_and_what_cannot_be_divided_by_remainder_and_number() {
    let mut ledger = Ledger::default();
    for (id, endowment) in [(1, 100), (2, 100), (3, 100), (4, 50)] {
        ledger.open(ProcessId(id), endowment);
    }
    // 8 of 350: 2 2/7 thrice, and 1 1/7; one is left, and the first of three gets it.
    ledger.settle(4, &BTreeMap::from([(ProcessId(4), 8)]));
    let share = |ledger: &Ledger, id| Some(ledger.account(ProcessId(id))?.dividend);
    let shares = |ledger: &Ledger| [1, 2, 3, 4].map(|id| share(ledger, id));
    assert_eq!(shares(&ledger), [Some(3), Some(2), Some(2), Some(1)]);
    let last = ledger.account(ProcessId(4)).unwrap();
    assert_eq!((last.balance, last.paid, last.dividends), (43, 8, 1));
    assert_eq!((ledger.rent(), ledger.rented()), (4, 8));
    assert_eq!(ledger.n_auctions(), 1);
    ledger.rest();
    assert_eq!(ledger.rent(), 0);
    // The last share stays.
    assert_eq!(shares(&ledger)[0], Some(3));
    ledger.check().unwrap();
}

#[test]
fn the_largest_endowments_do_not_overflow() {
    let most = 1_000_000_000_000_000;
    let mut ledger = Ledger::default();
    for id in 1..=4 {
        ledger.open(ProcessId(id), u64::MAX);
    }
    let owed = [1, 2, 3].map(|id| (ProcessId(id), u128::MAX));
    ledger.settle(u64::MAX, &BTreeMap::from(owed));
    let balance = |id| Some(ledger.account(ProcessId(id))?.balance);
    // Three pay all that they have, and each of four gets a quarter of it.
    let back = most * 3 / 4;
    let balances = [1, 2, 3, 4].map(balance);
    assert_eq!(
        balances,
        [Some(back), Some(back), Some(back), Some(most + back)]
    );
    ledger.check().unwrap();
}

#[test]
fn the_ruined_recover_by_what_others_pay() {
    let mut ledger = Ledger::default();
    ledger.open(ProcessId(1), 100);
    ledger.open(ProcessId(2), 300);
    ledger.charge(ProcessId(1), 1000);
    assert_eq!(ledger.account(ProcessId(1)).unwrap().balance, 0);
    let owed = [1, 2].map(|id| (ProcessId(id), 40));
    ledger.settle(10, &BTreeMap::from(owed));
    assert_eq!(ledger.account(ProcessId(1)).unwrap().balance, 10);
    assert_eq!(ledger.account(ProcessId(2)).unwrap().balance, 290);
    ledger.check().unwrap();
}

#[test]
fn an_endowment_comes_from_the_parent_and_returns() {
    let mut ledger = Ledger::default();
    let [parent, child, grandchild] = [1, 2, 3].map(ProcessId);
    ledger.open(parent, 100);
    ledger.open_child(child, parent, None, 1000);
    ledger.open_child(grandchild, child, Some(1_000_000), 1000);
    let balances = |ledger: &Ledger| {
        [parent, child, grandchild].map(|id| ledger.account(id).map(|account| account.balance))
    };
    assert_eq!(balances(&ledger), [Some(50), Some(0), Some(50)]);
    ledger.charge(grandchild, 20);
    // Its own children are the parent's from then on.
    ledger.close(child);
    ledger.close(grandchild);
    assert_eq!(balances(&ledger), [Some(80), None, None]);
    let account = ledger.account(parent).unwrap();
    assert_eq!((account.endowment, account.paid), (100, 20));
    ledger.check().unwrap();
    ledger.close(parent);
    ledger.check().unwrap();
}
