//! The processes of all clients: whose they are, how long they live, and what is kept of those that have ended.

mod child_place;
mod numbers;
mod observer;
mod shelf;
mod table;

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pie_host::{
    Error, ErrorCode, Event, Holding, Host, Inherited, Launch, Reader, ServedProcess, Serving,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

pub(crate) use self::child_place::ChildPlace;
pub(crate) use self::numbers::Numbers;
use self::observer::ProcessObserver;
use self::table::{Asking, End, Entry, Still, Table, WaitsFor};
pub(crate) use self::table::{ConnectionId, Counts};
use crate::ServerConfig;
use crate::client_places::Address;
use crate::clock::now_s;
use crate::log_writer::PROCESS_LOG;
use crate::pacing::Pacing;
use crate::plain::plain;
use crate::sync::lock;

/// Lines a second that tell of launches and ends.
const TOLD_LINES: u32 = 100;
/// Lines a second that all programs together have in the log.
const PROGRAM_LINES: u32 = 200;
/// How long a launch waits for the place of a process that was told to end for it.
const PLACE_TIME: Duration = Duration::from_secs(20);

/// Who launches, and how.
pub(crate) struct Launcher {
    pub(crate) user: String,
    /// Where the client is, where addresses are counted; of a program, where those of its user were launched from.
    pub(crate) address: Option<Address>,
    /// None: a program does, for itself.
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) detached: bool,
    /// What the client calls the file that it has uploaded, where the program is one.
    pub(crate) name: Option<String>,
    /// The window of the reader, where one shall be attached.
    pub(crate) window_bytes: Option<usize>,
    /// What it has of the process that starts it; none: a client launches it.
    pub(crate) inherited: Option<Inherited>,
}

impl Launcher {
    fn asking(&self) -> Asking<'_> {
        Asking {
            user: &self.user,
            address: self.address,
        }
    }
}

/// The processes of all clients.
pub(crate) struct Processes {
    numbers: Arc<Numbers>,
    table: Mutex<Table>,
    /// Something is due earlier than before.
    due: Notify,
    /// The last process has ended.
    idle: Notify,
    /// A process has ended.
    left: Notify,
    grace: Duration,
    kept_bytes: usize,
    log_bytes: usize,
    /// Of the lines that tell of launches and ends.
    pacing: Pacing,
    /// Of what all programs write to standard error.
    program_pacing: Arc<Pacing>,
}

/// The place of a process, kept for something else.
pub(crate) struct ReservedPlace {
    processes: Arc<Processes>,
    user: String,
}

impl Drop for ReservedPlace {
    fn drop(&mut self) {
        lock(&self.processes.table).release(&self.user);
        self.processes.left.notify_waiters();
    }
}

impl Processes {
    /// At most so many live at once.
    pub(crate) fn new(config: &ServerConfig, numbers: Numbers, most_live: usize) -> Self {
        Self {
            numbers: Arc::new(numbers),
            table: Mutex::new(Table::new(config, most_live)),
            due: Notify::new(),
            idle: Notify::new(),
            left: Notify::new(),
            grace: config.grace,
            kept_bytes: config.kept_bytes,
            log_bytes: config.log_bytes,
            pacing: Pacing::new(TOLD_LINES, "launches and ends"),
            program_pacing: Arc::new(Pacing::new(PROGRAM_LINES, "lines of all programs")),
        }
    }

    /// Launches a program for whoever `launcher` says. Lists show it under the given label. Where every place is taken,
    /// a process of a user with more of them, or of an address with more, ends for it, which is waited for.
    ///
    /// # Errors
    /// `server-draining`, `limit-processes` when too many of the user live or no place became free, and those of the
    /// host.
    pub(crate) async fn launch(
        self: &Arc<Self>,
        host: &Host,
        launch: Launch,
        label: String,
        launcher: Launcher,
    ) -> Result<(ServedProcess, Option<Reader>), Error> {
        self.reserve(launcher.asking()).await?;
        self.launch_reserved(host, launch, label, launcher)
    }

    /// The same for a program that another one starts, which does not wait.
    ///
    /// # Errors
    /// As [`Processes::launch`].
    pub(crate) fn launch_now(
        self: &Arc<Self>,
        host: &Host,
        launch: Launch,
        label: String,
        mut launcher: Launcher,
    ) -> Result<(ServedProcess, Option<Reader>), Error> {
        let mut table = lock(&self.table);
        table.check_open()?;
        table.reserve_child(&launcher.user, Instant::now())?;
        launcher.address = table.address_of(&launcher.user);
        drop(table);
        self.launch_reserved(host, launch, label, launcher)
    }

