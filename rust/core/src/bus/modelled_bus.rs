//! The bus against plain lists: each message, each pull and each subscription is an entry with a state, and what
//! follows from the rules is looked for among all of them after each operation.

use proptest::prelude::*;

use super::*;

type Outcome = std::result::Result<(), TestCaseError>;

const TOPICS: [&str; 3] = ["a", "b", "c"];

/// What happens on a bus. Numbers choose among what is there, and wrap around.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Push { topic: usize, n_bytes: usize },
    Withdraw(usize),
    Pull(usize),
    Take(usize),
    GiveUp(usize),
    Broadcast { topic: usize, n_bytes: usize },
    Subscribe(usize),
    Next(usize),
    Get(usize),
    Unsubscribe(usize),
    Forget(usize),
}

pub(crate) fn limits() -> impl Strategy<Value = BusLimits> {
    let held = || (1usize..5, 1usize..40);
    (held(), held(), 1usize..12, 1usize..4).prop_map(
        |(queue, subscription, n_held, subscriptions)| BusLimits {
            message_bytes: 15,
            queue_messages: queue.0,
            queue_bytes: queue.1,
            user_bytes: n_held * (BESIDE_BYTES + 8),
            subscription_messages: subscription.0,
            subscription_bytes: subscription.1,
            topics: 2,
            subscriptions,
            names: BusSettingNames::PLAIN,
        },
    )
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let which = || 0usize..16;
    prop_oneof![
        8 => (0usize..3, 0usize..18).prop_map(|(topic, n_bytes)| Op::Push { topic, n_bytes }),
        2 => which().prop_map(Op::Withdraw),
        6 => (0usize..3).prop_map(Op::Pull),
        6 => which().prop_map(Op::Take),
        3 => which().prop_map(Op::GiveUp),
        6 => (0usize..3, 0usize..18).prop_map(|(topic, n_bytes)| Op::Broadcast { topic, n_bytes }),
        2 => (0usize..3).prop_map(Op::Subscribe),
        4 => which().prop_map(Op::Next),
        2 => which().prop_map(Op::Get),
        1 => which().prop_map(Op::Unsubscribe),
        1 => which().prop_map(Op::Forget),
    ]
}

/// Does the operations on a bus and on the lists, and compares what they give.
pub(crate) fn run(limits: BusLimits, ops: Vec<Op>) -> Outcome {
    let mut pair = Pair {
        bus: Bus::new(limits),
        lists: Lists::new(limits),
        pushes: Vec::new(),
        pulls: Vec::new(),
        subscriptions: Vec::new(),
    };
    for op in ops {
        pair.apply(&op)?;
        prop_assert_eq!(pair.bus.stats(), pair.lists.stats());
        prop_assert_eq!(pair.bus.is_idle(), pair.lists.is_idle());
    }
    Ok(())
}

/// Who may hold a message back, by number.
type Number = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PushState {
    Waiting,
    Queued,
    Taken,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PullState {
    Waiting,
    Promised,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Topic(usize),
    Subscription(Number),
}

struct PushEntry {
    topic: usize,
    n_bytes: usize,
    state: PushState,
}

struct PullEntry {
    of: Of,
    state: PullState,
    is_settled: bool,
}

struct SubscriptionEntry {
    topic: usize,
    is_open: bool,
    is_forgotten: bool,
    copies: Vec<(Number, usize)>,
    n_lagged: u64,
}

/// Everything that ever was, in the order in which it came.
struct Lists {
    limits: BusLimits,
    pushes: Vec<PushEntry>,
    pulls: Vec<PullEntry>,
    subscriptions: Vec<SubscriptionEntry>,
    n_broadcasts: usize,
    counted: BusStats,
}

/// A bell: whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bell {
    Push(Number),
    Pull(Number),
}

impl Lists {
    fn new(limits: BusLimits) -> Self {
        Self {
            limits,
            pushes: Vec::new(),
            pulls: Vec::new(),
            subscriptions: Vec::new(),
            n_broadcasts: 0,
            counted: BusStats::default(),
        }
    }

