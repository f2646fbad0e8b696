//! The types of TypeScript and JavaScript are removed by workers, all scripts of a program by one, and what they made
//! is kept by digest.
//!
//! The digest is that of all scripts together: whatever a program makes its worker answer, only who launches the same
//! scripts gets it. What comes back is text that runs inside an instance; nothing else is done with it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;
use tokio::sync::watch;

use super::apart::{Ended, Fault, GiveUp, Job, Wanted, Workers};
use super::compiler::{starved, took_too_long, took_too_much};
use super::failures::Failures;
use super::fair_turns::FairTurns;
use super::single_flight::{Shift, SingleFlight};
use super::source::{Files, LazySource, RuntimeInput};
use super::worker::{Answer, Order, Work, get, put};
use crate::event::Failure;
use crate::sync::lock;
use crate::{Error, HostConfig};

/// Bytes of memory for the largest script, and for each byte of all.
const SCRIPT_BYTES: u64 = 256 << 20;
const BYTES_OF_BYTE: u64 = 4;
/// What is kept: bytes of scripts without types, and programs. Beyond, what was used longest ago is forgotten.
const MAX_KEPT_BYTES: usize = 16 << 20;
const MAX_KEPT: usize = 1024;
/// The longest message that is taken over from a worker.
const MAX_MESSAGE_CHARS: usize = 2000;

/// What became of the scripts of a program.
#[derive(Debug, PartialEq, Eq)]
enum Stripped {
    /// Those that had types, without them, by path.
    Changed(BTreeMap<String, Arc<Vec<u8>>>),
    /// One cannot be read: which, where and why.
    Refused(String),
}

type Scripts = Arc<SingleFlight<Arc<Stripped>>>;

/// Removes types, in turns of users.
pub(crate) struct Stripper {
    config: Arc<HostConfig>,
    /// None without a command for them.
    workers: Option<Arc<Workers>>,
    kept: Mutex<StrippedPrograms>,
    failures: Failures<[u8; 32]>,
    turns: Arc<FairTurns>,
    stopping: watch::Sender<()>,
}

#[derive(Default)]
struct StrippedPrograms {
    programs: HashMap<[u8; 32], Entry>,
    n_bytes: usize,
    /// Counts uses, to find what was used longest ago.
    clock: u64,
}

struct Entry {
    used: u64,
    n_bytes: usize,
    scripts: Scripts,
}

impl Stripper {
    /// One whose workers take `turns`.
    pub(crate) fn new(
        config: Arc<HostConfig>,
        workers: Option<Arc<Workers>>,
        turns: Arc<FairTurns>,
        stopping: watch::Sender<()>,
    ) -> Self {
        Self {
            config,
            workers,
            kept: Mutex::default(),
            failures: Failures::default(),
            turns,
            stopping,
        }
    }

    /// The scripts of a program without their types, in a turn of `user`.
    ///
    /// # Errors
    /// `invalid-program` for scripts that cannot be read, with file, line and column, or that nest too deeply;
    /// `limit-compile` for those that take too long or too much memory; `limit-queue` when too many of the user wait;
    /// `invalid-config` without a command for workers.
    pub(crate) async fn plain(
        &self,
        source: &Arc<LazySource>,
        user: &str,
    ) -> Result<RuntimeInput, Failure> {
        let Some(workers) = &self.workers else {
            let message = "sources in JavaScript need a process that removes types, and the engine has no command for one; set compiler";
            return Err(Error::new(ErrorCode::InvalidConfig, message).into());
        };
        let digest = source.scripts_digest();
        if let Some(error) = self.failures.get(&digest) {
            return Err(error.into());
        }
        let scripts = lock(&self.kept).entry(digest);
        let strip = |shift| self.strip(workers, source, shift);
        let outcome = scripts.made(&self.turns, user, strip).await;
        match &outcome {
            Ok(stripped) => lock(&self.kept).settled(digest, &scripts, stripped.n_bytes()),
            Err(error) => {
                self.failures.note(digest, error);
                lock(&self.kept).forget(digest, &scripts);
            }
        }
        match &*outcome? {
            Stripped::Changed(changed) => Ok(source.make_ready(merged(source.files(), changed))),
            Stripped::Refused(message) => Err(Failure {
                kind: "SyntaxError".to_owned(),
                code: Some(ErrorCode::InvalidProgram.as_str().to_owned()),
                message: message.clone(),
                traceback: String::new(),
            }),
        }
    }

    /// Strips off the threads that run programs; none where the shift was over.
    async fn strip(
        &self,
        workers: &Arc<Workers>,
        source: &Arc<LazySource>,
        shift: Shift,
    ) -> Option<Result<Arc<Stripped>, Error>> {
        let (_give_up, given_up) = GiveUp::new();
        let wanted = Wanted {
            stopping: self.stopping.subscribe(),
            given_up,
            shift,
        };
        let (workers, source, config) = (workers.clone(), source.clone(), self.config.clone());
        let work = move || strip(&workers, &source, &config, &wanted);
        match tokio::task::spawn_blocking(work).await {
            Ok(outcome) => outcome.map(|stripped| stripped.map(Arc::new)).transpose(),
            Err(error) => Some(Err(Error::internal(error))),
        }
    }
}

