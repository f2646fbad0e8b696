//! Requests about processes.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use pie_host::{Finding, Launch, Named, Program, Reader, ServedProcess, Value};

use super::*;
use crate::processes::Launcher;
use crate::protocol::body::Body;
use crate::protocol::incoming::{self as wire, Attach, Fields, Logs, OfProcess, Send};

/// Bytes of a number that is looked at.
const MAX_NUMBER_BYTES: usize = 64;

impl Session {
    /// Launches a program; what has to be read from the disk first does not hold up other requests.
    pub(super) async fn launch(&mut self, mut request: Request) {
        let id = request.id;
        let fields = match request.fields::<wire::Launch>() {
            Ok(fields) => fields,
            Err(error) => return self.answer(id, Err(error)).await,
        };
        let note = self.note("launch", fields.program.clone());
        match self.launching(id, &fields) {
            Ok((launching, wanted)) => {
                let is_at_hand = wanted.is_at_hand();
                let launch = launching.launch(fields, wanted, note);
                if is_at_hand {
                    launch.await;
                } else {
                    self.spawn(launch);
                }
            }
            Err(error) => self.answer(id, note.of(Err(error))).await,
        }
    }

    /// Checks what is asked for; gives the programs of the launch too, or what finds them.
    fn launching(&self, id: u64, fields: &wire::Launch) -> Result<(Launching, Wanted), Error> {
        self.shared.processes.check_open()?;
        // Before anything is read for a launch that fails.
        let limits = fields.limits.as_ref().map(limits).transpose()?;
        let names = fields.programs.as_ref().map(programs).transpose()?;
        let wanted = Wanted {
            program: self.found(&fields.program)?,
            programs: names
                .unwrap_or_default()
                .into_iter()
                .map(|(name, program)| Ok((name, self.found(&program)?)))
                .collect::<Result<_, Error>>()?,
        };
        let uploaded = lock(&self.uploads).get(&fields.program);
        let window_bytes = self.window(fields.window_bytes)?;
        let attach = fields.attach.unwrap_or(false);
        if attach {
            lock(&self.attachments).make_room(|pid| self.shared.processes.knows(pid))?;
        }
        let launching = Launching {
            id,
            limits: limits.unwrap_or_default(),
            launcher: Launcher {
                user: self.user.clone(),
                address: self.counted_address,
                connection: Some(self.id),
                detached: fields.detached.unwrap_or(false),
                name: uploaded.and_then(|arrived| arrived.name),
                window_bytes: attach.then_some(window_bytes),
                inherited: None,
            },
            mcp: self.mcp.clone(),
            shared: self.shared.clone(),
            attachments: self.attachments.clone(),
            outbox: self.outbox.clone(),
            replies: self.replies.clone(),
        };
        Ok((launching, wanted))
    }

    /// The program that a client calls so: what it has uploaded, or what is installed.
    fn found(&self, name: &str) -> Result<Lookup, Error> {
        if let Some(arrived) = lock(&self.uploads).get(name) {
            return Ok(Lookup::Here(Named {
                label: name.to_owned(),
                program: arrived.program,
            }));
        }
        let mut finding = self.shared.host.find_program(&self.user, name);
        match (&mut finding).now_or_never() {
            Some(found) => Ok(Lookup::Here(found?)),
            None => Ok(Lookup::Later(finding)),
        }
    }

    /// A process that the client gives input to, as the host finds it for programs.
    fn process(&self, pid: u64) -> Result<ServedProcess, Error> {
        self.shared.host.find_process(&self.user, pid)
    }

    /// Attaches to a process. The answer is sent before the first event.
    pub(super) async fn attach(&mut self, mut request: Request) {
        let id = request.id;
        let fields = match request.fields::<Attach>() {
            Ok(fields) => fields,
            Err(error) => return self.answer(id, Err(error)).await,
        };
        let note = self.note("attach", fields.pid.to_string());
        match self.attached(&fields) {
            Ok((pid, reader)) => {
                note.outcome(Ok(()));
                let answer = json!({ "pid": pid, "next_seq": reader.first_seq() });
                let answered = lock(&self.attachments).add(pid, reader, &self.outbox);
                self.answer(id, Ok(answer)).await;
                answered.go();
            }
            Err(error) => self.answer(id, note.of(Err(error))).await,
        }
    }

    fn attached(&self, fields: &Attach) -> Result<(u64, Reader), Error> {
        let window_bytes = self.window(fields.window_bytes)?;
        lock(&self.attachments).make_room(|pid| self.shared.processes.knows(pid))?;
        let read_on = (window_bytes, fields.after_seq.unwrap_or(0));
        let reader = self
            .shared
            .processes
            .attach(&self.user, fields.pid, self.id, read_on)
            .map_err(|refused| self.not_attached(fields.pid, refused))?;
        Ok((fields.pid, reader))
    }

