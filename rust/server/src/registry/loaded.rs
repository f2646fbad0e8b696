//! The contents of installed programs that are held in memory: those that were launched or installed last.
//!
//! | bound | of |
//! |---|---|
//! | a sixteenth of the engine's budget, at most 256 MiB | all users together |
//! | the floor of a user | the programs of one user, whose account is charged |
//! | 1024 programs, and 128 of one user | |
//! | a minute | since a program was used last |
//!
//! A program that is not held is read from the disk at its next launch.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pie_host::{Budget, Charge, Program, Purpose};

use super::disk::ProgramFolder;

/// One part in this many of the budget is the most that all contents take.
const PART: u64 = 16;
/// Bytes that they take at most, however large the budget is.
const MOST_BYTES: u64 = 256 << 20;
/// Programs that are held at most.
const MOST: usize = 1024;
/// Programs of one user that are held at most.
const MOST_OF_USER: usize = 128;
/// How long a program is held that nobody launches.
const UNUSED: Duration = Duration::from_secs(60);

/// The programs that were used last, the newest at the end.
pub(super) struct Loaded {
    budget: Arc<Budget>,
    programs: VecDeque<Entry>,
}

/// A program that is held in memory.
struct Entry {
    user: String,
    folder: ProgramFolder,
    serial: u64,
    program: Program,
    used: Instant,
    charge: Charge,
}

/// A program, and where it is installed.
pub(super) struct Content {
    pub(super) user: String,
    pub(super) folder: ProgramFolder,
    pub(super) serial: u64,
    pub(super) n_bytes: u64,
    pub(super) program: Program,
}

