//! One connection that asks programs, and its requests, one after the other.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, UPGRADE};
use http::{HeaderMap, Method, Request, Response, request};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use pie_host::{
    AnswerBody, ArrivedRequest, Asking, Error, ErrorCode, HttpInstance, HttpService, Launch,
    Outcome, Purpose, ServedProcess,
};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};

use super::apart::Standing;
use super::bodies::{
    AnswerOut, Around, BodyBounds, Outgoing, RequestBody, WhenGone, fault, no_head, too_long,
};
use super::due::{Due, Timed, overdue};
use super::framing::MAX_HEADERS;
use super::input::{CheckedInput, RefusedHead};
use super::instances::{AskedProgram, Launchpad};
use super::places::{Connected, RequestPlace};
use super::refusal;
use super::route::Route;
use super::stream::{ClientStream, Clock};
use crate::auth::{Identity, IdentityClaim, Presented, Role, Verdict, id_of};
use crate::config::MountedProgram;
use crate::http::Gate;
use crate::names;
use crate::state::{Phase, ServerState};
use crate::sync::lock;
use crate::wire::Wire;

/// Why a process is ended that works for a client which has gone.
const CLIENT_GONE: &str = "the client of its request has gone";
/// How many times the bytes of a head are read: one that is too long is read, to say so.
const HEADS: usize = 2;
/// Buffers of a connection: of a head that is not whole, of what hyper reads, and of what it writes.
const BUFFERS: u64 = 3;
/// What a header takes on the wire beside its name and its value.
const HEADER_BYTES: usize = 4;
/// Where a program stands at the server, for those that write links.
const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
/// Headers that say how a request was sent, which no program needs.
const HOP_BY_HOP: [&str; 7] = [
    "connection",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Tells a client that there is no place for its connection. Nothing of its request is read: a connection without a
/// place must not take the time of one.
pub(crate) async fn refuse(wire: &mut Wire, error: &Error) {
    // A client that has gone needs no answer.
    drop(wire.writer.raw(&refusal::unread(error)).await);
}

/// Answers the requests of a connection until the client, or the server, ends it.
pub(crate) async fn serve(
    wire: Wire,
    peer: IpAddr,
    shared: Arc<ServerState>,
    (place, mut lost): Connected,
) {
    let config = &shared.config;
    let buffer_bytes = HEADS * config.http_header_bytes;
    let nobody = shared.host.budget().account("");
    let Ok(charge) = nobody.charge(Purpose::Frame, BUFFERS * buffer_bytes as u64) else {
        tracing::warn!("the engine has no memory left for one more connection");
        return;
    };
    let (read, write, ahead) = wire.into_parts();
    let refused = RefusedHead::default();
    let input = CheckedInput::new(ahead, buffer_bytes, refused.clone());
    let stream = ClientStream::new((read, write), input, config.http_idle, (place, charge));
    let mut builder = http1::Builder::new();
    builder
        .timer(Clock)
        .header_read_timeout(config.http_idle)
        .max_headers(MAX_HEADERS)
        .max_buf_size(buffer_bytes);
    let (due, mut is_due) = watch::channel(None);
    let asked = Arc::new(Client {
        peer,
        due: Arc::new(due),
        shared: shared.clone(),
    });
    let service = service_fn(move |request| {
        let client = asked.clone();
        // It is taken at once: while a request is worked on, the head behind it may be refused.
        let fault = lock(&refused).take();
        async move {
            Ok::<_, Infallible>(match fault {
                Some(error) => refusal::closing(&error),
                None => client.answer(request).await,
            })
        }
    });
    let mut connection = pin!(builder.serve_connection(stream, service));
    let mut phase = shared.phase.subscribe();
    // How a connection ends is told to whoever reads from it.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = taken_away(&mut lost) => return,
        () = overdue(&mut is_due) => return,
        () = reached(&mut phase, Phase::Draining) => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = connection.as_mut() => {}
        () = taken_away(&mut lost) => {}
        () = overdue(&mut is_due) => {}
        () = reached(&mut phase, Phase::Closing) => {}
    }
}

/// Waits until the connection has lost its place to another one.
async fn taken_away(lost: &mut oneshot::Receiver<()>) {
    // Nothing is sent: it ends.
    drop(lost.await);
}

/// Waits until the server has come so far, or is gone.
async fn reached(phase: &mut watch::Receiver<Phase>, awaited: Phase) {
    drop(phase.wait_for(|phase| *phase >= awaited).await);
}

/// Who asks over one connection.
struct Client {
    peer: IpAddr,
    due: Arc<Due>,
    shared: Arc<ServerState>,
}