    /// Says of a process to which this connection is attached that it is this one.
    fn not_attached(&self, pid: u64, refused: Error) -> Error {
        let is_taken = refused.code == ErrorCode::ProcessAttached;
        if !is_taken || !lock(&self.attachments).has(pid) {
            return refused;
        }
        let message = format!(
            "this connection is attached to process {pid} already; use that process, or detach() from it first"
        );
        Error::new(ErrorCode::ProcessAttached, message)
    }

    pub(super) fn detach(&self, request: &mut Request) -> Answer {
        let OfProcess { pid } = request.fields()?;
        // A process that is forgotten may still be attached.
        if !lock(&self.attachments).remove(pid) {
            self.shared.processes.of_user(&self.user, pid)?;
        }
        Ok(json!({}))
    }

    pub(super) fn send(&self, request: &mut Request) -> Answer {
        let Send { pid, text } = request.fields()?;
        let sent = self.process(pid).and_then(|process| process.send(text));
        self.told_once(&request.kind, pid, sent)
    }

    pub(super) fn send_file(&self, request: &mut Request, payload: &[u8]) -> Answer {
        let OfProcess { pid } = request.fields()?;
        let process = self.process(pid);
        let sent = process.and_then(|process| process.send_file(payload.to_vec()));
        self.told_once(&request.kind, pid, sent)
    }

    pub(super) fn close_input(&self, request: &mut Request) -> Answer {
        let OfProcess { pid } = request.fields()?;
        let closed = self.process(pid).map(|process| process.close_input());
        self.told_once(&request.kind, pid, closed)
    }

    /// The answer of a request that is made often: the audit tells of the first of a connection to a process, and of
    /// the first that failed.
    fn told_once(&self, verb: &str, pid: u64, outcome: Result<(), Error>) -> Answer {
        let answer = outcome.map(|()| json!({}));
        if lock(&self.told).is_first(verb, pid, answer.is_ok()) {
            return self.note(verb, pid.to_string()).of(answer);
        }
        answer
    }

    pub(super) fn terminate(&self, request: &mut Request) -> Answer {
        let OfProcess { pid } = request.fields()?;
        let process = self.seen(pid).map(|(user, process)| {
            let by = if user == self.user {
                "its user"
            } else {
                "an operator"
            };
            process.cancel(&format!("the process was terminated by {by}"));
            json!({})
        });
        self.note("terminate", pid.to_string()).of(process)
    }

    /// Answers how a process ended. What it says is not copied, but written from where it lies.
    pub(super) async fn outcome(&self, request: &mut Request) {
        let id = request.id;
        let process = request
            .fields::<OfProcess>()
            .and_then(|OfProcess { pid }| self.seen(pid));
        match process {
            Ok((_, process)) => {
                let body = Body::outcome(id, process.outcome().as_ref());
                self.replies.body(id, body).await;
            }
            Err(error) => self.answer(id, Err(error)).await,
        }
    }

    /// Answers with output that is kept, with `follow` when there is some.
    pub(super) async fn logs(&mut self, mut request: Request) {
        let id = request.id;
        let found = request.fields::<Logs>().and_then(|fields| {
            let (_, process) = self.seen(fields.pid)?;
            Ok((fields, process))
        });
        match found {
            Ok((fields, process)) => {
                let after = fields.after.unwrap_or(0);
                let most = self.shared.host.limits().message_bytes;
                let tail_bytes = fields.tail_bytes.unwrap_or(usize::MAX);
                let kept = self.shared.config.log_bytes;
                let replies = self.replies.clone();
                self.spawn(async move {
                    if fields.follow.unwrap_or(false) {
                        process.log_grown(after).await;
                    }
                    let made = async {
                        let mut log = process.log(after, tail_bytes);
                        // The client reads on from `next`.
                        let n_bytes = log.text.floor_char_boundary(most);
                        log.next -= (log.text.len() - n_bytes) as u64;
                        log.text.truncate(n_bytes);
                        Body::log(id, log)
                    };
                    // Many may be asked for at once: each is made only when there is room for it.
                    replies.made(id, tail_bytes.min(kept), made).await;
                });
            }
            Err(error) => self.answer(id, Err(error)).await,
        }
    }

    /// The window that a client asks for, at most the configured one.
    fn window(&self, asked: Option<usize>) -> Result<usize, Error> {
        let most = self.shared.config.window_bytes;
        match asked {
            None => Ok(most),
            Some(0) => {
                let message = format!("window_bytes = 0 lets no event through; give 1 to {most}");
                Err(Error::new(ErrorCode::InvalidArgument, message))
            }
            Some(asked) => Ok(asked.min(most)),
        }
    }
}