    fn numbers_of_pushes(&self, topic: usize, state: PushState) -> Vec<Number> {
        let all = self.pushes.iter().enumerate();
        let some = all.filter(|(_, push)| push.topic == topic && push.state == state);
        some.map(|(number, _)| number).collect()
    }

    fn numbers_of_pulls(&self, of: Of, state: PullState) -> Vec<Number> {
        let all = self.pulls.iter().enumerate();
        let some = all.filter(|(_, pull)| pull.of == of && pull.state == state && !pull.is_settled);
        some.map(|(number, _)| number).collect()
    }

    fn open_subscriptions(&self, topic: usize) -> Vec<Number> {
        let all = self.subscriptions.iter().enumerate();
        let some = all.filter(|(_, it)| it.topic == topic && it.is_open);
        some.map(|(number, _)| number).collect()
    }

    fn is_in_use(&self, topic: usize) -> bool {
        let waits = [PushState::Waiting, PushState::Queued];
        let asks = [PullState::Waiting, PullState::Promised];
        waits
            .iter()
            .any(|state| !self.numbers_of_pushes(topic, *state).is_empty())
            || asks
                .iter()
                .any(|state| !self.numbers_of_pulls(Of::Topic(topic), *state).is_empty())
            || !self.open_subscriptions(topic).is_empty()
    }

    fn n_topics(&self) -> usize {
        (0..TOPICS.len())
            .filter(|topic| self.is_in_use(*topic))
            .count()
    }

    fn is_idle(&self) -> bool {
        self.n_topics() == 0 && self.subscriptions.iter().all(|it| it.is_forgotten)
    }

    /// What messages hold that were pushed and that nobody has taken.
    fn held_bytes(&self) -> usize {
        let waits = [PushState::Waiting, PushState::Queued];
        let held = self
            .pushes
            .iter()
            .filter(|push| waits.contains(&push.state));
        held.map(|push| push.n_bytes + BESIDE_BYTES).sum()
    }

    /// Whether something of a topic may be made.
    fn has_place(&self, topic: usize) -> bool {
        self.is_in_use(topic) || self.n_topics() < self.limits.topics
    }

    fn is_full(&self, topic: usize) -> bool {
        let queued = self.numbers_of_pushes(topic, PushState::Queued);
        let n_bytes: usize = queued
            .iter()
            .map(|number| self.pushes[*number].n_bytes)
            .sum();
        queued.len() >= self.limits.queue_messages || n_bytes >= self.limits.queue_bytes
    }

    /// Everything that follows by itself; gives the bells that ring.
    fn settle(&mut self) -> Vec<Bell> {
        let mut rung = Vec::new();
        for topic in 0..TOPICS.len() {
            while !self.is_full(topic)
                && let Some(&first) = self.numbers_of_pushes(topic, PushState::Waiting).first()
            {
                self.pushes[first].state = PushState::Queued;
                self.counted.n_pushed += 1;
                rung.push(Bell::Push(first));
            }
            let n_there = self.numbers_of_pushes(topic, PushState::Queued).len();
            self.promise(Of::Topic(topic), n_there, &mut rung);
        }
        for number in 0..self.subscriptions.len() {
            let n_there = self.subscriptions[number].copies.len();
            self.promise(Of::Subscription(number), n_there, &mut rung);
        }
        rung.sort_unstable();
        rung
    }

    fn promise(&mut self, of: Of, n_there: usize, rung: &mut Vec<Bell>) {
        while n_there > self.numbers_of_pulls(of, PullState::Promised).len()
            && let Some(&first) = self.numbers_of_pulls(of, PullState::Waiting).first()
        {
            self.pulls[first].state = PullState::Promised;
            rung.push(Bell::Pull(first));
        }
    }

    /// The copies of a subscription that may not be dropped.
    fn n_kept(&self, subscription: Number) -> usize {
        let of = Of::Subscription(subscription);
        self.numbers_of_pulls(of, PullState::Promised).len().max(1)
    }