impl Loaded {
    /// None yet.
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            programs: VecDeque::new(),
        }
    }

    /// The program of that number, where it is held.
    pub(super) fn get(&mut self, serial: u64, now: Instant) -> Option<Program> {
        let at = self
            .programs
            .iter()
            .position(|entry| entry.serial == serial)?;
        let mut entry = self.programs.remove(at)?;
        entry.used = now;
        let program = entry.program.clone();
        self.programs.push_back(entry);
        Some(program)
    }

    /// Holds a program instead of what was held from its folder; those that were used longest ago give way. One that
    /// fits no bound, or that its owner has no memory for, is not held.
    pub(super) fn hold(&mut self, content: Content, now: Instant) {
        let Content {
            user,
            folder,
            serial,
            n_bytes,
            program,
        } = content;
        self.forget(&folder);
        let (of_user, of_all) = (self.budget.floor_bytes(), self.most_bytes());
        if n_bytes > of_user.min(of_all) {
            return;
        }
        self.shrink(of_user - n_bytes, MOST_OF_USER, |entry| entry.user == user);
        // Where the owner has no memory left, the disk has the program, and what others have stays.
        let Ok(charge) = self.budget.account(&user).charge(Purpose::Program, n_bytes) else {
            return;
        };
        self.shrink(of_all - n_bytes, MOST, |_| true);
        self.programs.push_back(Entry {
            user,
            folder,
            serial,
            program,
            used: now,
            charge,
        });
    }

    /// Holds nothing from that folder any more.
    pub(super) fn forget(&mut self, folder: &ProgramFolder) {
        self.programs.retain(|entry| entry.folder != *folder);
    }

    /// Holds nothing any more that nobody has used for a while.
    pub(super) fn forget_unused(&mut self, now: Instant) {
        // The one that was used longest ago is the first.
        while let Some(entry) = self.programs.front()
            && now.saturating_duration_since(entry.used) >= UNUSED
        {
            self.programs.pop_front();
        }
    }

    /// Lets those go that were used longest ago, until the chosen ones take at most `most_bytes` and there is room for
    /// one more among `most`.
    fn shrink(&mut self, most_bytes: u64, most: usize, is_chosen: impl Fn(&Entry) -> bool) {
        let chosen = self.programs.iter().filter(|entry| is_chosen(entry));
        let (mut n_bytes, mut n) = chosen.fold((0, 0), |(n_bytes, n), entry| {
            (n_bytes + entry.charge.n_bytes(), n + 1)
        });
        self.programs.retain(|entry| {
            let stays = (n_bytes <= most_bytes && n < most) || !is_chosen(entry);
            if !stays {
                n_bytes -= entry.charge.n_bytes();
                n -= 1;
            }
            stays
        });
    }

    fn most_bytes(&self) -> u64 {
        (self.budget.total_bytes() / PART).min(MOST_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pie_host::Component;

    use super::*;

    const TOTAL: u64 = 6400;

    fn content(user: &str, serial: u64, n_bytes: u64) -> Content {
        Content {
            user: user.to_owned(),
            folder: ProgramFolder::of(Path::new("programs"), user, "p", &serial.to_string()),
            serial,
            n_bytes,
            program: Component::new(serial.to_le_bytes()).into(),
        }
    }

    fn held(loaded: &mut Loaded, serials: std::ops::Range<u64>) -> Vec<u64> {
        serials
            .filter(|serial| loaded.programs.iter().any(|entry| entry.serial == *serial))
            .collect()
    }

    #[test]
    fn the_programs_of_a_user_take_at_most_the_floor_and_are_charged() {
        let budget = Budget::new(TOTAL, None);
        let (mut loaded, now) = (Loaded::new(budget.clone()), Instant::now());
        for serial in 0..4 {
            loaded.hold(content("ada", serial, 40), now);
        }
        assert_eq!(held(&mut loaded, 0..4), [2, 3]);
        assert_eq!(budget.account("ada").usage().n_bytes(), 80);
        loaded.hold(content("grace", 4, 100), now);
        assert_eq!(held(&mut loaded, 0..5), [2, 3, 4]);
        loaded.hold(content("ada", 5, 101), now);
        assert_eq!(held(&mut loaded, 0..6), [2, 3, 4]);
        drop(loaded);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn all_together_take_at_most_a_sixteenth_and_the_one_used_longest_ago_gives_way() {
        let budget = Budget::new(TOTAL, None);
        let (mut loaded, now) = (Loaded::new(budget.clone()), Instant::now());
        for serial in 0..4 {
            loaded.hold(content(&format!("user {serial}"), serial, 100), now);
        }
        assert!(loaded.get(0, now).is_some());
        loaded.hold(content("late", 4, 100), now);
        assert_eq!(held(&mut loaded, 0..5), [0, 2, 3, 4]);
        assert!(loaded.get(1, now).is_none());
        assert_eq!(budget.held_bytes(), TOTAL / PART);
    }

    #[test]
    fn a_user_without_memory_is_not_given_any() {
        let budget = Budget::new(TOTAL, Some(100));
        let _running = budget.account("ada").charge(Purpose::Guest, 90).unwrap();
        let mut loaded = Loaded::new(budget.clone());
        loaded.hold(content("ada", 1, 50), Instant::now());
        assert!(loaded.programs.is_empty());
        assert_eq!(budget.held_bytes(), 90);
    }

    #[test]
    fn who_has_no_memory_or_many_programs_takes_nothing_from_others() {
        let budget = Budget::new(TOTAL << 10, Some(200 << 10));
        let (mut loaded, now) = (Loaded::new(budget.clone()), Instant::now());
        loaded.hold(content("grace", 0, 1), now);
        for serial in 1..=MOST as u64 {
            loaded.hold(content("ada", serial, 1), now);
        }
        assert_eq!(loaded.programs.len(), 1 + MOST_OF_USER);
        assert!(loaded.get(0, now).is_some());
        // Three others fill what all may take, and one who has nothing left cannot change that.
        let floor = budget.floor_bytes();
        for serial in 2000..2004 {
            loaded.hold(content(&format!("user {serial}"), serial, floor - 100), now);
        }
        let before = loaded.programs.len();
        let _all = budget
            .account("mallory")
            .charge(Purpose::Guest, 200 << 10)
            .unwrap();
        loaded.hold(content("mallory", 3000, floor), now);
        assert_eq!(loaded.programs.len(), before);
    }

    #[test]
    fn what_nobody_uses_is_let_go_after_a_minute() {
        let budget = Budget::new(TOTAL, None);
        let (mut loaded, start) = (Loaded::new(budget.clone()), Instant::now());
        loaded.hold(content("ada", 1, 30), start);
        loaded.hold(content("ada", 2, 30), start);
        assert!(loaded.get(1, start + UNUSED / 2).is_some());
        loaded.forget_unused(start + UNUSED);
        assert_eq!(held(&mut loaded, 0..3), [1]);
        loaded.forget_unused(start + UNUSED / 2 + UNUSED);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn what_is_installed_again_takes_the_place_of_what_was_there() {
        let budget = Budget::new(TOTAL, None);
        let (mut loaded, now) = (Loaded::new(budget.clone()), Instant::now());
        loaded.hold(content("ada", 1, 30), now);
        let again = Content {
            serial: 2,
            ..content("ada", 1, 20)
        };
        loaded.hold(again, now);
        assert_eq!(held(&mut loaded, 0..3), [2]);
        loaded.forget(&content("ada", 1, 0).folder);
        assert_eq!(budget.held_bytes(), 0);
    }
}
