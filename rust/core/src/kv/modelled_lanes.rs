//! Store and lanes against an oracle that keeps every slot of every lane as a plain list, on a model of device and host
//! memory to which nothing happens but what batches ask for, in the order of the driver's contract.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::content::Traits;
use super::*;
use crate::batch::Adapter;
use crate::hash::fold;
use crate::ids::{BatchId, PageId, UserId};

/// What a slot is made of.
pub(super) type Written = (u32, Traits);
pub(super) type Outcome = Result<(), TestCaseError>;

const N_LANES: usize = 5;
/// In each all tokens are alike, so that contents differ in what a variant changes and in nothing else.
pub(super) const N_VARIANTS: u8 = 10;

/// The token at `slot` and what it depends on. Variants differ from the first one in one thing each.
pub(super) fn written(slot: u32, variant: u8) -> Written {
    let mut traits = Traits::plain(slot);
    let mut token = slot % 3;
    match variant {
        1 => token += 1,
        2 => traits.position = slot + 1,
        3 => traits.position = 0,
        4 => traits.mask = Arc::from([1, slot]),
        5 => traits.mask = Arc::from([0, slot, 1]),
        6 => traits.adapter.id = 1,
        7 => (traits.adapter.id, traits.adapter.version) = (1, 2),
        8 => traits.adapter.zo_seed = Some(0),
        9 => traits.media = 1,
        _ => {}
    }
    (token, traits)
}

/// What a driver leaves in the slot behind those that left `before`.
fn left_by((token, traits): &Written, before: u64) -> u64 {
    let Traits {
        position,
        mask,
        adapter: Adapter {
            id,
            version,
            zo_seed,
        },
        media,
    } = traits;
    let words = [
        u64::from(*token),
        u64::from(*position),
        *id,
        u64::from(*version),
        zo_seed.map_or(0, |seed| seed + 1),
        *media,
        mask.len() as u64,
    ];
    let all = words
        .into_iter()
        .chain(mask.iter().map(|&run| u64::from(run)));
    all.fold(before, fold)
}

pub(super) fn content_of(slots: &[Written], first: u32) -> Content {
    let (tokens, traits) = slots.iter().cloned().unzip();
    Content::new(tokens, traits, first)
}

/// A context, as far as lanes go.
struct Subject {
    lane: Lane,
    /// What was computed, then what a pass is to compute.
    slots: Vec<Written>,
    n_tokens: u32,
    /// Tells passes apart; none where there is none.
    pass: Option<u64>,
    lease: Option<BatchId>,
    released: bool,
}

impl Subject {
    fn new(owner: UserId) -> Self {
        Self {
            lane: Lane::new(owner),
            slots: Vec::new(),
            n_tokens: 0,
            pass: None,
            lease: None,
            released: false,
        }
    }

    fn end(&self) -> u32 {
        self.slots.len() as u32
    }

    fn trim(&mut self, store: &mut PageStore) {
        if self.lease.is_none() && self.pass.is_none() {
            self.lane.roll_back(store, self.n_tokens);
        }
    }

    fn end_pass(&mut self) {
        self.pass = None;
        self.slots.truncate(self.n_tokens as usize);
    }

    fn suspend(&mut self, store: &mut PageStore) {
        let slots = &self.slots;
        self.lane.suspend(store, |range| {
            content_of(
                &slots[range.start as usize..range.end as usize],
                range.start,
            )
        });
    }

    /// The content of the page at that index, if the pass fills it.
    fn page(&self, page_size: u32, page_idx: u32) -> Option<Content> {
        let (start, end) = (page_idx * page_size, (page_idx + 1) * page_size);
        let slots = self.slots.get(start as usize..end as usize)?;
        Some(content_of(slots, start))
    }
}

struct Running {
    id: BatchId,
    moves: Moves,
    sequences: Vec<Sequence>,
    restores: Vec<PageRestore>,
}

struct PageRestore {
    subject: usize,
    pass: u64,
}

struct Sequence {
    subject: usize,
    pass: u64,
    copy: Option<PageCopy>,
    pages: Vec<PageId>,
    start: u32,
    length: u32,
}

/// How often things happened.
#[derive(Default)]
struct Seen {
    n_adopted: u64,
    n_replayed: u64,
    n_copies: u64,
    n_failed: u64,
    n_short: u64,
}

