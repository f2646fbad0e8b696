//! The programs that a process can start by their names.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use pie_core::ErrorCode;

use crate::Error;
use crate::limits::Limits;
use crate::program::{ChargedProgram, Program, WeakProgram, did_you_mean, is_program_name};
use crate::sync::lock;

/// What a program calls itself.
const ITSELF: &str = ".";
/// The longest name that is looked up, and the most of one that is shown.
const MAX_NAME_BYTES: usize = 1024;
const SHOWN_BYTES: usize = 80;
/// Names that a message lists.
const LISTED: usize = 8;

/// The programs that a process finds by itself, as long as it lives.
pub(crate) struct Nameable {
    own: ChargedProgram,
    /// Those that its launch names.
    given: BTreeMap<String, ChargedProgram>,
    /// Files and folders of its own that children run: what is found out about one serves the next child too. The
    /// children hold them, and are charged for them.
    parts: Mutex<HashMap<String, WeakProgram>>,
}

impl Nameable {
    /// Those of a process that runs `own`.
    pub(crate) fn new(own: ChargedProgram, given: BTreeMap<String, ChargedProgram>) -> Self {
        Self {
            own,
            given,
            parts: Mutex::default(),
        }
    }

    /// Those that the launch names, for a child.
    pub(crate) fn given(&self) -> BTreeMap<String, Program> {
        let given = self.given.iter();
        given
            .map(|(name, held)| (name.clone(), held.program.clone()))
            .collect()
    }

    /// The program of a name: one that the launch names, itself, or a file or folder of its own. None: an installed
    /// one may be called so.
    ///
    /// # Errors
    /// `unknown-program` for a name that is too long for any, and those of reading it.
    pub(crate) async fn find(&self, name: &str, limits: &Limits) -> Result<Option<Program>, Error> {
        if name.len() > MAX_NAME_BYTES {
            return Err(self.unknown(name));
        }
        match self.given.get(name) {
            Some(given) => Ok(Some(given.program.clone())),
            None if name == ITSELF => Ok(Some(self.own.program.clone())),
            None => self.part(name, limits).await,
        }
    }

    async fn part(&self, path: &str, limits: &Limits) -> Result<Option<Program>, Error> {
        let known = lock(&self.parts).get(path).and_then(WeakProgram::upgrade);
        if known.is_some() {
            return Ok(known);
        }
        let found = self.own.program.part(path, limits).await?;
        if let Some(program) = &found {
            let mut parts = lock(&self.parts);
            parts.retain(|_, part| part.is_held());
            parts.insert(path.to_owned(), program.downgraded());
        }
        Ok(found)
    }

    /// How many parts are held, or were when the last one was found.
    #[cfg(test)]
    pub(crate) fn n_parts(&self) -> usize {
        lock(&self.parts).len()
    }

    /// The error of a name that nothing is called by.
    pub(crate) fn unknown(&self, name: &str) -> Error {
        let shown = &name[..name.floor_char_boundary(SHOWN_BYTES)];
        let given: Vec<&str> = self.given.keys().take(LISTED).map(String::as_str).collect();
        let given = if given.is_empty() {
            "none".to_owned()
        } else {
            given.join(", ")
        };
        let names: Vec<&str> = self.given.keys().map(String::as_str).collect();
        let meant = did_you_mean(shown, &names);
        // A name that may be a path is most likely that of the file, which the launch names by its last part.
        let is_plain = |one: char| one.is_ascii_alphanumeric() || "._-/".contains(one);
        let last = shown.rsplit('/').next().unwrap_or_default();
        let is_file = shown.chars().all(is_plain) && last.trim_start_matches('.').contains('.');
        let (called, file) = match (is_file, is_program_name(shown)) {
            (true, true) => (shown, shown),
            (true, false) if is_program_name(last) => (last, shown),
            _ => ("NAME", "FILE"),
        };
        let start = if called == last && called != shown {
            format!(", and start it as {called:?}")
        } else {
            String::new()
        };
        let launch = if meant.is_empty() {
            ": the launch"
        } else {
            " The launch"
        };
        let message = format!(
            "there is no program {shown:?} to start{meant}{launch} names {given}. No file or folder of this program that can run has that name, and no installed program has it. A program that is run from a lone file has that file and what it imports, and no others beside it: give the child by its path, as in `pie run PROGRAM --program {called}={file}`{start}, or run the folder (`pie run .`), which has all of its files and an entry called main, or the one that Pie.toml names; a server knows installed programs too"
        );
        Error::new(ErrorCode::UnknownProgram, message)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::budget::Budget;
    use crate::program::{Language, SourceBundle};

    #[tokio::test]
    async fn a_part_is_shared_while_a_child_holds_it_and_no_longer() {
        let budget = Budget::new(64 << 20, None);
        let file = |name: &str| (format!("{name}/main.py"), b"1".to_vec());
        let own = Program::from(SourceBundle {
            language: Language::Python,
            files: Arc::new(["a", "b", "c"].map(file).into()),
            entry: "a/main.py".to_owned(),
        });
        let nameable = Nameable::new(own.held(&budget, "").unwrap(), BTreeMap::new());
        let own_bytes = budget.held_bytes();
        let limits = Limits::default();
        let part = async |name: &str| {
            let found = nameable.find(name, &limits).await.unwrap();
            found.unwrap().held(&budget, "").unwrap()
        };
        let first = part("a").await;
        let held_bytes = budget.held_bytes();
        assert!(held_bytes > own_bytes);
        let same = part("a").await;
        assert_eq!((nameable.n_parts(), budget.held_bytes()), (1, held_bytes));
        let other = part("b").await;
        assert_eq!(nameable.n_parts(), 2);
        drop((first, same, other));
        assert_eq!(budget.held_bytes(), own_bytes);
        drop(part("c").await);
        assert_eq!(nameable.n_parts(), 1);
    }

    #[test]
    fn a_name_that_is_near_one_of_the_launch_is_told_of_it() {
        let budget = Budget::new(64 << 20, None);
        let program = || {
            Program::from(SourceBundle {
                language: Language::Python,
                files: Arc::new([("main.py".to_owned(), b"1".to_vec())].into()),
                entry: "main.py".to_owned(),
            })
        };
        let held = || program().held(&budget, "").unwrap();
        let given = BTreeMap::from([("count".to_owned(), held())]);
        let nameable = Nameable::new(held(), given);
        let told = nameable.unknown("cuont").to_string();
        assert!(
            told.contains("there is no program \"cuont\" to start; did you mean \"count\"? The launch names count. No file"),
            "{told}"
        );
        let told = nameable.unknown("sing").to_string();
        assert!(
            told.contains("there is no program \"sing\" to start: the launch names count. No file"),
            "{told}"
        );
        // Of a name that is too long for any, no more than what is shown is compared.
        assert!(nameable.unknown(&"x".repeat(1 << 20)).to_string().len() < 2000);
    }
}
