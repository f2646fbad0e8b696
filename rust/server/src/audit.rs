//! The audit: a line of JSON for each thing that a client changes, or tries to and may not.
//!
//! Lines go to a file of their own or, without one, to the log under the target `audit`. A thread writes them, so that
//! a slow disk holds up nobody; where it does not keep up, lines are counted and left out, and the next line says how
//! many. A user who makes many has a part of those that wait: beyond it the latest of its own are left out. A file that
//! was moved away, as tools that rotate logs do, is made anew.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pie_host::{Error, ErrorCode};
use serde_json::{Value, json};

use crate::auth::identity::Identity;
use crate::clock::now_s;
use crate::sync::lock;

/// Lines that wait to be written.
const MAX_WAITING: usize = 4096;
/// Of which so many are one user's.
const MAX_WAITING_OF_USER: u32 = 256;
/// Characters of what a client chose that stand in a line.
const MAX_TEXT_CHARS: usize = 200;
/// Ids of keys that stand in a line.
const MAX_IDS: usize = 20;
/// Lines a minute about clients that were not let in: anybody can make them. What is beyond is counted.
const MAX_TURNED_AWAY: u32 = 600;
/// How often a failing disk is told of.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Where the lines go.
#[derive(Debug)]
pub(crate) struct Audit {
    /// None: to the log.
    file: Option<Writer>,
    turned_away: Mutex<TurnedAway>,
}

/// Clients that were not let in, within the running minute.
#[derive(Debug, Default)]
struct TurnedAway {
    since: Option<Instant>,
    n_told: u32,
    /// That no line tells of, since the last line.
    n_untold: u64,
}

impl TurnedAway {
    /// Counts one more. Some: it is to be told of, and so many before it were not.
    fn tell(&mut self, now: Instant) -> Option<u64> {
        const MINUTE: Duration = Duration::from_secs(60);
        if self
            .since
            .is_none_or(|since| now.saturating_duration_since(since) >= MINUTE)
        {
            (self.since, self.n_told) = (Some(now), 0);
        }
        if self.n_told == MAX_TURNED_AWAY {
            self.n_untold += 1;
            return None;
        }
        self.n_told += 1;
        Some(std::mem::take(&mut self.n_untold))
    }
}

#[derive(Debug)]
struct Writer {
    /// None once it is closed.
    lines: Mutex<Option<SyncSender<Line>>>,
    waiting: Waiting,
    thread: Mutex<Option<JoinHandle<()>>>,
    n_lost: Arc<AtomicU64>,
}

/// A line that waits to be written, and the user that it tells of.
struct Line {
    user: Option<String>,
    text: String,
}

/// Lines that wait, by user. Those who have none are not in it.
#[derive(Clone, Debug, Default)]
struct Waiting(Arc<Mutex<HashMap<String, u32>>>);

impl Waiting {
    /// Counts one more; false where the user has too many.
    fn add(&self, user: &str) -> bool {
        let mut waiting = lock(&self.0);
        let n = waiting.entry(user.to_owned()).or_default();
        let has_room = *n < MAX_WAITING_OF_USER;
        *n += u32::from(has_room);
        has_room
    }

    /// One of them waits no more.
    fn remove(&self, user: &str) {
        let mut waiting = lock(&self.0);
        if let Some(n) = waiting.get_mut(user) {
            *n -= 1;
            if *n == 0 {
                waiting.remove(user);
            }
        }
    }
}