/// How often each thing happened that a proof needs: pages evicted, copied out, copied in and dropped; lanes that
/// adopted what was there, sequences that computed something again, pages copied before they were written, batches that
/// failed, passes that lacked pages.
pub(crate) type Counts = [u64; 9];

struct World {
    store: PageStore,
    device: Vec<Vec<u64>>,
    host: HashMap<u32, Vec<u64>>,
    subjects: Vec<Subject>,
    running: Vec<Running>,
    n_batches: u64,
    n_passes: u64,
    displace: Displace,
    seen: Seen,
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// A pass of `n` tokens, the first of which is of the variant.
    Submit {
        which: usize,
        n: u32,
        variant: u8,
    },
    Cancel {
        which: usize,
    },
    /// A batch with up to `chunk` tokens of these.
    Plan {
        which: Vec<usize>,
        chunk: u32,
    },
    /// The driver runs a batch, before it fails or not at all.
    Finish {
        which: usize,
        runs: bool,
        fails: bool,
    },
    Fork {
        which: usize,
        into: usize,
    },
    RollBack {
        which: usize,
        keep: u32,
    },
    Suspend {
        which: usize,
    },
    Release {
        which: usize,
    },
    Cost(Displace),
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let which = || 0..N_LANES;
    let variant = prop_oneof![2 => Just(0u8), 1 => 0..N_VARIANTS];
    prop_oneof![
        5 => (which(), 1u32..9, variant).prop_map(|(which, n, variant)| Op::Submit { which, n, variant }),
        1 => which().prop_map(|which| Op::Cancel { which }),
        7 => (prop::collection::vec(which(), 1..4), 1u32..9).prop_map(|(which, chunk)| Op::Plan { which, chunk }),
        7 => (0usize..2, any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(which, runs, fails)| Op::Finish { which, runs, fails }),
        2 => (which(), which()).prop_map(|(which, into)| Op::Fork { which, into }),
        2 => (which(), 0u32..20).prop_map(|(which, keep)| Op::RollBack { which, keep }),
        2 => which().prop_map(|which| Op::Suspend { which }),
        1 => which().prop_map(|which| Op::Release { which }),
        1 => prop_oneof![Just(Displace::Copy), Just(Displace::Replay)].prop_map(Op::Cost),
    ]
}

/// Slots of a page, pages of the device, slots of the host.
pub(crate) fn sizes() -> impl Strategy<Value = (u32, u32, u32)> {
    (1u32..5, 2u32..14, prop_oneof![Just(0u32), 1u32..8])
}

/// Applies operations to a store of that size, and lets go of everything in the end.
pub(crate) fn run(sizes: (u32, u32, u32), ops: Vec<Op>) -> Result<Counts, TestCaseError> {
    let mut world = World::new(sizes);
    for op in ops {
        world.apply(op)?;
    }
    world.end()
}

impl World {
    fn new((page_size, n_pages, host_pages): (u32, u32, u32)) -> Self {
        Self {
            store: PageStore::new(page_size, n_pages, host_pages),
            device: vec![vec![0; page_size as usize]; n_pages as usize],
            host: HashMap::new(),
            subjects: (0..N_LANES).map(Self::subject).collect(),
            running: Vec::new(),
            n_batches: 0,
            n_passes: 0,
            displace: Displace::Copy,
            seen: Seen::default(),
        }
    }

    /// The last one is of another owner than the others.
    fn subject(index: usize) -> Subject {
        Subject::new(UserId(u64::from(index + 1 == N_LANES)))
    }

