//! Ended processes that are kept, by user and program: whoever holds the most gives way first, and there the program
//! that does. So one user cannot push out what others keep, and those who ask a program that anybody may ask cannot
//! push out what the other programs of its user have left.

use std::cmp::Reverse;
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

/// Whose a process was.
#[derive(Clone, Debug)]
pub(super) struct Whose {
    pub(super) user: String,
    /// Its program, as lists call it.
    pub(super) label: String,
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
    /// By label; none is empty.
    of: HashMap<String, OfProgram>,
    len: usize,
    bytes: usize,
}

#[derive(Default)]
struct OfProgram {
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

impl OfProgram {
    /// Of those that have as much, the one with the oldest is the greatest.
    fn size(&self, by: By) -> (usize, Reverse<Option<Instant>>) {
        let size = match by {
            By::Count => self.kept.len(),
            By::Bytes => self.bytes,
        };
        (size, Reverse(self.oldest()))
    }

    fn oldest(&self) -> Option<Instant> {
        self.kept.front().map(|ended| ended.until)
    }
}

impl OfUser {
    /// The label of the program with the most.
    fn greatest(&self, by: By) -> Option<&str> {
        let greatest = self.of.iter().max_by_key(|(_, of)| of.size(by));
        greatest.map(|(label, _)| label.as_str())
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

    pub(super) fn push(&mut self, whose: Whose, ended: EndedProcess) {
        let n_bytes = ended.bytes;
        let of_user = self.of.entry(whose.user).or_default();
        let of_program = of_user.of.entry(whose.label).or_default();
        of_program.kept.push_back(ended);
        of_program.bytes += n_bytes;
        of_user.len += 1;
        of_user.bytes += n_bytes;
        self.len += 1;
        self.bytes += n_bytes;
    }

    /// Takes the oldest of the program that holds the most of the user who holds the most.
    pub(super) fn pop_of_greatest(&mut self, by: By) -> Option<(Whose, EndedProcess)> {
        let greatest = self.of.iter().max_by_key(|(_, of)| match by {
            By::Count => of.len,
            By::Bytes => of.bytes,
        });
        let (user, of) = greatest?;
        let whose = Whose {
            user: user.clone(),
            label: of.greatest(by)?.to_owned(),
        };
        self.pop(whose)
    }

    /// Takes one whose time is over.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Whose, EndedProcess)> {
        let (user, label, until) = self.first_due()?;
        let (user, label) = (user.to_owned(), label.to_owned());
        if until > now {
            return None;
        }
        self.pop(Whose { user, label })
    }

    /// When the time of the next one is over.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.first_due().map(|(_, _, until)| until)
    }

    /// Takes every one for which `wanted` does not hold.
    pub(super) fn take_unless(
        &mut self,
        wanted: impl Fn(&ServedProcess) -> bool,
    ) -> Vec<EndedProcess> {
        let mut taken = Vec::new();
        for of_user in self.of.values_mut() {
            for of_program in of_user.of.values_mut() {
                let (stay, go): (VecDeque<EndedProcess>, VecDeque<EndedProcess>) =
                    std::mem::take(&mut of_program.kept)
                        .into_iter()
                        .partition(|ended| wanted(&ended.process));
                let n_bytes = go.iter().map(|ended| ended.bytes).sum::<usize>();
                of_program.kept = stay;
                of_program.bytes -= n_bytes;
                of_user.len -= go.len();
                of_user.bytes -= n_bytes;
                taken.extend(go);
            }
            of_user.of.retain(|_, of| !of.kept.is_empty());
        }
        self.len -= taken.len();
        self.bytes -= taken.iter().map(|ended| ended.bytes).sum::<usize>();
        self.of.retain(|_, of| of.len > 0);
        taken
    }

    /// The user and the label of the first whose time is over: the oldest of each program is its first.
    fn first_due(&self) -> Option<(&str, &str, Instant)> {
        let of_users = self.of.iter();
        let fronts = of_users.flat_map(|(user, of_user)| {
            let of_programs = of_user.of.iter();
            of_programs.filter_map(move |(label, of)| {
                let until = of.oldest()?;
                Some((user.as_str(), label.as_str(), until))
            })
        });
        fronts.min_by_key(|(_, _, until)| *until)
    }

    fn pop(&mut self, whose: Whose) -> Option<(Whose, EndedProcess)> {
        let of_user = self.of.get_mut(&whose.user)?;
        let of_program = of_user.of.get_mut(&whose.label)?;
        let ended = of_program.kept.pop_front()?;
        of_program.bytes -= ended.bytes;
        if of_program.kept.is_empty() {
            of_user.of.remove(&whose.label);
        }
        of_user.len -= 1;
        of_user.bytes -= ended.bytes;
        if of_user.len == 0 {
            self.of.remove(&whose.user);
        }
        self.len -= 1;
        self.bytes -= ended.bytes;
        Some((whose, ended))
    }
}