    fn stats(&self) -> BusStats {
        let mut stats = self.counted;
        stats.n_topics = self.n_topics() as u64;
        for topic in 0..TOPICS.len() {
            let queued = self.numbers_of_pushes(topic, PushState::Queued);
            stats.n_queued += queued.len() as u64;
            let sizes = queued.iter().map(|number| self.pushes[*number].n_bytes);
            stats.queued_bytes += sizes.sum::<usize>() as u64;
            stats.n_waiting_pushes +=
                self.numbers_of_pushes(topic, PushState::Waiting).len() as u64;
            let waiting = self.numbers_of_pulls(Of::Topic(topic), PullState::Waiting);
            stats.n_waiting_pulls += waiting.len() as u64;
            for number in self.open_subscriptions(topic) {
                stats.n_subscriptions += 1;
                stats.n_held += self.subscriptions[number].copies.len() as u64;
            }
        }
        stats
    }
}

struct Pair {
    bus: Bus<Number, Bell>,
    lists: Lists,
    /// By their numbers; none where they are used up.
    pushes: Vec<Option<PushTicket>>,
    pulls: Vec<Option<PullTicket>>,
    subscriptions: Vec<Option<SubscriptionId>>,
}

impl Pair {
    fn apply(&mut self, op: &Op) -> Outcome {
        match *op {
            Op::Push { topic, n_bytes } => self.push(topic, n_bytes),
            Op::Withdraw(which) => self.withdraw(which),
            Op::Pull(topic) => self.pull(topic),
            Op::Take(which) => self.take(which),
            Op::GiveUp(which) => self.give_up(which),
            Op::Broadcast { topic, n_bytes } => self.broadcast(topic, n_bytes),
            Op::Subscribe(topic) => self.subscribe(topic),
            Op::Next(which) => self.next(which),
            Op::Get(which) => self.get(which),
            Op::Unsubscribe(which) => self.unsubscribe(which),
            Op::Forget(which) => self.forget(which),
        }
    }

    /// The bells that the bus rang are those that the lists say.
    fn rings(&mut self, rung: impl IntoIterator<Item = Bell>) -> Outcome {
        let mut rung: Vec<Bell> = rung.into_iter().collect();
        rung.sort_unstable();
        prop_assert_eq!(rung, self.lists.settle());
        Ok(())
    }

    fn push(&mut self, topic: usize, n_bytes: usize) -> Outcome {
        let lists = &mut self.lists;
        let number = lists.pushes.len();
        let fits = n_bytes <= lists.limits.message_bytes
            && lists.has_place(topic)
            && lists.held_bytes() + n_bytes + BESIDE_BYTES <= lists.limits.user_bytes;
        let waits = fits && lists.is_full(topic);
        let pushed = self
            .bus
            .push(TOPICS[topic], number, n_bytes, || Bell::Push(number));
        prop_assert_eq!(pushed.is_ok(), fits);
        let Ok(pushed) = pushed else {
            return Ok(());
        };
        lists.pushes.push(PushEntry {
            topic,
            n_bytes,
            state: if waits {
                PushState::Waiting
            } else {
                PushState::Queued
            },
        });
        match pushed {
            Pushed::Queued(bell) => {
                prop_assert!(!waits);
                lists.counted.n_pushed += 1;
                self.pushes.push(None);
                self.rings(bell)
            }
            Pushed::Waiting(ticket) => {
                prop_assert!(waits);
                self.pushes.push(Some(ticket));
                self.rings(None)
            }
        }
    }

    fn withdraw(&mut self, which: usize) -> Outcome {
        let Some((number, ticket)) = chosen(&mut self.pushes, which) else {
            return Ok(());
        };
        let waits = self.lists.pushes[number].state == PushState::Waiting;
        prop_assert_eq!(self.bus.withdraw(ticket), waits);
        if waits {
            self.lists.pushes[number].state = PushState::Refused;
            self.lists.counted.n_refused += 1;
        }
        self.rings(None)
    }

    fn pull(&mut self, topic: usize) -> Outcome {
        let number = self.pulls.len();
        let fits = self.lists.has_place(topic);
        let mut is_asked = false;
        let ticket = self.bus.pull(TOPICS[topic], || {
            is_asked = true;
            Bell::Pull(number)
        });
        prop_assert_eq!(ticket.is_ok(), fits);
        let Ok(ticket) = ticket else {
            return Ok(());
        };
        self.asked(ticket, Of::Topic(topic), is_asked)
    }