    fn apply(&mut self, op: Op) -> Outcome {
        match op {
            Op::Submit { which, n, variant } => {
                let subject = &mut self.subjects[which];
                if subject.pass.is_none() && !subject.released {
                    self.n_passes += 1;
                    subject.pass = Some(self.n_passes);
                    for index in 0..n {
                        let variant = if index == 0 { variant } else { 0 };
                        subject.slots.push(written(subject.end(), variant));
                    }
                }
            }
            Op::Cancel { which } => {
                self.subjects[which].end_pass();
                self.subjects[which].trim(&mut self.store);
            }
            Op::Plan { which, chunk } => {
                if self.running.len() < 2 {
                    self.plan(&which, chunk)?;
                }
            }
            Op::Finish { which, runs, fails } => {
                if which < self.running.len() {
                    self.finish(which, runs || !fails, fails)?;
                }
            }
            Op::Fork { which, into } => self.fork(which, into),
            Op::RollBack { which, keep } => {
                let subject = &mut self.subjects[which];
                if subject.pass.is_none() && keep < subject.n_tokens {
                    subject.n_tokens = keep;
                    subject.slots.truncate(keep as usize);
                    subject.trim(&mut self.store);
                }
            }
            Op::Suspend { which } => {
                if self.subjects[which].lease.is_none() {
                    self.subjects[which].suspend(&mut self.store);
                }
            }
            Op::Release { which } => self.release(which),
            Op::Cost(displace) => self.displace = displace,
        }
        self.verify()
    }

    fn fork(&mut self, which: usize, into: usize) {
        let is_free = |subject: &Subject| subject.end() == 0 && subject.lease.is_none();
        let owner = self.subjects[into].lane.owner();
        if which == into || !is_free(&self.subjects[into]) {
            return;
        }
        let subject = &mut self.subjects[which];
        if subject.pass.is_some() || subject.released || subject.lane.owner() != owner {
            return;
        }
        let (slots, leased) = (&subject.slots, subject.lease.is_some());
        let mut lane = subject.lane.fork(&mut self.store, leased, |range| {
            content_of(
                &slots[range.start as usize..range.end as usize],
                range.start,
            )
        });
        lane.roll_back(&mut self.store, subject.n_tokens);
        let fork = Subject {
            lane,
            slots: subject.slots.clone(),
            n_tokens: subject.n_tokens,
            ..Subject::new(owner)
        };
        let old = std::mem::replace(&mut self.subjects[into], fork);
        old.lane.release(&mut self.store);
    }

    fn release(&mut self, which: usize) {
        self.subjects[which].released = true;
        self.subjects[which].end_pass();
        self.bury(which);
    }

    fn bury(&mut self, which: usize) {
        let subject = &mut self.subjects[which];
        if subject.released && subject.lease.is_none() {
            std::mem::replace(subject, Self::subject(which))
                .lane
                .release(&mut self.store);
        }
    }

    fn plan(&mut self, which: &[usize], chunk: u32) -> Outcome {
        let id = BatchId(self.n_batches + 1);
        let mut batch = Running {
            id,
            moves: Moves::default(),
            sequences: Vec::new(),
            restores: Vec::new(),
        };
        for &index in which {
            let subject = &self.subjects[index];
            let Some(pass) = subject.pass.filter(|_| subject.lease.is_none()) else {
                continue;
            };
            if pages_for(subject.end(), self.store.page_size()) > self.store.n_pages() {
                self.subjects[index].end_pass();
                self.subjects[index].trim(&mut self.store);
                continue;
            }
            let made = self.make_ready(index, id, &mut batch.moves)?;
            let (store, subject) = (&self.store, &mut self.subjects[index]);
            let (n_ready, end) = (subject.lane.n_ready(), subject.end());
            match made {
                Ok(copy) if n_ready < end => {
                    let length = end.min(n_ready + chunk);
                    let page_size = store.page_size();
                    let mut pages: Vec<PageId> = subject.lane.pages(store).collect();
                    prop_assert!(pages.len() as u32 >= pages_for(end, page_size));
                    pages.truncate(pages_for(length, page_size) as usize);
                    if let Some(copy) = copy {
                        prop_assert_eq!(pages[(n_ready / page_size) as usize], copy.src);
                        pages[(n_ready / page_size) as usize] = copy.dst;
                    }
                    subject.lease = Some(id);
                    self.seen.n_replayed += u64::from(subject.n_tokens > n_ready);
                    batch.sequences.push(Sequence {
                        subject: index,
                        pass,
                        copy,
                        pages,
                        start: n_ready,
                        length,
                    });
                }
                made => {
                    if made.is_ok() {
                        // Everything was there: others computed the same.
                        subject.n_tokens = end;
                        subject.pass = None;
                    }
                    let mut pinned = subject.lane.pinned();
                    if pinned.any(|node| store.moving(node).is_some()) {
                        subject.lease = Some(id);
                        batch.restores.push(PageRestore {
                            subject: index,
                            pass,
                        });
                    }
                }
            }
        }
        if !batch.sequences.is_empty() || !batch.moves.is_empty() {
            self.n_batches += 1;
            self.running.push(batch);
        }
        Ok(())
    }