    /// A place for what is no process of the user, but takes the room of one; dropping it gives it back.
    ///
    /// # Errors
    /// As [`Processes::launch`].
    pub(crate) async fn place(
        self: &Arc<Self>,
        user: &str,
        address: Option<Address>,
    ) -> Result<ReservedPlace, Error> {
        self.reserve(Asking { user, address }).await?;
        Ok(ReservedPlace {
            processes: self.clone(),
            user: user.to_owned(),
        })
    }

    /// Counts a process of whoever asks, when there is a place for it.
    async fn reserve(&self, asking: Asking<'_>) -> Result<(), Error> {
        let mut waits_for = WaitsFor::default();
        let reserved = async {
            loop {
                let mut left = pin!(self.left.notified());
                // What ends from here on is heard of.
                left.as_mut().enable();
                if lock(&self.table).reserve(asking, &mut waits_for, Instant::now())? {
                    return Ok::<(), Error>(());
                }
                left.await;
            }
        };
        tokio::time::timeout(PLACE_TIME, reserved)
            .await
            .unwrap_or_else(|_| {
                let message = "every place of engine.max_processes is taken, and the process that should give one up has not ended yet; launch again";
                Err(Error::new(ErrorCode::LimitProcesses, message))
            })
    }

    fn launch_reserved(
        self: &Arc<Self>,
        host: &Host,
        launch: Launch,
        label: String,
        launcher: Launcher,
    ) -> Result<(ServedProcess, Option<Reader>), Error> {
        let Launcher {
            user,
            address,
            connection,
            detached,
            name,
            window_bytes,
            inherited,
        } = launcher;
        let launch = Launch {
            username: Some(user.clone()),
            ..launch
        };
        let serving = Serving {
            kept_bytes: self.kept_bytes,
            log_bytes: self.log_bytes,
            window_bytes,
            observer: Arc::new(self.observer(shown(name.as_deref(), &label))),
        };
        let launched = host.launch_served(launch, inherited, serving);
        let mut table = lock(&self.table);
        match launched {
            Ok((process, reader)) => {
                self.reserve_numbers(host.next_count());
                let entry = Entry {
                    user,
                    address,
                    place: 0,
                    label,
                    name,
                    process: process.clone(),
                    detached,
                    holder: connection,
                    grace_until: None,
                    started_s: now_s(),
                    end: None,
                    still: Still::new(Instant::now()),
                };
                self.enter(&mut table, entry);
                if connection.is_none() {
                    self.due.notify_one();
                }
                Ok((process, reader))
            }
            Err(error) => {
                table.release(&user);
                self.left.notify_waiters();
                Err(error)
            }
        }
    }

    /// Enters a process that was launched, and tells of it.
    fn enter(&self, table: &mut Table, entry: Entry) {
        let pid = entry.process.pid();
        self.tell(|| {
            let program = shown(entry.name.as_deref(), &entry.label);
            format!("process {pid} launched: {program} of {}", entry.user)
        });
        table.insert(entry);
        // It may have ended before it stood there.
        if let Some(entry) = table.entry(pid)
            && let Some(end) = &entry.end
        {
            self.tell(|| ended_line(entry, &end.exit, end.at_s));
        }
    }

    /// Counts a child that a process of the user starts, until what it gives is dropped; `next` is the count of the
    /// next process.
    ///
    /// # Errors
    /// `limit-processes` when too many of the user live.
    pub(crate) fn admit(self: &Arc<Self>, user: &str, next: u64) -> Result<ChildPlace, Error> {
        lock(&self.table).reserve_child(user, Instant::now())?;
        self.reserve_numbers(next);
        // Weak: the table holds processes, and they hold the places of their children.
        let (processes, user) = (Arc::downgrade(self), user.to_owned());
        Ok(ChildPlace::new(move || {
            if let Some(processes) = processes.upgrade() {
                processes.release_child(&user);
            }
        }))
    }

    /// A child of the user has ended.
    fn release_child(&self, user: &str) {
        let mut table = lock(&self.table);
        table.release(user);
        let idle = table.counts().0 == 0;
        drop(table);
        self.left.notify_waiters();
        if idle {
            self.idle.notify_waiters();
        }
    }

    /// Tells the log of a launch or an end. Of very many within a moment, the line after them says how many were left
    /// out.
    fn tell(&self, line: impl FnOnce() -> String) {
        if tracing::enabled!(target: PROCESS_LOG, tracing::Level::INFO) {
            self.pacing.lines(&line(), Instant::now(), |line| {
                tracing::info!(target: PROCESS_LOG, "{line}");
            });
        }
    }