/// Strips the scripts of a program in a worker.
fn strip(
    workers: &Workers,
    source: &LazySource,
    config: &HostConfig,
    wanted: &Wanted,
) -> Result<Option<Stripped>, Error> {
    let scripts: Vec<_> = source.scripts().collect();
    let heads: Vec<(Vec<u8>, &[u8])> = scripts
        .iter()
        .map(|(path, content)| {
            let mut head = Vec::new();
            put(&mut head, path.as_bytes());
            head.extend_from_slice(
                &u32::try_from(content.len())
                    .unwrap_or(u32::MAX)
                    .to_le_bytes(),
            );
            (head, content.as_slice())
        })
        .collect();
    let supplied: Vec<&[u8]> = heads
        .iter()
        .flat_map(|(head, content)| [&head[..], *content])
        .collect();
    let n_bytes: usize = supplied.iter().map(|part| part.len()).sum();
    let memory_bytes = SCRIPT_BYTES
        .saturating_add(BYTES_OF_BYTE.saturating_mul(n_bytes as u64))
        .min(config.compile_bytes());
    let job = Job {
        workers,
        order: Order {
            work: Work::Strip,
            cpu_s: config.limits.compile.as_secs().saturating_add(1),
            memory_bytes,
        },
        supplied: &supplied,
        wall: config.limits.compile,
        // A script keeps its length; beside it there is a message at most.
        most_bytes: n_bytes.saturating_mul(2).saturating_add(1 << 20),
    };
    let ended = job.run(wanted)?;
    let (fault, answered) = match ended {
        Ended::Over => return Ok(None),
        Ended::Done(answered) => (None, answered),
        Ended::Failed(fault, answered) => (Some(fault), answered),
    };
    let mut paths = scripts.iter().map(|(path, _)| *path);
    let read = read_answers(&answered, &mut paths);
    match (read, fault) {
        (Some(stripped), None) => Ok(Some(stripped)),
        (_, Some(fault)) => Err(describe(
            fault,
            first_without_answer(&answered, &scripts),
            config,
            memory_bytes,
        )),
        (None, None) => Err(Error::internal("a worker did not answer for every script")),
    }
}

/// What a worker answered for the scripts of these paths; none where it is not whole.
fn read_answers<'a>(
    mut answered: &[u8],
    paths: &mut impl Iterator<Item = &'a str>,
) -> Option<Stripped> {
    let mut changed = BTreeMap::new();
    for path in paths {
        match read_answer(&mut answered)? {
            (Answer::Same, _) => {}
            (Answer::Changed, text) => {
                std::str::from_utf8(text).ok()?;
                changed.insert(path.to_owned(), Arc::new(text.to_vec()));
            }
            (Answer::Refused, text) => {
                let message = String::from_utf8_lossy(text);
                return Some(Stripped::Refused(
                    message.chars().take(MAX_MESSAGE_CHARS).collect(),
                ));
            }
        }
    }
    Some(Stripped::Changed(changed))
}

fn read_answer<'a>(answered: &mut &'a [u8]) -> Option<(Answer, &'a [u8])> {
    let (kind, rest) = answered.split_first()?;
    *answered = rest;
    let kind = [Answer::Same, Answer::Changed, Answer::Refused]
        .into_iter()
        .find(|answer| *answer as u8 == *kind)?;
    let text = if kind == Answer::Same {
        &[][..]
    } else {
        get(answered)?
    };
    Some((kind, text))
}

/// The script that a worker ended over.
fn first_without_answer<'a>(mut answered: &[u8], scripts: &[(&'a str, &Arc<Vec<u8>>)]) -> &'a str {
    let n_answers = std::iter::from_fn(|| read_answer(&mut answered)).count();
    scripts
        .get(n_answers)
        .or(scripts.last())
        .map_or("", |(path, _)| *path)
}

fn describe(fault: Fault, path: &str, config: &HostConfig, memory_bytes: u64) -> Error {
    let what = format!("{path}: removing its types");
    match fault {
        Fault::TooLong => took_too_long(&what, config),
        Fault::Starved => starved(&what, config),
        Fault::TooMuchMemory => took_too_much(&what, memory_bytes),
        Fault::Crashed => Error::new(
            ErrorCode::InvalidProgram,
            format!(
                "{path}: it nests too deeply to be read: the parser came to the end of its stack; nest less deeply, or split the statement"
            ),
        ),
        Fault::Invalid(message) | Fault::Internal(message) => {
            Error::internal(format!("{path}: {message}"))
        }
    }
}

/// The files, with those that were changed in the place of their originals.
fn merged(files: &Files, changed: &BTreeMap<String, Arc<Vec<u8>>>) -> Files {
    files
        .iter()
        .map(|(path, content)| (path.clone(), changed.get(path).unwrap_or(content).clone()))
        .collect()
}

