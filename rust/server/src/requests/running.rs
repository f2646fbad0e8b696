//! Requests about processes.

use std::collections::BTreeMap;

use pie_host::{Launch, Program, Reader, Value};

use super::*;
use crate::processes::Launcher;
use crate::protocol::body::Body;
use crate::protocol::incoming::{self as wire, Attach, Fields, Logs, OfProcess, Send};
use crate::registry;

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
        let (mut launching, content) = match self.launching(fields) {
            Ok(launching) => launching,
            Err(error) => return self.answer(id, note.of(Err(error))).await,
        };
        match content {
            Content::Held(program) => launching.launch(id, program, note).await,
            Content::OnDisk(found) => {
                let shared = self.shared.clone();
                self.spawn(async move {
                    match blocking(move || shared.registry.load(found)).await {
                        Ok((label, program)) => {
                            launching.launcher.label = label;
                            launching.launch(id, program, note).await;
                        }
                        Err(error) => {
                            launching.replies.answer(id, note.of(Err(error))).await;
                        }
                    }
                });
            }
        }
    }

    /// Checks what is asked for.
    fn launching(&self, fields: wire::Launch) -> Result<(Launching, Content), Error> {
        self.shared.processes.check_open()?;
        let uploaded = lock(&self.uploads).get(&fields.program);
        let (label, content) = match uploaded {
            Some(arrived) => (fields.program.clone(), Content::Held(arrived.program)),
            None => {
                let found = self.shared.registry.find(&self.user, &fields.program)?;
                let label = found.label.clone();
                let content = match self.shared.registry.held(&found) {
                    Some(program) => Content::Held(program),
                    None => Content::OnDisk(found),
                };
                (label, content)
            }
        };
        let window_bytes = self.window(fields.window_bytes)?;
        let attach = fields.attach.unwrap_or(false);
        if attach {
            lock(&self.attachments).make_room(|pid| self.shared.processes.knows(pid))?;
        }
        let launching = Launching {
            launcher: Launcher {
                user: self.user.clone(),
                connection: self.id,
                label,
                detached: fields.detached.unwrap_or(false),
                window_bytes: attach.then_some(window_bytes),
            },
            input: fields.input.map_or_else(
                || "null".to_owned(),
                |input| Box::<str>::from(input).into_string(),
            ),
            args: fields.args.unwrap_or_default().0,
            seed: fields.seed,
            token_budget: fields.token_budget,
            limits: limits(&fields.limits.unwrap_or_default())?,
            shared: self.shared.clone(),
            attachments: self.attachments.clone(),
            outbox: self.outbox.clone(),
            replies: self.replies.clone(),
        };
        Ok((launching, content))
    }

    /// Attaches to a process; the answer goes out before the first event.
    pub(super) async fn attach(&mut self, mut request: Request) {
        let id = request.id;
        match request
            .fields::<Attach>()
            .and_then(|fields| self.attached(&fields))
        {
            Ok((pid, reader)) => {
                let answer = json!({ "pid": pid, "next_seq": reader.first_seq() });
                let answered = lock(&self.attachments).add(pid, reader, &self.outbox);
                self.answer(id, Ok(answer)).await;
                answered.go();
            }
            Err(error) => self.answer(id, Err(error)).await,
        }
    }

    fn attached(&self, fields: &Attach) -> Result<(u64, Reader), Error> {
        let window_bytes = self.window(fields.window_bytes)?;
        lock(&self.attachments).make_room(|pid| self.shared.processes.knows(pid))?;
        let reader = self
            .shared
            .processes
            .attach(&self.user, fields.pid, self.id, window_bytes)?;
        Ok((fields.pid, reader))
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
        self.shared.processes.of_user(&self.user, pid)?.send(text)?;
        Ok(json!({}))
    }

    pub(super) fn send_file(&self, request: &mut Request, payload: &[u8]) -> Answer {
        let OfProcess { pid } = request.fields()?;
        let process = self.shared.processes.of_user(&self.user, pid)?;
        process.send_file(payload.to_vec())?;
        Ok(json!({}))
    }

    pub(super) fn close_input(&self, request: &mut Request) -> Answer {
        let OfProcess { pid } = request.fields()?;
        self.shared
            .processes
            .of_user(&self.user, pid)?
            .close_input();
        Ok(json!({}))
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
                    let made = || {
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
        // Whatever is longer is no number, and not read.
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
                let message =
                    format!("limits.{name} = {shown} is no number; give one, or null for no limit");
                Error::new(ErrorCode::InvalidArgument, message)
            })
    };
    given.iter().map(value).collect()
}

/// Where the content of a program is.
enum Content {
    Held(Program),
    OnDisk(registry::Found),
}

/// A launch whose program is found.
struct Launching {
    launcher: Launcher,
    input: String,
    args: Vec<String>,
    seed: Option<u64>,
    token_budget: Option<u64>,
    limits: BTreeMap<String, Value>,
    shared: Arc<Shared>,
    attachments: Arc<Mutex<Attachments>>,
    outbox: Outbox,
    replies: Replies,
}

impl Launching {
    /// Launches and answers; the answer goes out before the first event.
    async fn launch(self, id: u64, program: Program, mut note: Note) {
        let launch = Launch {
            args: self.args,
            seed: self.seed,
            username: Some(self.launcher.user.clone()),
            token_budget: self.token_budget,
            limits: self.limits,
            ..Launch::new(program, self.input)
        };
        match self
            .shared
            .processes
            .launch(&self.shared.host, launch, self.launcher)
        {
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