/// Limits by their names, as numbers or null; the launch checks names and ranges.
fn limits(given: &Fields) -> Result<BTreeMap<String, Value>, Error> {
    let value = |(name, text): (&str, &str)| {
        // Whatever is longer is not a number, and is not read.
        let value: Option<serde_json::Value> = (text.len() <= MAX_NUMBER_BYTES)
            .then(|| serde_json::from_str(text).ok())
            .flatten();
        let number = value.as_ref().and_then(|value| {
            value
                .as_u64()
                .map(Value::Integer)
                .or_else(|| value.as_f64().map(Value::Seconds))
                .or_else(|| value.is_null().then_some(Value::Unlimited))
        });
        number
            .map(|number| (name.to_owned(), number))
            .ok_or_else(|| {
                let shown = &text[..text.floor_char_boundary(MAX_NUMBER_BYTES)];
                let message = format!(
                    "limits.{name} = {shown} is not a number; give one, or null for no limit"
                );
                Error::new(ErrorCode::InvalidArgument, message)
            })
    };
    given.iter().map(value).collect()
}

/// What the programs that a launch names are called at the server, by the names that it calls them by.
fn programs(given: &Fields) -> Result<BTreeMap<String, String>, Error> {
    let program = |(name, text): (&str, &str)| match serde_json::from_str::<String>(text) {
        Ok(program) => Ok((name.to_owned(), program)),
        Err(_) => {
            let message = format!(
                "programs.{name} is not a string; give name@version, name, or the digest of an upload"
            );
            Err(Error::new(ErrorCode::InvalidArgument, message))
        }
    };
    given.iter().map(program).collect()
}

/// A program of a launch.
enum Lookup {
    Here(Named),
    /// It has to be read first.
    Later(Finding),
}

impl Lookup {
    async fn named(self) -> Result<Named, Error> {
        match self {
            Self::Here(named) => Ok(named),
            Self::Later(finding) => finding.await,
        }
    }
}

/// The programs of a launch: the one that is launched, and those that it can start.
struct Wanted {
    program: Lookup,
    programs: BTreeMap<String, Lookup>,
}

impl Wanted {
    fn is_at_hand(&self) -> bool {
        let mut all = std::iter::once(&self.program).chain(self.programs.values());
        all.all(|found| matches!(found, Lookup::Here(_)))
    }

    /// Waits for those that have to be read.
    async fn all(self) -> Result<(Named, BTreeMap<String, Program>), Error> {
        let program = self.program.named().await?;
        let mut programs = BTreeMap::new();
        for (name, found) in self.programs {
            programs.insert(name, found.named().await?.program);
        }
        Ok((program, programs))
    }
}

/// The launch that a client asks for, of a program that was found.
fn launch(fields: wire::Launch, limits: BTreeMap<String, Value>, program: Program) -> Launch {
    let input = fields.input.map_or_else(
        || "null".to_owned(),
        |input| Box::<str>::from(input).into_string(),
    );
    Launch {
        args: fields.args.unwrap_or_default().0,
        seed: fields.seed,
        token_budget: fields.token_budget,
        credits: fields.credits,
        limits,
        ..Launch::new(program, input)
    }
}

/// Who launches, and who gets the answer.
struct Launching {
    id: u64,
    limits: BTreeMap<String, Value>,
    launcher: Launcher,
    mcp: Arc<McpClientServers>,
    shared: Arc<ServerState>,
    attachments: Arc<Mutex<Attachments>>,
    outbox: Outbox,
    replies: Replies,
}

impl Launching {
    /// Launches and answers. The answer is sent before the first event.
    async fn launch(self, fields: wire::Launch, wanted: Wanted, mut note: Note) {
        let Self {
            id,
            limits,
            launcher,
            mcp,
            ..
        } = self;
        let launched = match wanted.all().await {
            Ok((Named { label, program }, programs)) => {
                let launch = Launch {
                    programs,
                    mcp: Some(mcp),
                    ..launch(fields, limits, program)
                };
                let (processes, host) = (&self.shared.processes, &self.shared.host);
                processes.launch(host, launch, label, launcher).await
            }
            Err(error) => Err(error),
        };
        match launched {
            Ok((process, reader)) => {
                let pid = process.pid();
                note.object = format!("{} as {pid}", note.object);
                note.outcome(Ok(()));
                let answer = json!({ "pid": pid, "launch_seed": process.launch_seed() });
                // It is attached before the client knows of it, so that whatever the client sends then finds it so.
                let answered =
                    reader.map(|reader| lock(&self.attachments).add(pid, reader, &self.outbox));
                self.replies.answer(id, Ok(answer)).await;
                if let Some(answered) = answered {
                    answered.go();
                }
            }
            Err(error) => self.replies.answer(id, note.of(Err(error))).await,
        }
    }
}