    /// Makes room as a planner does, at the cost of all others that no batch uses.
    fn make_ready(
        &mut self,
        index: usize,
        batch: BatchId,
        moves: &mut Moves,
    ) -> Result<Result<Option<PageCopy>, Obstacle>, TestCaseError> {
        let demand = PageDemand {
            batch,
            displace: self.displace,
        };
        let n_ins = moves.ins.len();
        let was_resident = self.subjects[index].lane.is_resident();
        loop {
            let (store, subject) = (&mut self.store, &mut self.subjects[index]);
            let (page_size, end, slots) = (store.page_size(), subject.end(), &subject.slots);
            let at_most = subject.lane.n_missing_at_most(store, end);
            let exactly = {
                let subject = &*subject;
                subject.lane.survey(store, demand, end, |page_idx| {
                    subject.page(page_size, page_idx)
                })
            };
            let missing = match exactly {
                Ok(missing) => missing,
                Err(obstacle) => return Ok(Err(obstacle)),
            };
            let n_before = subject.lane.n_ready();
            let fits = at_most.min(missing) <= store.n_available();
            let page = |page_idx: u32| {
                let range = (page_idx * page_size) as usize..((page_idx + 1) * page_size) as usize;
                slots
                    .get(range)
                    .map(|slots| content_of(slots, page_idx * page_size))
            };
            let reserved = if fits {
                let adopted = subject.lane.adopt(store, demand, moves, page);
                self.seen.n_adopted += u64::from(subject.lane.n_ready() > n_before);
                adopted.and_then(|()| subject.lane.reserve(store, demand, moves, end))
            } else {
                Err(Obstacle::Short)
            };
            if reserved != Err(Obstacle::Short) {
                return Ok(reserved);
            }
            prop_assert!(
                !fits,
                "{} pages suffice, or {}, and do not",
                at_most,
                missing
            );
            self.seen.n_short += 1;
            let (store, subjects) = (&mut self.store, &mut self.subjects);
            let mut others = subjects.iter_mut().enumerate().filter(|(other, subject)| {
                *other != index && subject.lease.is_none() && subject.lane.is_resident()
            });
            if let Some((_, other)) = others.next() {
                other.suspend(store);
            } else if !subjects[index].lane.give_up_shared(store) {
                if !was_resident && moves.ins.len() == n_ins {
                    subjects[index].suspend(store);
                }
                return Ok(Err(Obstacle::Short));
            }
        }
    }

    fn finish(&mut self, which: usize, runs: bool, fails: bool) -> Outcome {
        let batch = self.running.remove(which);
        if runs {
            self.run(&batch)?;
        }
        let (id, succeeded) = (batch.id, !fails);
        self.seen.n_failed += u64::from(fails);
        if fails && !batch.moves.ins.is_empty() {
            let sequences = batch.sequences.iter().map(|sequence| sequence.subject);
            for index in sequences.chain(batch.restores.iter().map(|restore| restore.subject)) {
                self.subjects[index].lane.reset(&mut self.store);
            }
        }
        self.store.conclude(id, batch.moves, succeeded);
        for sequence in batch.sequences {
            let (store, subject) = (&mut self.store, &mut self.subjects[sequence.subject]);
            subject.lease = None;
            let goes_on = subject.pass == Some(sequence.pass);
            match sequence.copy {
                Some(copy) if succeeded && goes_on => subject.lane.take_copy(store, copy),
                Some(copy) => subject.lane.drop_copy(store, copy),
                None => {}
            }
            self.seen.n_copies += u64::from(sequence.copy.is_some());
            if subject.released {
                self.bury(sequence.subject);
            } else if !goes_on {
                subject.lane.roll_back(store, subject.n_tokens);
            } else if succeeded {
                let (page_size, slots) = (store.page_size(), &subject.slots);
                subject.lane.advance(store, sequence.length, |page_idx| {
                    let start = page_idx * page_size;
                    content_of(&slots[start as usize..(start + page_size) as usize], start)
                });
                if subject.lane.n_ready() == subject.end() {
                    subject.n_tokens = subject.end();
                    subject.pass = None;
                }
            } else {
                subject.end_pass();
                subject.trim(store);
            }
        }
        for restore in batch.restores {
            let subject = &mut self.subjects[restore.subject];
            subject.lease = None;
            if subject.pass != Some(restore.pass) {
                subject.lane.roll_back(&mut self.store, subject.n_tokens);
            }
            self.bury(restore.subject);
        }
        Ok(())
    }

