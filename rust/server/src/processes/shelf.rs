//! Ended processes that are kept, by user: whoever holds the most gives way first, so that one user cannot push out
//! what others keep.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use pie_host::ServedProcess;

/// What a process costs beside its events and its log.
const RECORD_BYTES: usize = 1024;

/// One process that has ended.
pub(super) struct EndedProcess {
    pub(super) process: ServedProcess,
    /// Bytes that it holds.
    pub(super) bytes: usize,
    /// When it is given up in any case.
    pub(super) until: Instant,
}

/// By what the next one to be forgotten is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    Count,
    Bytes,
}

/// Processes that have ended.
#[derive(Default)]
pub(super) struct Shelf {
    of: HashMap<String, OfUser>,
    len: usize,
    bytes: usize,
}

#[derive(Default)]
struct OfUser {
    /// The oldest first.
    kept: VecDeque<EndedProcess>,
    bytes: usize,
}

impl EndedProcess {
    /// A process of which events and log of so many bytes are held.
    pub(super) fn new(process: ServedProcess, held_bytes: usize, until: Instant) -> Self {
        Self {
            process,
            bytes: held_bytes + RECORD_BYTES,
            until,
        }
    }
}

impl Shelf {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the user who holds the most.
    pub(super) fn most_bytes(&self) -> usize {
        self.of.values().map(|of| of.bytes).max().unwrap_or(0)
    }

    pub(super) fn push(&mut self, user: String, ended: EndedProcess) {
        self.len += 1;
        self.bytes += ended.bytes;
        let of = self.of.entry(user).or_default();
        of.bytes += ended.bytes;
        of.kept.push_back(ended);
    }

    /// Takes the oldest of the user who holds the most.
    pub(super) fn pop_of_greatest(&mut self, by: By) -> Option<(String, EndedProcess)> {
        let greatest = self.of.iter().max_by_key(|(_, of)| match by {
            By::Count => of.kept.len(),
            By::Bytes => of.bytes,
        });
        let user = greatest?.0.clone();
        self.pop(&user).map(|ended| (user, ended))
    }

    /// Takes one whose time is over.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(String, EndedProcess)> {
        let (user, until) = self.first_due()?;
        let user = (until <= now).then(|| user.to_owned())?;
        self.pop(&user).map(|ended| (user, ended))
    }

    /// When the time of the next one is over.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.first_due().map(|(_, until)| until)
    }

    /// Takes every one for which `wanted` does not hold.
    pub(super) fn take_unless(
        &mut self,
        wanted: impl Fn(&ServedProcess) -> bool,
    ) -> Vec<EndedProcess> {
        let mut taken = Vec::new();
        for of in self.of.values_mut() {
            let (stay, go): (VecDeque<EndedProcess>, VecDeque<EndedProcess>) =
                std::mem::take(&mut of.kept)
                    .into_iter()
                    .partition(|ended| wanted(&ended.process));
            of.kept = stay;
            of.bytes -= go.iter().map(|ended| ended.bytes).sum::<usize>();
            taken.extend(go);
        }
        self.len -= taken.len();
        self.bytes -= taken.iter().map(|ended| ended.bytes).sum::<usize>();
        self.of.retain(|_, of| !of.kept.is_empty());
        taken
    }

    /// The oldest of each user is the first whose time is over.
    fn first_due(&self) -> Option<(&str, Instant)> {
        let fronts = self.of.iter().filter_map(|(user, of)| {
            let oldest = of.kept.front()?;
            Some((user.as_str(), oldest.until))
        });
        fronts.min_by_key(|(_, until)| *until)
    }

    fn pop(&mut self, user: &str) -> Option<EndedProcess> {
        let of = self.of.get_mut(user)?;
        let ended = of.kept.pop_front()?;
        of.bytes -= ended.bytes;
        self.len -= 1;
        self.bytes -= ended.bytes;
        if of.kept.is_empty() {
            self.of.remove(user);
        }
        Some(ended)
    }
}