    /// A new place: the one who gets a message at once is asked for no bell.
    fn asked(&mut self, ticket: PullTicket, of: Of, is_asked: bool) -> Outcome {
        let number = self.pulls.len();
        self.pulls.push(Some(ticket));
        let is_over =
            matches!(of, Of::Subscription(number) if !self.lists.subscriptions[number].is_open);
        self.lists.pulls.push(PullEntry {
            of,
            state: if is_over {
                PullState::Over
            } else {
                PullState::Waiting
            },
            is_settled: false,
        });
        let rung = self.lists.settle();
        let is_promised = self.lists.pulls[number].state == PullState::Promised;
        prop_assert_eq!(is_asked, !is_promised && !is_over);
        let own: Vec<Bell> = is_promised
            .then_some(Bell::Pull(number))
            .into_iter()
            .collect();
        prop_assert_eq!(rung, own);
        Ok(())
    }

    fn take(&mut self, which: usize) -> Outcome {
        // Only who was told takes.
        let ready: Vec<Number> = (0..self.pulls.len())
            .filter(|number| self.pulls[*number].is_some())
            .filter(|number| self.lists.pulls[*number].state != PullState::Waiting)
            .collect();
        if ready.is_empty() {
            return Ok(());
        }
        let number = ready[which % ready.len()];
        let Some(ticket) = self.pulls[number].take() else {
            return Ok(());
        };
        let of = self.lists.pulls[number].of;
        let expected = match of {
            Of::Topic(topic) => {
                let first = self.lists.numbers_of_pushes(topic, PushState::Queued)[0];
                self.lists.pushes[first].state = PushState::Taken;
                self.lists.counted.n_pulled += 1;
                Some(first)
            }
            Of::Subscription(subscription) => {
                let entry = &mut self.lists.subscriptions[subscription];
                let copy = entry.is_open.then(|| entry.copies.remove(0).0);
                self.lists.counted.n_received += u64::from(copy.is_some());
                copy
            }
        };
        self.lists.pulls[number].is_settled = true;
        let (message, bells) = self.bus.take(ticket);
        prop_assert_eq!(message, expected);
        self.rings(bells)
    }

    fn give_up(&mut self, which: usize) -> Outcome {
        let Some((number, ticket)) = chosen(&mut self.pulls, which) else {
            return Ok(());
        };
        self.lists.pulls[number].is_settled = true;
        let bell = self.bus.give_up(ticket);
        self.rings(bell)
    }

    fn broadcast(&mut self, topic: usize, n_bytes: usize) -> Outcome {
        let number = self.lists.n_broadcasts;
        let bells = self.bus.broadcast(TOPICS[topic], &number, n_bytes);
        prop_assert_eq!(bells.is_ok(), n_bytes <= self.lists.limits.message_bytes);
        let Ok(bells) = bells else {
            return Ok(());
        };
        self.lists.n_broadcasts += 1;
        self.lists.counted.n_broadcasts += 1;
        let limits = self.lists.limits;
        let mut rung = Vec::new();
        for subscription in self.lists.open_subscriptions(topic) {
            self.lists.counted.n_copies += 1;
            self.lists.subscriptions[subscription]
                .copies
                .push((number, n_bytes));
            rung.extend(self.lists.settle());
            let n_kept = self.lists.n_kept(subscription);
            let entry = &mut self.lists.subscriptions[subscription];
            let is_over = |copies: &[(Number, usize)]| {
                let n_bytes: usize = copies.iter().map(|copy| copy.1).sum();
                copies.len() > limits.subscription_messages || n_bytes > limits.subscription_bytes
            };
            while entry.copies.len() > n_kept && is_over(&entry.copies) {
                entry.copies.remove(0);
                entry.n_lagged += 1;
                self.lists.counted.n_lagged += 1;
            }
        }
        rung.sort_unstable();
        let mut told: Vec<Bell> = bells;
        told.sort_unstable();
        prop_assert_eq!(told, rung);
        self.lags_agree()
    }

