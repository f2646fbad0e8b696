//! The requests of one connection, one function each.

mod adapters;
mod clients;
mod looking;
mod mcp;
mod open;
mod permits;
mod programs;
mod running;
mod told;
mod topics;

use std::sync::{Arc, Mutex};

use pie_host::{Error, ErrorCode, McpClientServers, McpRelay};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::open::{Answer, Replies};
use self::told::Told;
use crate::address_share::AddressShare;
use crate::auth::Identity;
use crate::blocking::blocking;
use crate::client_places::{Address, ClientPlace};
use crate::connection::attachments::Attachments;
use crate::connection::links::McpLinks;
use crate::connection::writer::Outbox;
use crate::processes::ConnectionId;
use crate::protocol::incoming::{self, Ack, Request};
use crate::protocol::violation;
use crate::state::ServerState;
use crate::sync::lock;
use crate::threads::Part;
use crate::uploads::Uploads;

/// What the audit will say of a request, once its outcome is known.
struct Note {
    shared: Arc<ServerState>,
    who: Arc<Identity>,
    verb: String,
    object: String,
}

impl Note {
    fn outcome(&self, outcome: Result<(), &Error>) {
        let audit = &self.shared.audit;
        audit.note(&self.who, &self.verb, &self.object, outcome);
    }

    /// The same for an answer, which is returned.
    fn of(&self, answer: Answer) -> Answer {
        self.outcome(answer.as_ref().map(drop));
        answer
    }
}

/// One client and what it holds.
pub(crate) struct Session {
    id: ConnectionId,
    /// Who the client is. It is shared with work that outlasts a request.
    who: Arc<Identity>,
    user: String,
    /// What the user has of the threads.
    part: Arc<Part>,
    /// What it holds together with the others of its address.
    address: Arc<AddressShare>,
    /// Where the client is, where addresses are counted.
    counted_address: Option<Address>,
    shared: Arc<ServerState>,
    outbox: Outbox,
    replies: Replies,
    uploads: Arc<Mutex<Uploads>>,
    attachments: Arc<Mutex<Attachments>>,
    /// The MCP servers that the client runs.
    mcp: Arc<McpClientServers>,
    links: Arc<McpLinks>,
    /// What the audit has told of and does not tell of again.
    told: Mutex<Told>,
    /// Requests that take their time.
    tasks: JoinSet<()>,
}

impl Session {
    pub(crate) fn new(
        id: ConnectionId,
        who: Arc<Identity>,
        place: &ClientPlace,
        shared: Arc<ServerState>,
        outbox: Outbox,
    ) -> Self {
        let (user, address) = (place.user(), place.address_share().clone());
        let uploads = Uploads::new(&shared.config, user.clone(), address.clone());
        shared.processes.connect(&user.name);
        let links = McpLinks::new(outbox.clone(), user.account.clone(), user.part.clone());
        let relay: Arc<dyn McpRelay> = links.clone();
        Self {
            id,
            who,
            user: user.name.clone(),
            part: user.part.clone(),
            address,
            counted_address: place.counted_address(),
            replies: Replies::new(outbox.clone(), user.account.clone()),
            outbox,
            uploads: Arc::new(Mutex::new(uploads)),
            attachments: Arc::new(Mutex::new(Attachments::new(user.part.clone()))),
            mcp: shared.host.mcp_of_client(Arc::downgrade(&relay)),
            links,
            told: Mutex::default(),
            tasks: JoinSet::new(),
            shared,
        }
    }

    /// What the client has taken.
    pub(crate) fn acknowledge(&self, ack: &Ack) {
        lock(&self.attachments).acknowledge(ack.pid, ack.seq);
    }

    /// Answers a request, at once or when its work is done.
    pub(crate) async fn request(&mut self, mut request: Request) {
        while self.tasks.try_join_next().is_some() {}
        let id = request.id;
        if let Err(error) = self.replies.open(id).await {
            return self.replies.refuse(id, error).await;
        }
        if let Err(error) = self.permitted(&request.kind) {
            return self.answer(id, Err(error)).await;
        }
        let answer = match request.kind.as_str() {
            "ping" => request.fields::<incoming::Nothing>().map(|_| json!({})),
            "programs" => return self.programs(request).await,
            "snapshots" => return self.snapshots(request).await,
            "adapters" => return self.adapters(request).await,
            "delete_adapter" => self.delete_adapter(&mut request),
            "connections" => return self.connections(request).await,
            "disconnect" => self.disconnect(&mut request),
            "topics" => return self.topics(request).await,
            "discard_topic" => self.discard_topic(&mut request),
            "delete_snapshot" => self.delete_snapshot(&mut request).await,
            "stats" => self.stats(&mut request),
            "attach" => return self.attach(request).await,
            "detach" => self.detach(&mut request),
            "send" | "signal" => self.send(&mut request),
            "close_input" => self.close_input(&mut request),
            "terminate" => self.terminate(&mut request),
            "outcome" => return self.outcome(&mut request).await,
            "processes" => return self.processes(request).await,
            "launch" => return self.launch(request).await,
            "install" => return self.install(request).await,
            "uninstall" => return self.uninstall(request).await,
            "logs" => return self.logs(request).await,
            "register_mcp_server" => self.register_mcp_server(&mut request),
            "unregister_mcp_server" => self.unregister_mcp_server(&mut request),
            "upload" | "file" => Err(violation(format!("{:?} is a binary message", request.kind))),
            unknown => Err(violation(format!(
                "there is no message of the type {unknown:?}"
            ))),
        };
        self.answer(id, answer).await;
    }