    /// What a driver does with a batch: swap-outs, swap-ins, copies, and then all tokens, each of which looks at all
    /// slots before it.
    fn run(&mut self, batch: &Running) -> Outcome {
        for out in &batch.moves.outs {
            self.host
                .insert(out.slot.0, self.device[out.page.0 as usize].clone());
        }
        for back in &batch.moves.ins {
            let kept = self.host.get(&back.slot.0);
            prop_assert!(kept.is_some(), "nothing was swapped out to {:?}", back.slot);
            self.device[back.page.0 as usize] = kept.cloned().unwrap_or_default();
        }
        for copy in batch.sequences.iter().filter_map(|sequence| sequence.copy) {
            self.device[copy.dst.0 as usize] = self.device[copy.src.0 as usize].clone();
        }
        let page_size = self.store.page_size();
        for sequence in &batch.sequences {
            let subject = &self.subjects[sequence.subject];
            if subject.pass != Some(sequence.pass) {
                // Nobody wants what it computes; it is written all the same.
                for slot in sequence.start..sequence.length {
                    let page = sequence.pages[(slot / page_size) as usize];
                    self.device[page.0 as usize][(slot % page_size) as usize] = u64::MAX;
                }
                continue;
            }
            let mut before = 0;
            for (slot, written) in (0..sequence.length).zip(&subject.slots) {
                let page = sequence.pages[(slot / page_size) as usize];
                let place = &mut self.device[page.0 as usize][(slot % page_size) as usize];
                before = left_by(written, before);
                if slot >= sequence.start {
                    *place = before;
                }
                prop_assert_eq!(
                    *place,
                    before,
                    "lane {} sees what is not its own in slot {}",
                    sequence.subject,
                    slot
                );
            }
        }
        Ok(())
    }

    fn verify(&self) -> Outcome {
        let page_size = self.store.page_size();
        let mut references = References::default();
        let mut owners: HashMap<PageId, UserId> = HashMap::new();
        for (index, subject) in self.subjects.iter().enumerate() {
            let lane = &subject.lane;
            references.add_lane(lane);
            let pages: Vec<PageId> = lane.pages(&self.store).collect();
            for page in &pages {
                let owner = *owners.entry(*page).or_insert(lane.owner());
                prop_assert_eq!(owner, lane.owner(), "two owners use {:?}", page);
            }
            if subject.lease.is_some() {
                continue;
            }
            prop_assert!(lane.n_ready() <= subject.end());
            let mut before = 0;
            for (slot, written) in (0..lane.n_ready()).zip(&subject.slots) {
                before = left_by(written, before);
                let page = pages[(slot / page_size) as usize];
                let found = self.device[page.0 as usize][(slot % page_size) as usize];
                prop_assert_eq!(found, before, "lane {}, slot {}", index, slot);
            }
        }
        for batch in &self.running {
            let copies = batch.sequences.iter().filter_map(|sequence| sequence.copy);
            references.add_batch(batch.id, &batch.moves, copies, &[]);
        }
        self.store.check(&references).map_err(TestCaseError::fail)
    }

    /// Ends all batches and lets go of everything.
    fn end(mut self) -> Result<Counts, TestCaseError> {
        while !self.running.is_empty() {
            self.finish(0, true, false)?;
            self.verify()?;
        }
        for index in 0..N_LANES {
            self.release(index);
        }
        self.verify()?;
        prop_assert_eq!((self.store.n_in_use(), self.store.n_on_host()), (0, 0));
        prop_assert_eq!(self.store.n_users(), 0);
        let (totals, seen) = (self.store.totals(), self.seen);
        Ok([
            totals.n_evicted,
            totals.n_copied_out,
            totals.n_copied_in,
            totals.n_dropped,
            seen.n_adopted,
            seen.n_replayed,
            seen.n_copies,
            seen.n_failed,
            seen.n_short,
        ])
    }
}