/// Why a request has no answer of a program.
struct Refusal {
    error: Error,
    /// It is the body of the request, the rest of which is not read.
    is_of_body: bool,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self {
            error,
            is_of_body: false,
        }
    }
}

/// A program that is asked, and the place of its request. The place is taken first: for a request that finds none,
/// nothing is read of the program.
type Placed = (AskedProgram, RequestPlace);

/// What a request asks for.
struct Found {
    asked: AskedProgram,
    place: RequestPlace,
    url: String,
    headers: HeaderMap,
    remote_address: String,
    /// Who asks; none where anybody may.
    identity: Option<Identity>,
    /// Where the program stands, where it is one of many.
    standing: Option<Standing>,
}

impl Client {
    async fn answer(&self, request: Request<Incoming>) -> Response<Outgoing> {
        if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
            return refusal::method_refused(request.method());
        }
        match self.asked(request).await {
            Ok(response) => response,
            Err(Refusal { error, is_of_body }) if is_of_body => refusal::closing(&error),
            Err(Refusal { error, .. }) => refusal::response(&error),
        }
    }

    async fn asked(&self, request: Request<Incoming>) -> Result<Response<Outgoing>, Refusal> {
        let began = Instant::now();
        let (head, body) = request.into_parts();
        self.check(&head)?;
        let config = &self.shared.config;
        let Found {
            asked,
            place,
            url,
            headers,
            remote_address,
            identity,
            standing,
        } = self.found(&head).await?;
        let bounds = BodyBounds {
            most_bytes: config.http_body_bytes,
            idle: config.http_idle,
        };
        let (body, told) = RequestBody::new(body, bounds);
        let arrived = ArrivedRequest {
            method: head.method,
            url,
            headers,
            remote_address,
            body: body.boxed_unsync(),
        };
        let pad = self.pad();
        let again = (asked.service.instance == HttpInstance::Shared).then(|| asked.clone());
        // One instance is launched after the other: whoever waits for many has its time, too.
        let limit = config.http_answer;
        let until = Instant::now() + limit;
        let asking = self.shared.http.instances.ask(pad, asked, arrived);
        let asking = timeout_at(until, asking).await;
        let (asking, process) = asking.unwrap_or_else(|_| Err(no_head(limit)))?;
        let going = Going(process);
        let answered = tokio::select! {
            biased;
            // First: a program that fails of it answers the same error, in other words.
            error = fault(told) => {
                return Err(Refusal {
                    error: going.ended(error),
                    is_of_body: true,
                });
            }
            answered = timeout_at(until, self.head(asking, pad, again)) => match answered {
                Ok(Ok(answered)) => answered,
                Ok(Err(error)) => return Err(going.failed(error).into()),
                Err(_) => return Err(going.ended(no_head(limit)).into()),
            },
        };
        let timed = Timed::new(&self.due, config.http_whole.map(|limit| began + limit));
        let timed = timed.unless(revoked(self.shared.clone(), identity));
        let around = Around {
            when_gone: going.over(),
            kept: Box::new((place, timed)),
        };
        Ok(sent(answered, around, standing))
    }

    /// Where instances are launched.
    fn pad(&self) -> Launchpad<'_> {
        Launchpad {
            processes: &self.shared.processes,
            host: &self.shared.host,
            registry: &self.shared.registry,
        }
    }

    /// Waits for the head of an answer. Where the program ends before it takes the request, it is asked again once.
    async fn head(
        &self,
        asking: Asking,
        pad: Launchpad<'_>,
        again: Option<AskedProgram>,
    ) -> Result<Response<AnswerBody>, Error> {
        match asking.outcome().await? {
            Outcome::Answered(response) => Ok(response),
            Outcome::NotTaken(request, waiting) => {
                if let Some(program) = again {
                    let instances = &self.shared.http.instances;
                    instances.ask_again(pad, program, request).await?;
                } else {
                    drop(request);
                }
                waiting.answer().await
            }
        }
    }

    /// Checks what can be seen of a request before its program is known.
    fn check(&self, head: &request::Parts) -> Result<(), Refusal> {
        let config = &self.shared.config;
        self.shared.processes.check_open()?;
        let mut upgrades = head.headers.get_all(UPGRADE).iter();
        if upgrades.any(|to| to.as_bytes().to_ascii_lowercase().starts_with(b"websocket")) {
            let message = "programs answer no WebSockets; stream the answer instead, as by server-sent events, or connect with a client of Pie";
            return Err(Error::new(ErrorCode::WebsocketUnsupported, message).into());
        }
        let of_headers: usize = head
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + HEADER_BYTES)
            .sum();
        let n_bytes = of_headers
            + head
                .uri
                .path_and_query()
                .map_or(0, |path| path.as_str().len());
        let most = config.http_header_bytes;
        if n_bytes > most {
            let message = format!(
                "the head of the request has {n_bytes} bytes, more than server.http_header_bytes = {most}; send fewer headers, or raise the limit"
            );
            return Err(Error::new(ErrorCode::LimitHttpHeaders, message).into());
        }
        if announced(&head.headers).is_some_and(|n_bytes| n_bytes > config.http_body_bytes) {
            return Err(Refusal {
                error: too_long(config.http_body_bytes),
                is_of_body: true,
            });
        }
        Ok(())
    }

    /// The program that a request asks for, once it is known that the client may, and its place.
    async fn found(&self, head: &request::Parts) -> Result<Found, Error> {
        let shared = &self.shared;
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        shared.authority.check_called(&head.headers)?;
        let shown = Presented::read(self.peer, &head.headers, shared.authority.config())?;
        let ((asked, place), identity, rest, standing) = match &shared.config.mount {
            Some(mount) => (self.mounted(mount)?, None, path, None),
            None => {
                let route = Route::read(path)?;
                let (placed, identity) = self.routed(route, &shown, &head.headers).await?;
                let standing = Standing {
                    prefix: route.prefix.to_owned(),
                    is_sandboxed: route.owner.is_some() && shared.config.http_sandbox,
                };
                (placed, identity, route.rest, Some(standing))
            }
        };
        let prefix = standing.as_ref().map_or("", |at| at.prefix.as_str());
        let headers = self.headers(&head.headers, prefix, asked.service);
        Ok(Found {
            asked,
            place,
            url: Route::url(rest, &self.host(&head.headers)),
            headers,
            remote_address: shown.address.to_string(),
            identity,
            standing,
        })
    }

    /// The program of a route, and who asks for it where not anybody may. Nothing is read of a program before it is
    /// known that the client may ask for it: so one of somebody else that is not public is as one that is not there, in
    /// what it costs too.
    async fn routed(
        &self,
        route: Route<'_>,
        shown: &Presented,
        headers: &HeaderMap,
    ) -> Result<(Placed, Option<Identity>), Error> {
        let Some(owner) = route.owner else {
            let identity = self.identified(None, (shown, headers)).await?;
            let placed = self.program(&identity.user, route.program).await?;
            return Ok((placed, Some(identity)));
        };
        names::check_user(owner)?;
        if self.shared.registry.is_public(owner, route.program) {
            match self.program(owner, route.program).await {
                Ok(placed) if placed.0.service.public => return Ok((placed, None)),
                // It was replaced or removed meanwhile.
                Ok(_) => {}
                Err(error) if error.code == ErrorCode::UnknownProgram => {}
                Err(error) => return Err(error),
            }
        }
        let client = (shown, headers);
        let identity = self.checked_owner(owner, route.program, client).await?;
        let placed = self.program(owner, route.program).await?;
        Ok((placed, Some(identity)))
    }

    /// The client, which is the owner of a program.
    async fn checked_owner(
        &self,
        owner: &str,
        program: &str,
        client: (&Presented, &HeaderMap),
    ) -> Result<Identity, Error> {
        let identity = self.identified(Some(owner), client).await?;
        if identity.user == owner {
            return Ok(identity);
        }
        let shown: String = program.chars().take(80).collect();
        let message = format!(
            "{owner:?} has no program {shown:?} that anybody may ask; check the name, or have its owner install it with --public"
        );
        Err(Error::new(ErrorCode::UnknownProgram, message))
    }

    /// Who asks. Where names are free, it is the owner of what is asked for.
    async fn identified(
        &self,
        owner: Option<&str>,
        (shown, headers): (&Presented, &HeaderMap),
    ) -> Result<Identity, Error> {
        let authority = &self.shared.authority;
        let claim = IdentityClaim {
            user: owner
                .filter(|_| authority.names_are_free())
                .map(str::to_owned),
            ..IdentityClaim::default()
        };
        let judged = authority.judge(claim, shown, &self.shared.audit).await;
        let identity = match judged {
            Ok(Verdict::In(identity)) => identity,
            // Nothing in a request asks for one.
            Ok(Verdict::Challenged(_)) => {
                return Err(Error::internal("a request by HTTP was challenged"));
            }
            Err(error) => {
                let audit = &self.shared.audit;
                audit.turned_away(shown.address, owner.unwrap_or_default(), &error);
                return Err(error);
            }
        };
        identity.check(Role::User, "a request to a program")?;
        if identity.key.is_none() {
            // Browsers send it whatever page asks, and no key.
            let gate = Gate {
                own: self.shared.address,
                allowed: &self.shared.config.allowed_origins,
            };
            gate.check_page(headers)?;
        }
        Ok(identity)
    }

    /// The program of a user that serves HTTP, and a place for a request to it.
    async fn program(&self, user: &str, name: &str) -> Result<Placed, Error> {
        let (host, label) = (
            &self.shared.host,
            self.shared.registry.find(user, name)?.label,
        );
        let place = self.shared.http.places.ask(user, &label)?;
        let named = host.find_program(user, &label).await?;
        let service = named.program.http_service(host.limits()).await?;
        let service = service.ok_or_else(|| {
            let message = format!(
                "the program {} serves no requests by HTTP; install it with --http, or add a table [http] to its Pie.toml",
                named.label
            );
            Error::new(ErrorCode::NotServing, message)
        })?;
        let asked = AskedProgram {
            user: user.to_owned(),
            label: named.label,
            launch: Launch::new(named.program, "null"),
            service,
            is_installed: true,
        };
        Ok((asked, place))
    }

    /// The one program of a server that serves nothing else, and a place for a request to it.
    fn mounted(&self, mount: &MountedProgram) -> Result<Placed, Error> {
        let asked = AskedProgram {
            user: mount.launch.username.clone().unwrap_or_default(),
            label: mount.label.clone(),
            launch: mount.launch.clone(),
            service: mount.service(),
            is_installed: false,
        };
        let place = self.shared.http.places.ask(&asked.user, &asked.label)?;
        Ok((asked, place))
    }

    /// The headers that a program sees. A key for this server is nothing for others.
    fn headers(&self, given: &HeaderMap, prefix: &str, service: HttpService) -> HeaderMap {
        let mut headers = given.clone();
        for name in HOP_BY_HOP {
            headers.remove(name);
        }
        headers.remove(self.shared.authority.config().user_header.lower());
        headers.remove(FORWARDED_PREFIX);
        if !service.public || headers.get_all(AUTHORIZATION).iter().any(has_key) {
            headers.remove(AUTHORIZATION);
        }
        if let Ok(prefix) = HeaderValue::from_str(prefix)
            && !prefix.is_empty()
        {
            headers.insert(FORWARDED_PREFIX, prefix);
        }
        headers
    }

    /// What the client calls this server; its address where that is no name.
    fn host(&self, headers: &HeaderMap) -> String {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:-_[]".contains(&byte);
        let called = headers.get(HOST).and_then(|host| host.to_str().ok());
        let called = called.filter(|host| !host.is_empty() && host.bytes().all(is_plain));
        called.map_or_else(|| self.shared.address.to_string(), str::to_owned)
    }
}