impl Audit {
    /// Opens the file at `path`, at whose end is written; none: lines go to the log.
    ///
    /// # Errors
    /// `invalid-config` for a file that cannot be written, `internal` when no thread can be started.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path else {
            return Ok(Self {
                file: None,
                turned_away: Mutex::default(),
            });
        };
        let file = opened(path).map_err(|error| {
            let message = format!(
                "the audit log {} cannot be written ({error}); give another path with server.audit_log, or leave it out",
                path.display()
            );
            Error::new(ErrorCode::InvalidConfig, message)
        })?;
        let (lines, waiting) = sync_channel(MAX_WAITING);
        let n_lost = Arc::new(AtomicU64::new(0));
        let log = Log {
            path: path.to_owned(),
            file: Some(file),
            n_lost: n_lost.clone(),
            told: None,
        };
        let counted = Waiting::default();
        let written = counted.clone();
        let thread = std::thread::Builder::new()
            .name("pie-audit".to_owned())
            .spawn(move || log.run(&waiting, &written))
            .map_err(Error::internal)?;
        let writer = Writer {
            lines: Mutex::new(Some(lines)),
            waiting: counted,
            thread: Mutex::new(Some(thread)),
            n_lost,
        };
        Ok(Self {
            file: Some(writer),
            turned_away: Mutex::default(),
        })
    }

    /// A client has done something, or was refused. `object` is what it did it to, as the client wrote it.
    pub(crate) fn note(
        &self,
        who: &Identity,
        verb: &str,
        object: &str,
        outcome: Result<(), &Error>,
    ) {
        if !self.is_heard() {
            return;
        }
        self.write(Some(&who.user), &json!({
            "time": now_s(), "user": who.user, "role": who.role.name(), "key": who.key, "address": who.address.to_string(),
            "verb": plain(verb), "object": plain(object), "outcome": outcome.map_or_else(|error| error.code.as_str(), |()| "ok"),
        }));
    }

    /// Somebody was not let in. Of so many a minute that they would push aside what clients did, a part is counted
    /// only.
    pub(crate) fn turned_away(&self, address: IpAddr, user: &str, error: &Error) {
        let Some(n_untold) = lock(&self.turned_away).tell(Instant::now()) else {
            return;
        };
        self.write(None, &json!({
            "time": now_s(), "user": plain(user), "role": null, "key": null, "address": address.to_string(),
            "verb": "hello", "object": "", "outcome": error.code.as_str(), "n_untold": n_untold,
        }));
    }

    /// The file of the keys has changed.
    pub(crate) fn keys_changed(&self, added: &[String], removed: &[String]) {
        let some = |ids: &[String]| {
            ids.iter()
                .take(MAX_IDS)
                .map(|id| plain(id))
                .collect::<Vec<_>>()
        };
        self.write(None, &json!({
            "time": now_s(), "user": null, "role": null, "key": null, "address": null, "verb": "keys", "object": "", "outcome": "ok",
            "added": some(added), "n_added": added.len(), "removed": some(removed), "n_removed": removed.len(),
        }));
    }

    /// Writes what waits, and ends.
    pub(crate) fn close(&self) {
        let Some(writer) = &self.file else {
            return;
        };
        drop(lock(&writer.lines).take());
        if let Some(thread) = lock(&writer.thread).take() {
            // A panic of the thread was printed when it happened.
            drop(thread.join());
        }
    }

    /// False where nobody would read a line: then none is made.
    fn is_heard(&self) -> bool {
        self.file.is_some() || tracing::enabled!(target: "audit", tracing::Level::INFO)
    }

    /// Has a line written, of what that user did.
    fn write(&self, user: Option<&str>, line: &Value) {
        let Some(writer) = &self.file else {
            tracing::info!(target: "audit", "{line}");
            return;
        };
        let Some(lines) = &*lock(&writer.lines) else {
            return;
        };
        let mut is_lost = user.is_some_and(|user| !writer.waiting.add(user));
        if !is_lost {
            let line = Line {
                user: user.map(str::to_owned),
                text: line.to_string(),
            };
            if let Err(TrySendError::Full(line) | TrySendError::Disconnected(line)) =
                lines.try_send(line)
            {
                line.user
                    .iter()
                    .for_each(|user| writer.waiting.remove(user));
                is_lost = true;
            }
        }
        if is_lost {
            writer.n_lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The file, as its thread has it.
struct Log {
    path: PathBuf,
    /// None while it cannot be opened.
    file: Option<File>,
    n_lost: Arc<AtomicU64>,
    /// When a failure was told last.
    told: Option<Instant>,
}

impl Log {
    fn run(mut self, lines: &Receiver<Line>, waiting: &Waiting) {
        while let Ok(line) = lines.recv() {
            line.user.iter().for_each(|user| waiting.remove(user));
            let n_lost = self.n_lost.swap(0, Ordering::Relaxed);
            let mut text = String::new();
            if n_lost > 0 {
                let gap = json!({ "time": now_s(), "verb": "lines-lost", "n": n_lost });
                writeln!(text, "{gap}").unwrap_or_default();
            }
            writeln!(text, "{}", line.text).unwrap_or_default();
            if let Err(error) = self.append(&text) {
                self.file = None;
                self.n_lost.fetch_add(n_lost + 1, Ordering::Relaxed);
                self.tell(&error);
            }
        }
    }

    fn append(&mut self, text: &str) -> io::Result<()> {
        let is_there = self
            .file
            .as_ref()
            .is_some_and(|file| is_same(file, &self.path));
        if !is_there {
            self.file = Some(opened(&self.path)?);
        }
        self.file
            .as_mut()
            .map_or(Ok(()), |file| file.write_all(text.as_bytes()))
    }

    fn tell(&mut self, error: &io::Error) {
        if self.told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            self.told = Some(Instant::now());
            tracing::error!(%error, path = %self.path.display(), "the audit log cannot be written: lines are counted and left out");
        }
    }
}

fn opened(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// True while the file at the path is this one.
fn is_same(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(there)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (open.dev(), open.ino()) == (there.dev(), there.ino())
}

/// A text of a client in characters that do nothing to whoever looks at them, and not too many of them.
fn plain(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars().take(MAX_TEXT_CHARS) {
        if character == ' ' || character.is_ascii_graphic() {
            shown.push(character);
        } else {
            write!(shown, "{}", character.escape_unicode()).unwrap_or_default();
        }
    }
    if text.chars().nth(MAX_TEXT_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Role;

    fn who() -> Identity {
        Identity {
            user: "alice".to_owned(),
            role: Role::User,
            key: Some("0a".to_owned()),
            address: IpAddr::from([1, 2, 3, 4]),
        }
    }

    fn empty() -> Line {
        Line {
            user: None,
            text: "{}".to_owned(),
        }
    }

    fn lines(path: &Path) -> Vec<Value> {
        fs::read_to_string(path)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn strangers_push_nothing_aside() {
        let (mut away, start) = (TurnedAway::default(), Instant::now());
        for _ in 0..MAX_TURNED_AWAY {
            assert_eq!(away.tell(start), Some(0));
        }
        for _ in 0..5 {
            assert_eq!(away.tell(start + Duration::from_secs(59)), None);
        }
        assert_eq!(away.tell(start + Duration::from_secs(60)), Some(5));
        assert_eq!(away.tell(start + Duration::from_secs(60)), Some(0));
    }

    #[test]
    fn of_a_user_who_makes_many_lines_the_latest_are_left_out() {
        let (lines, written) = sync_channel(MAX_WAITING);
        let audit = Audit {
            file: Some(Writer {
                lines: Mutex::new(Some(lines)),
                waiting: Waiting::default(),
                thread: Mutex::default(),
                n_lost: Arc::default(),
            }),
            turned_away: Mutex::default(),
        };
        let many = MAX_WAITING_OF_USER + 5;
        (0..many).for_each(|_| audit.note(&who(), "launch", "greeter", Ok(())));
        let bob = Identity {
            user: "bob".to_owned(),
            ..who()
        };
        audit.note(&bob, "launch", "greeter", Ok(()));
        let writer = audit.file.unwrap();
        assert_eq!(writer.n_lost.load(Ordering::Relaxed), 5);
        drop(lock(&writer.lines).take());
        let users: Vec<_> = written.iter().filter_map(|line| line.user).collect();
        assert_eq!(users.len(), MAX_WAITING_OF_USER as usize + 1);
        assert_eq!(users.last().unwrap(), "bob");
        users.iter().for_each(|user| writer.waiting.remove(user));
        assert!(lock(&writer.waiting.0).is_empty());
    }

    #[test]
    fn lines_say_who_did_what_to_what() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = Audit::open(Some(&path)).unwrap();
        audit.note(&who(), "launch", "greeter@1.0", Ok(()));
        let hostile = format!("a\n\"\u{202e}\u{7}{}", "x".repeat(5000));
        audit.note(
            &who(),
            "uninstall",
            &hostile,
            Err(&Error::new(ErrorCode::UnknownProgram, "no")),
        );
        audit.close();
        let written = lines(&path);
        assert_eq!(written[0]["user"], "alice");
        assert_eq!(
            (&written[0]["key"], &written[0]["address"]),
            (&json!("0a"), &json!("1.2.3.4"))
        );
        assert_eq!(
            (
                &written[0]["verb"],
                &written[0]["object"],
                &written[0]["outcome"]
            ),
            (&json!("launch"), &json!("greeter@1.0"), &json!("ok"))
        );
        assert_eq!(written[1]["outcome"], "unknown-program");
        assert!(
            written[1]["object"]
                .as_str()
                .unwrap()
                .starts_with("a\\u{a}\"\\u{202e}\\u{7}xxx")
        );
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.is_ascii() && text.lines().all(|line| line.len() < 1000));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_was_moved_away_is_made_anew_and_what_is_lost_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut log = Log {
            path: path.clone(),
            file: None,
            n_lost: Arc::default(),
            told: None,
        };
        log.append("{}\n").unwrap();
        fs::rename(&path, folder.path().join("old")).unwrap();
        log.append("{}\n").unwrap();
        assert_eq!(lines(&path).len(), 1);
        // A folder in its place cannot be written.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let (sender, waiting) = sync_channel(8);
        sender.send(empty()).unwrap();
        drop(sender);
        let n_lost = log.n_lost.clone();
        log.run(&waiting, &Waiting::default());
        assert_eq!(n_lost.load(Ordering::Relaxed), 1);
        fs::remove_dir(&path).unwrap();
        let log = Log {
            path: path.clone(),
            file: None,
            n_lost,
            told: None,
        };
        let (sender, waiting) = sync_channel(8);
        sender.send(empty()).unwrap();
        drop(sender);
        log.run(&waiting, &Waiting::default());
        assert_eq!(lines(&path)[0]["n"], 1);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_at_the_start() {
        let error = Audit::open(Some(Path::new("/nonexistent/audit"))).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidConfig);
    }
}