impl Stripped {
    fn n_bytes(&self) -> usize {
        match self {
            Self::Changed(changed) => changed
                .iter()
                .map(|(path, text)| path.len() + text.len())
                .sum(),
            Self::Refused(message) => message.len(),
        }
    }
}

impl StrippedPrograms {
    /// The place of the scripts of a digest.
    fn entry(&mut self, digest: [u8; 32]) -> Scripts {
        self.clock += 1;
        let used = self.clock;
        if !self.programs.contains_key(&digest) {
            self.make_room(0);
        }
        let entry = self.programs.entry(digest).or_insert_with(|| Entry {
            used,
            n_bytes: 0,
            scripts: Scripts::default(),
        });
        entry.used = used;
        entry.scripts.clone()
    }

    /// Counts what has come into a place; what is too large to be kept is forgotten.
    fn settled(&mut self, digest: [u8; 32], scripts: &Scripts, n_bytes: usize) {
        let is_new = self
            .programs
            .get(&digest)
            .is_some_and(|entry| entry.n_bytes == 0 && Arc::ptr_eq(&entry.scripts, scripts));
        if !is_new || n_bytes == 0 {
            return;
        }
        let Some(mut entry) = self.programs.remove(&digest) else {
            return;
        };
        if n_bytes > MAX_KEPT_BYTES {
            return;
        }
        self.make_room(n_bytes);
        entry.n_bytes = n_bytes;
        self.n_bytes += n_bytes;
        self.programs.insert(digest, entry);
    }

    fn forget(&mut self, digest: [u8; 32], scripts: &Scripts) {
        let entry = self.programs.get(&digest);
        if entry.is_some_and(|entry| Arc::ptr_eq(&entry.scripts, scripts))
            && let Some(entry) = self.programs.remove(&digest)
        {
            self.n_bytes -= entry.n_bytes;
        }
    }

    /// Forgets what was used longest ago until there is room for one more.
    fn make_room(&mut self, n_bytes: usize) {
        while self.programs.len() >= MAX_KEPT || self.n_bytes + n_bytes > MAX_KEPT_BYTES {
            let oldest = self.programs.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(digest, _)| *digest) else {
                return;
            };
            if let Some(entry) = self.programs.remove(&oldest) {
                self.n_bytes -= entry.n_bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: Answer, text: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind as u8];
        if kind != Answer::Same {
            put(&mut bytes, text);
        }
        bytes
    }

    fn read(answered: &[u8]) -> Option<Stripped> {
        read_answers(answered, &mut ["a.ts", "b.ts"].into_iter())
    }

    #[test]
    fn answers_are_read_script_by_script() {
        let both = [answer(Answer::Same, b""), answer(Answer::Changed, b"x")].concat();
        let changed = BTreeMap::from([("b.ts".to_owned(), Arc::new(b"x".to_vec()))]);
        assert_eq!(read(&both), Some(Stripped::Changed(changed)));
        let refused = answer(Answer::Refused, b"a.ts:1:1: no");
        assert_eq!(
            read(&refused),
            Some(Stripped::Refused("a.ts:1:1: no".to_owned()))
        );
    }

    #[test]
    fn an_answer_that_is_not_whole_or_not_text_is_none() {
        let changed = answer(Answer::Changed, b"text");
        for damaged in [
            &b""[..],
            &[9],
            &changed,
            &changed[..3],
            &answer(Answer::Changed, b"\xff"),
        ] {
            assert_eq!(read(damaged), None);
        }
    }

    #[test]
    fn the_script_that_a_worker_ended_over_is_named() {
        let content = Arc::new(Vec::new());
        let scripts = [("a.ts", &content), ("b.ts", &content)];
        let one = answer(Answer::Changed, b"x");
        assert_eq!(first_without_answer(b"", &scripts), "a.ts");
        assert_eq!(first_without_answer(&one, &scripts), "b.ts");
        assert_eq!(first_without_answer(&one[..2], &scripts), "a.ts");
        assert_eq!(first_without_answer(&one.repeat(3), &scripts), "b.ts");
    }

    #[test]
    fn what_is_kept_is_bounded_by_bytes_and_by_number() {
        let mut kept = StrippedPrograms::default();
        for n in 0..2 * MAX_KEPT {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&n.to_le_bytes());
            let scripts = kept.entry(digest);
            kept.settled(digest, &scripts, MAX_KEPT_BYTES / 100);
            kept.settled(digest, &scripts, MAX_KEPT_BYTES / 100);
        }
        assert_eq!(kept.programs.len(), 100);
        assert_eq!(kept.n_bytes, MAX_KEPT_BYTES / 100 * 100);
        let scripts = kept.entry([9; 32]);
        kept.settled([9; 32], &scripts, MAX_KEPT_BYTES + 1);
        assert!(!kept.programs.contains_key(&[9; 32]));
        for n in 0..2 * MAX_KEPT {
            let mut digest = [1; 32];
            digest[..8].copy_from_slice(&n.to_le_bytes());
            kept.entry(digest);
        }
        assert_eq!(kept.programs.len(), MAX_KEPT);
        kept.programs.clear();
    }
}