    /// The observer of a process; `shown` is what people know its program as.
    fn observer(self: &Arc<Self>, shown: String) -> ProcessObserver {
        // Weak: the table holds the processes, and they hold their observers.
        let processes = Arc::downgrade(self);
        let ended = move |pid, last: &Event| {
            if let Some(processes) = processes.upgrade() {
                processes.ended(pid, last);
            }
        };
        ProcessObserver::new(shown, self.program_pacing.clone(), Box::new(ended))
    }

    /// Reserves more numbers on disk where few are left, without waiting for it: half of those reserved are left then.
    fn reserve_numbers(&self, next: u64) {
        if self.numbers.are_low(next) {
            let numbers = self.numbers.clone();
            tokio::task::spawn_blocking(move || {
                if let Err(error) = numbers.reserve(next) {
                    tracing::warn!(%error, "the numbers of processes cannot be reserved: they may be given again after a restart");
                }
            });
        }
    }

    /// Gives back the numbers that were reserved; those from `next` on were not given.
    pub(crate) fn close_numbers(&self, next: u64) {
        if let Err(error) = self.numbers.close(next) {
            tracing::warn!(%error, "the numbers of processes cannot be given back: the next server leaves some out");
        }
    }

    /// A process of the user.
    ///
    /// # Errors
    /// `unknown-process` when there is none of that number, or when it is another user's.
    pub(crate) fn of_user(&self, user: &str, pid: u64) -> Result<ServedProcess, Error> {
        lock(&self.table)
            .of_user(user, pid)
            .map(|entry| entry.process.clone())
    }

    /// A process of the user, or of anybody with `any`, and whose it is.
    ///
    /// # Errors
    /// As [`Processes::of_user`].
    pub(crate) fn seen(
        &self,
        user: &str,
        pid: u64,
        any: bool,
    ) -> Result<(String, ServedProcess), Error> {
        let mut table = lock(&self.table);
        let entry = if any {
            table.of_anybody(user, pid)?
        } else {
            table.of_user(user, pid)?
        };
        Ok((entry.user.clone(), entry.process.clone()))
    }

    /// Attaches a connection to a process, which belongs to it from then on. `read_on` is the window in bytes, and the
    /// number of the last event that the client has.
    ///
    /// # Errors
    /// `unknown-process`, `process-attached`, `session-closed` when it has ended and its events were taken, and
    /// `invalid-argument` when the client has, as it says, an event that there is not yet.
    pub(crate) fn attach(
        &self,
        user: &str,
        pid: u64,
        connection: ConnectionId,
        read_on: (usize, u64),
    ) -> Result<Reader, Error> {
        let (window_bytes, after_seq) = read_on;
        let mut table = lock(&self.table);
        let entry = table.of_user(user, pid)?;
        let reader = entry.process.attach(window_bytes, after_seq)?;
        table.hold(pid, connection);
        Ok(reader)
    }

    /// A client of the user is connected; [`Processes::orphan`] follows.
    pub(crate) fn connect(&self, user: &str) {
        lock(&self.table).connect(user, Instant::now());
    }

    /// The connection of the user has ended. Its processes wait for another one; those that are not detached wait for
    /// the time of grace.
    pub(crate) fn orphan(&self, user: &str, connection: ConnectionId) {
        let (mut table, now) = (lock(&self.table), Instant::now());
        table.orphan(connection, now, self.grace);
        table.disconnect(user, now);
        drop(table);
        self.due.notify_one();
    }

    /// The processes of a user as they were launched, or those of all, with whose they are, a row each; those that have
    /// ended only with `all`. One that is forgotten while the rows are taken has none.
    pub(crate) fn list(&self, user: Option<&str>, all: bool) -> impl Iterator<Item = Value> {
        let with_user = user.is_none();
        let listed = lock(&self.table).listed(user);
        listed.into_iter().filter_map(move |pid| {
            let (mut row, process) = {
                let table = lock(&self.table);
                let entry = table.entry(pid).filter(|it| all || it.end.is_none())?;
                (described(entry, with_user), entry.process.clone())
            };
            // Nobody waits for the table while this waits for the models.
            describe_holdings(&mut row, &process.holdings());
            Some(row)
        })
    }

    /// How many of them there are.
    pub(crate) fn n_listed(&self, user: Option<&str>, all: bool) -> usize {
        let table = lock(&self.table);
        let (n_live, n_ended) = match user {
            Some(user) => {
                let counts = table.counts_of(user);
                (counts.n_live, counts.n_ended)
            }
            None => table.counts(),
        };
        if all { n_live + n_ended } else { n_live }
    }

    /// What a user has launched.
    pub(crate) fn counts_of(&self, user: &str) -> Counts {
        lock(&self.table).counts_of(user)
    }