    /// Checks whether the client may ask for this.
    fn permitted(&self, verb: &str) -> Result<(), Error> {
        let permitted = permits::check(&self.who, verb);
        if let Err(error) = &permitted {
            self.note(verb, "").outcome(Err(error));
        }
        permitted
    }

    /// What the audit will say of a request.
    fn note(&self, verb: &str, object: impl Into<String>) -> Note {
        Note {
            shared: self.shared.clone(),
            who: self.who.clone(),
            verb: verb.to_owned(),
            object: object.into(),
        }
    }

    /// Answers a request that came with bytes.
    ///
    /// # Errors
    /// One that ends the connection.
    pub(crate) async fn binary_request(
        &mut self,
        mut request: Request,
        payload: &[u8],
    ) -> Result<(), Error> {
        while self.tasks.try_join_next().is_some() {}
        let id = request.id;
        let is_upload = request.kind == "upload";
        if is_upload && lock(&self.uploads).skips(id, request.says("last")) {
            return Ok(());
        }
        let continues = is_upload && lock(&self.uploads).is_arriving(id);
        if !continues && let Err(error) = self.replies.open(id).await {
            let refused = if is_upload {
                lock(&self.uploads).refuse(id, request.says("last"))
            } else {
                Ok(())
            };
            self.replies.refuse(id, error).await;
            return refused;
        }
        if let Err(error) = self.permitted(&request.kind) {
            let refused = if is_upload {
                lock(&self.uploads).refuse(id, request.says("last"))
            } else {
                Ok(())
            };
            self.answer(id, Err(error)).await;
            return refused;
        }
        match request.kind.as_str() {
            "upload" => return self.upload(request, payload).await,
            "file" => {
                let answer = self.send_file(&mut request, payload);
                self.answer(id, answer).await;
            }
            unknown => {
                let error = violation(format!(
                    "there is no binary message of the type {unknown:?}"
                ));
                self.answer(id, Err(error)).await;
            }
        }
        Ok(())
    }

    /// Waits until the events of the attached processes, all of which have ended, are sent.
    pub(crate) async fn flushed(&self) {
        let carried = lock(&self.attachments).carried();
        loop {
            let carrying = carried.notified();
            if lock(&self.attachments).are_carried() {
                break;
            }
            carrying.await;
        }
        self.outbox.events_taken().await;
    }

    /// Ends everything that the client holds: requests are given up, attachments end, and processes wait for another
    /// client.
    pub(crate) async fn end(&mut self) {
        self.tasks.shutdown().await;
        lock(&self.attachments).clear();
        self.links.close();
        self.shared.processes.orphan(&self.user, self.id);
    }

    /// When an upload that gets no more parts is given up.
    pub(crate) fn uploads_due(&self) -> Option<Instant> {
        lock(&self.uploads).due()
    }

    /// Gives up the uploads that got no part for too long.
    ///
    /// # Errors
    /// One that ends the connection.
    pub(crate) async fn end_stopped_uploads(&mut self) -> Result<(), Error> {
        let stopped = lock(&self.uploads).stopped(Instant::now());
        for (id, error) in stopped {
            let refused = lock(&self.uploads).refuse(id, false);
            self.answer(id, Err(error)).await;
            refused?;
        }
        Ok(())
    }

    async fn answer(&self, id: u64, answer: Answer) {
        self.replies.answer(id, answer).await;
    }

    /// Answers with the result of `work` when that is done.
    fn later(&mut self, id: u64, work: impl Future<Output = Answer> + Send + 'static) {
        let replies = self.replies.clone();
        self.spawn(async move {
            let answer = work.await;
            replies.answer(id, answer).await;
        });
    }

    /// Does work while further requests are read.
    fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.part.doing(work));
    }
}
