//! The programs that a process can start by their names.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use pie_core::ErrorCode;

use crate::Error;
use crate::limits::Limits;
use crate::program::{ChargedProgram, Program};
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
    /// Files and folders of its own that were started: what is found out about one serves the next child too.
    parts: Mutex<HashMap<String, Program>>,
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
        if let Some(known) = lock(&self.parts).get(path) {
            return Ok(Some(known.clone()));
        }
        let found = self.own.program.part(path, limits).await?;
        if let Some(program) = &found {
            lock(&self.parts).insert(path.to_owned(), program.clone());
        }
        Ok(found)
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
        let message = format!(
            "there is no program {shown:?} to start: the launch names {given}, no file or folder of this program that can run is called so, and it is not installed; name it by `pie run --program NAME=FILE`, put it into the folder of the program, or install it"
        );
        Error::new(ErrorCode::UnknownProgram, message)
    }
}