/// Whether a header holds what looks like a key of a server. A program that everybody may ask is somebody else's, and
/// could use it.
fn has_key(value: &HeaderValue) -> bool {
    let mut words = value.to_str().unwrap_or_default().split_ascii_whitespace();
    words.any(|word| id_of(word).is_some())
}

/// Waits until the key is no longer good by which somebody has come in; none where it was by no key.
fn revoked(
    shared: Arc<ServerState>,
    identity: Option<Identity>,
) -> Option<impl Future<Output = ()> + Send + 'static> {
    let identity = identity.filter(|identity| identity.key.is_some())?;
    Some(async move { shared.authority.gone(&identity).await })
}

/// The process that works on one request alone, which is ended where its client goes before it has the answer.
struct Going(Option<ServedProcess>);

impl Going {
    /// What ends it from now on.
    fn over(mut self) -> Option<WhenGone> {
        let process = self.0.take()?;
        Some(Box::new(move || process.cancel(CLIENT_GONE)))
    }

    /// The program has failed to answer: its process ends by itself, and with its own error.
    fn failed(mut self, error: Error) -> Error {
        self.0 = None;
        error
    }

    /// Ends it, for what is wrong with the request or with the time that it takes.
    fn ended(mut self, error: Error) -> Error {
        // One whose client has gone is ended as any other such.
        if error.code != ErrorCode::ClientGone
            && let Some(process) = self.0.take()
        {
            process.end(error.code, &error.message);
        }
        error
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        if let Some(process) = self.0.take() {
            process.cancel(CLIENT_GONE);
        }
    }
}

/// The answer of a program, as it is sent: one of many that share a server does not speak for all of them.
fn sent(
    mut answered: Response<AnswerBody>,
    around: Around,
    standing: Option<Standing>,
) -> Response<Outgoing> {
    if let Some(standing) = standing {
        standing.keep_apart(answered.headers_mut());
    }
    let n_bytes = announced(answered.headers());
    answered.map(|body| AnswerOut::new(body, n_bytes, around).boxed_unsync())
}

/// Bytes that a body has, where its head says how many.
fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