    fn lags_agree(&self) -> Outcome {
        for (id, entry) in self.subscriptions.iter().zip(&self.lists.subscriptions) {
            if let Some(id) = id {
                prop_assert_eq!(self.bus.n_lagged(id), entry.n_lagged);
            }
        }
        Ok(())
    }

    fn subscribe(&mut self, topic: usize) -> Outcome {
        let there = self.subscriptions.iter().flatten().count();
        let fits = there < self.lists.limits.subscriptions && self.lists.has_place(topic);
        let id = self.bus.subscribe(TOPICS[topic]);
        prop_assert_eq!(id.is_ok(), fits);
        if let Ok(id) = id {
            self.subscriptions.push(Some(id));
            self.lists.subscriptions.push(SubscriptionEntry {
                topic,
                is_open: true,
                is_forgotten: false,
                copies: Vec::new(),
                n_lagged: 0,
            });
        }
        self.rings(None)
    }

    fn next(&mut self, which: usize) -> Outcome {
        let Some(number) = there(&self.subscriptions, which) else {
            return Ok(());
        };
        let pull = self.pulls.len();
        let mut is_asked = false;
        let Some(id) = &self.subscriptions[number] else {
            return Ok(());
        };
        let ticket = self.bus.next(id, || {
            is_asked = true;
            Bell::Pull(pull)
        });
        self.asked(ticket, Of::Subscription(number), is_asked)
    }

    fn get(&mut self, which: usize) -> Outcome {
        let Some(number) = there(&self.subscriptions, which) else {
            return Ok(());
        };
        let Some(id) = &self.subscriptions[number] else {
            return Ok(());
        };
        let of = Of::Subscription(number);
        let n_promised = self.lists.numbers_of_pulls(of, PullState::Promised).len();
        let entry = &mut self.lists.subscriptions[number];
        let is_free = entry.is_open && entry.copies.len() > n_promised;
        prop_assert_eq!(self.bus.is_readable(id), is_free || !entry.is_open);
        let expected = is_free.then(|| entry.copies.remove(0).0);
        self.lists.counted.n_received += u64::from(expected.is_some());
        prop_assert_eq!(self.bus.get(id), expected);
        self.rings(None)
    }

    fn unsubscribe(&mut self, which: usize) -> Outcome {
        let Some(number) = there(&self.subscriptions, which) else {
            return Ok(());
        };
        let expected = self.ended(number);
        let bells = match &self.subscriptions[number] {
            Some(id) => self.bus.unsubscribe(id),
            None => Vec::new(),
        };
        prop_assert_eq!(bells, expected);
        self.rings(None)
    }

    fn forget(&mut self, which: usize) -> Outcome {
        let Some((number, id)) = chosen(&mut self.subscriptions, which) else {
            return Ok(());
        };
        let expected = self.ended(number);
        self.lists.subscriptions[number].is_forgotten = true;
        prop_assert_eq!(self.bus.forget(id), expected);
        self.rings(None)
    }

    /// Ends a subscription in the lists; gives the bells of whoever waited for it.
    fn ended(&mut self, number: Number) -> Vec<Bell> {
        let of = Of::Subscription(number);
        let waited = self.lists.numbers_of_pulls(of, PullState::Waiting);
        for pull in &mut self.lists.pulls {
            if pull.of == of {
                pull.state = PullState::Over;
            }
        }
        let entry = &mut self.lists.subscriptions[number];
        self.lists.counted.n_discarded += entry.copies.len() as u64;
        entry.copies.clear();
        if !std::mem::replace(&mut entry.is_open, false) {
            return Vec::new();
        }
        waited.into_iter().map(Bell::Pull).collect()
    }
}

/// The number of one that is there.
fn there<T>(all: &[Option<T>], which: usize) -> Option<Number> {
    let numbers: Vec<Number> = (0..all.len())
        .filter(|number| all[*number].is_some())
        .collect();
    let place = which.checked_rem(numbers.len())?;
    Some(numbers[place])
}

/// Takes one that is there, with its number.
fn chosen<T>(all: &mut [Option<T>], which: usize) -> Option<(Number, T)> {
    let number = there(all, which)?;
    all[number].take().map(|found| (number, found))
}