    /// What each user has launched.
    pub(crate) fn counts_by_user(&self) -> Vec<(String, Counts)> {
        let table = lock(&self.table);
        let users = table.users();
        users
            .map(|user| (user.to_owned(), table.counts_of(user)))
            .collect()
    }

    /// True while the process is in the table.
    pub(crate) fn knows(&self, pid: u64) -> bool {
        lock(&self.table).knows(pid)
    }

    /// Processes that live, and that have ended and are kept.
    pub(crate) fn counts(&self) -> (usize, usize) {
        lock(&self.table).counts()
    }

    /// Waits until no process lives.
    pub(crate) async fn all_ended(&self) {
        loop {
            let idle = self.idle.notified();
            if self.counts().0 == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Checks whether launches are still taken, before anything is prepared for one.
    ///
    /// # Errors
    /// `server-draining`.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        lock(&self.table).check_open()
    }

    /// From now on launches are refused.
    pub(crate) fn drain(&self) {
        lock(&self.table).drain();
    }

    /// Ends every process that lives; launches are refused from now on, and one that is under way is ended at once.
    pub(crate) fn cancel_all(&self, reason: &str) {
        lock(&self.table).cancel_all(reason);
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        let forgotten = lock(&self.table).clear();
        drop(forgotten);
    }

    /// Ends what has outlived its grace and forgets what has outlived its retention, for ever.
    pub(crate) async fn tend(&self) {
        loop {
            let due = self.due.notified();
            let next = lock(&self.table).sweep(Instant::now());
            match next {
                Some(next) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(next.into()) => {}
                        () = due => {}
                    }
                }
                None => due.await,
            }
        }
    }

    /// A process has ended with `last`.
    fn ended(&self, pid: u64, last: &Event) {
        let exit = match last {
            Event::Error(failure) => failure.code.clone().unwrap_or_else(|| failure.kind.clone()),
            _ => "return".to_owned(),
        };
        if let Event::Error(failure) = last
            && failure.code.as_deref() == Some(ErrorCode::Internal.as_str())
        {
            // The client learns only that there was a fault.
            tracing::error!(pid, "{}", plain(&failure.message));
        }
        let at_s = now_s();
        let mut table = lock(&self.table);
        if let Some(entry) = table.entry(pid) {
            self.tell(|| ended_line(entry, &exit, at_s));
        }
        table.end(
            pid,
            End {
                at: Instant::now(),
                at_s,
                exit,
                last_bytes: last.payload_bytes(),
            },
        );
        let idle = table.counts().0 == 0;
        drop(table);
        self.due.notify_one();
        self.left.notify_waiters();
        if idle {
            self.idle.notify_waiters();
        }
    }
}

/// A program as people know it: an upload by the name of its file, where it has one, and the beginning of its digest.
fn shown(name: Option<&str>, label: &str) -> String {
    let short = match label.strip_prefix("sha256:") {
        Some(digest) => format!("sha256:{}", digest.get(..12).unwrap_or(digest)),
        None => label.to_owned(),
    };
    match name {
        Some(name) => format!("{name} ({short})"),
        None => short,
    }
}

/// What the log says of the end of a process.
fn ended_line(entry: &Entry, exit: &str, at_s: f64) -> String {
    let program = shown(entry.name.as_deref(), &entry.label);
    format!(
        "process {} ended after {:.2} s ({exit}): {program} of {}",
        entry.process.pid(),
        (at_s - entry.started_s).max(0.0),
        entry.user
    )
}

/// A process as it is listed, but for what it has of the market for pages.
fn described(entry: &Entry, with_user: bool) -> Value {
    let process = &entry.process;
    let mut row = json!({
        "pid": process.pid(),
        "program": entry.label,
        "name": entry.name,
        "state": if entry.end.is_some() { "ended" } else { "running" },
        "attached": process.is_attached(),
        "detached": entry.detached,
        "started": entry.started_s,
        "ended": entry.end.as_ref().map(|end| end.at_s),
        "cpu_s": process.cpu().as_secs_f64(),
        "exit": entry.end.as_ref().map(|end| end.exit.as_str()),
        "dropped": process.n_dropped(),
        "tokens": process.n_tokens(),
    });
    if with_user {
        row["user"] = json!(entry.user);
    }
    row
}

/// Adds what a process has of the market for pages, by the names of the models.
fn describe_holdings(row: &mut Value, holdings: &[Holding]) {
    let of_models = |read: fn(&Holding) -> f64| {
        let entries = holdings.iter();
        let entries = entries.map(|holding| (holding.model.clone(), json!(read(holding))));
        Value::Object(entries.collect())
    };
    row["credits"] = of_models(|holding| holding.balance);
    row["bids"] = of_models(|holding| holding.bid);
}
