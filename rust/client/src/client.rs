//! A client of a server: programs are installed and launched, processes listed and attached to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::connection::Connection;
use crate::error::Error;
use crate::error_codes::ErrorCode;
use crate::event::{Outcome, event_of};
use crate::info::{
    AdapterInfo, ConnectionInfo, Logs, ProcessInfo, ProgramInfo, SnapshotInfo, TopicInfo,
};
use crate::mcp::McpCommand;
use crate::opening;
#[cfg(feature = "keys")]
use crate::private_key::PrivateKey;
use crate::process::Process;
use crate::shared::Expected;
use crate::signing::{Identity, check_key, sha256};
use crate::wire::{Fields, fields, number_of, read};

const TIMEOUT: Duration = Duration::from_secs(10);

/// How to connect.
#[derive(Default)]
pub struct ConnectOptions {
    /// Who one is; that of the key if left out, `anonymous` without one.
    pub user: Option<String>,
    /// An API key, which `pie key add` makes.
    pub key: Option<String>,
    /// A private key whose public half the operator has added; `user` says whose it is.
    #[cfg(feature = "keys")]
    pub private_key: Option<PrivateKey>,
    /// How long opening may take, above zero; ten seconds if left out.
    pub timeout: Option<Duration>,
}

/// The most credits that a process begins with.
const MAX_CREDITS: f64 = 1e9;

/// How to launch a program.
#[derive(Clone, Debug, Default)]
pub struct LaunchOptions {
    /// Any JSON value.
    pub input: Value,
    /// The arguments as typed, unparsed.
    pub args: Vec<String>,
    /// Repeats a run.
    pub seed: Option<u64>,
    /// Tokens that may enter the contexts of the process.
    pub token_budget: Option<u64>,
    /// What the process begins with in each model, to bid for pages where those are short: 0 to 1e9 credits.
    pub credits: Option<f64>,
    /// Limits by their names, as in `cpu_s`; only lower than the server's. None is no limit.
    pub limits: BTreeMap<String, Option<f64>>,
    /// Programs that the process can start, by the names that it calls them by; each is given as the program itself.
    pub programs: BTreeMap<String, String>,
    /// Whether it lives without a client, for as long as it likes.
    pub detached: bool,
    /// Bytes of events that are sent before they are read; more hold the program up.
    pub window_bytes: Option<u64>,
}

/// How a program serves HTTP that is installed for that.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// The text of a `Pie.toml`; the one that the program carries if left out.
    pub manifest: Option<String>,
    /// Whether one instance answers all requests; otherwise each request has its own.
    pub shared: bool,
    /// Whether anybody may ask; otherwise only this user, by their key.
    pub public: bool,
}

impl Default for DaemonOptions {
    fn default() -> Self {
        Self {
            manifest: None,
            shared: true,
            public: false,
        }
    }
}

/// An open connection to a server. It is cheap to clone, and ends with its last clone and process. Any call may be
/// dropped at any time: a launch that was dropped is ended when its answer comes.
///
/// Every method fails with the error of the server, or `connection-failed`.
#[derive(Clone)]
pub struct Client {
    connection: Arc<Connection>,
}

impl Client {
    /// Connects to the server at `address`, `ws://HOST:PORT` or `HOST:PORT`. It needs a runtime of tokio.
    ///
    /// # Errors
    /// `authentication-required`, `authentication-failed` and `limit-attempts` where the server does not let one in,
    /// `connection-failed` where there is no server, `protocol-version` where it is of another version,
    /// `invalid-argument` for what is not a key, and for a time of zero.
    pub async fn connect(address: &str, options: ConnectOptions) -> Result<Self, Error> {
        let within = options.timeout.unwrap_or(TIMEOUT);
        if within.is_zero() {
            let message =
                "timeout is zero; give a length of time above it, or None for ten seconds";
            return Err(Error::argument("timeout", message));
        }
        let who = identity(options)?;
        let (socket, hello) = opening::open(address, &who, within).await?;
        Ok(Self {
            connection: Connection::begin(socket, hello),
        })
    }

    /// Whose programs and processes this client sees.
    pub fn user(&self) -> &str {
        &self.connection.hello.user
    }

    /// What this client may do: `read`, `user` or `operator`.
    pub fn role(&self) -> &str {
        &self.connection.hello.role
    }

    /// The name and version of the server.
    pub fn server(&self) -> &str {
        &self.connection.hello.server
    }

    /// The name by which programs know the engine of the server.
    pub fn instance(&self) -> &str {
        &self.connection.hello.instance
    }

    /// Whether the server has said that it is about to end: it launches nothing more.
    pub fn is_draining(&self) -> bool {
        self.connection.shared.is_draining()
    }

    /// Ends the connection: every call that waits gets `connection-failed`. Processes go on for a while, so that this
    /// user can attach to them again; detached ones go on without limit.
    pub async fn close(&self) {
        self.connection.close().await;
    }

    /// Answers when the server does.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn ping(&self) -> Result<(), Error> {
        self.ask("ping", json!({})).await.map(drop)
    }

    /// Sends a program that `pie build` has made, or a component, and gives its digest, which can be launched on this
    /// connection.
    ///
    /// # Errors
    /// `limit-upload` where it is larger than the server takes.
    pub async fn upload(&self, program: &[u8]) -> Result<String, Error> {
        let digest = format!("sha256:{}", sha256(program));
        self.connection.upload(program, &digest, None).await?;
        Ok(digest)
    }

    /// As [`Client::upload`], and lists show its processes with the name of the file: 1 to 128 bytes, without control
    /// characters.
    ///
    /// # Errors
    /// Those of [`Client::upload`], and `invalid-name`.
    pub async fn upload_named(&self, program: &[u8], name: &str) -> Result<String, Error> {
        let digest = format!("sha256:{}", sha256(program));
        self.connection.upload(program, &digest, Some(name)).await?;
        Ok(digest)
    }

    /// Installs a program under a name and a version; one of the same is replaced. `manifest` is the text of a
    /// `Pie.toml`.
    ///
    /// # Errors
    /// Those of [`Client::upload`], `invalid-program` and `invalid-name`.
    pub async fn install(
        &self,
        program: &[u8],
        name: &str,
        version: &str,
        manifest: Option<&str>,
    ) -> Result<(), Error> {
        let mut asked = json!({ "name": name, "version": version });
        set(&mut asked, "manifest", manifest);
        self.install_as(program, asked).await
    }

    /// Installs a program that serves HTTP, and gives the path by which the server answers with it, on its port, as in
    /// `/http/chat@0.1.0/`. It serves until it is uninstalled.
    ///
    /// # Errors
    /// Those of [`Client::install`], and `invalid-argument` where the table `[http]` of its manifest says otherwise.
    pub async fn launch_daemon(
        &self,
        program: &[u8],
        name: &str,
        version: &str,
        options: DaemonOptions,
    ) -> Result<String, Error> {
        let DaemonOptions {
            manifest,
            shared,
            public,
        } = options;
        let http = json!({ "shared": shared, "public": public });
        let mut asked = json!({ "name": name, "version": version, "http": http });
        set(&mut asked, "manifest", manifest);
        self.install_as(program, asked).await?;
        Ok(if public {
            format!("/http/~{}/{name}@{version}/", self.user())
        } else {
            format!("/http/{name}@{version}/")
        })
    }

    /// Removes an installed program; processes that run it are left alone. An operator may name another `user`.
    ///
    /// # Errors
    /// `unknown-program`.
    pub async fn uninstall(
        &self,
        name: &str,
        version: &str,
        user: Option<&str>,
    ) -> Result<(), Error> {
        let asked = json!({ "name": name, "version": version });
        self.ask_of_owner("uninstall", asked, user).await.map(drop)
    }

    /// The programs that this user has installed, by name and version, the oldest version first. For an operator, with
    /// `all_users`, those of everybody.
    ///
    /// # Errors
    /// `not-permitted`.
    pub async fn programs(&self, all_users: bool) -> Result<Vec<ProgramInfo>, Error> {
        self.list_of("programs", everybody(all_users)).await
    }

    /// Whether this user has installed `program`, which is `name@version`, or `name` for any version. With `digest`
    /// (that of a [`ProgramInfo`], or of [`Client::upload`]), whether it is that program.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn check_program(&self, program: &str, digest: Option<&str>) -> Result<bool, Error> {
        let installed = self.installed(program).await?;
        let is_it = |found: &ProgramInfo| digest.is_none_or(|digest| found.digest == digest);
        Ok(installed.iter().any(is_it))
    }

    /// The `name@version` that a launch of `program` runs: of a `name`, its highest version.
    ///
    /// # Errors
    /// `unknown-program` where this user has installed none.
    pub async fn resolve_version(&self, program: &str) -> Result<String, Error> {
        if let Some(newest) = self.installed(program).await?.last() {
            return Ok(format!("{}@{}", newest.name, newest.version));
        }
        let message = format!(
            "{:?} has no program {program:?}; install it first (`programs` lists those that are installed)",
            self.user()
        );
        Err(Error::new(ErrorCode::UnknownProgram, message).with("program", program))
    }

    /// The snapshots that programs of this user have saved; for an operator, with `all_users`, those of everybody.
    ///
    /// # Errors
    /// `not-permitted`.
    pub async fn snapshots(&self, all_users: bool) -> Result<Vec<SnapshotInfo>, Error> {
        self.list_of("snapshots", everybody(all_users)).await
    }

    /// Forgets a snapshot; an operator may name another `user`.
    ///
    /// # Errors
    /// `snapshot-missing`.
    pub async fn delete_snapshot(
        &self,
        model: &str,
        name: &str,
        user: Option<&str>,
    ) -> Result<(), Error> {
        self.delete("delete_snapshot", model, name, user).await
    }

    /// The adapters to which programs of this user gave names; for an operator, with `all_users`, those of everybody.
    ///
    /// # Errors
    /// `not-permitted`.
    pub async fn adapters(&self, all_users: bool) -> Result<Vec<AdapterInfo>, Error> {
        self.list_of("adapters", everybody(all_users)).await
    }

    /// Takes the name of an adapter; an operator may name another `user`. Contexts that were computed with it go on.
    ///
    /// # Errors
    /// `adapter-missing`; `adapter-busy` while a pass is computed with it.
    pub async fn delete_adapter(
        &self,
        model: &str,
        name: &str,
        user: Option<&str>,
    ) -> Result<(), Error> {
        self.delete("delete_adapter", model, name, user).await
    }

    /// The topics by which programs of this user send to each other; for an operator, with `all_users`, everybody's.
    ///
    /// # Errors
    /// `not-permitted`.
    pub async fn topics(&self, all_users: bool) -> Result<Vec<TopicInfo>, Error> {
        self.list_of("topics", everybody(all_users)).await
    }

    /// Drops the messages that wait in the queue of a topic, and gives how many those were. An operator may name
    /// another `user`.
    ///
    /// # Errors
    /// `not-permitted`.
    pub async fn discard_topic(&self, topic: &str, user: Option<&str>) -> Result<u64, Error> {
        let asked = json!({ "topic": topic });
        let discarded = self.ask_of_owner("discard_topic", asked, user).await?;
        number_of(&discarded, "dropped")
    }

    /// The clients that are connected, as they came: for operators.
    ///
    /// # Errors
    /// `not-permitted`.
    pub async fn connections(&self) -> Result<Vec<ConnectionInfo>, Error> {
        self.list_of("connections", json!({})).await
    }

    /// Ends the connection of a client, who gets the error `cancelled`: for operators.
    ///
    /// # Errors
    /// `not-permitted`, and `invalid-argument` where no client has that number.
    pub async fn disconnect(&self, connection: u64) -> Result<(), Error> {
        let asked = json!({ "connection": connection });
        self.ask("disconnect", asked).await.map(drop)
    }

    /// Launches `name@version`, `name` (its newest version) or the digest of an upload, and attaches to it. A process
    /// ends some time after its client has gone, unless it was launched `detached`. Detach from one whose events you do
    /// not want: what is not read holds it up.
    ///
    /// # Errors
    /// `unknown-program`, `limit-processes`, `server-draining`, and `invalid-argument` for a limit that is not a number
    /// and for a window of zero.
    pub async fn launch(&self, program: &str, options: LaunchOptions) -> Result<Process, Error> {
        let window_bytes = self.window(options.window_bytes)?;
        let asked = fields(launch_fields(program, options)?);
        let expected = Expected::Launch { window_bytes };
        let unclaimed = self.connection.attach("launch", asked, expected).await?;
        Ok(Process::new(self.connection.clone(), unclaimed))
    }

    /// Attaches to a process, running or ended: its events come from the first that nobody has read. Events up to
    /// `after_seq` are passed over: what was read on a connection that broke may come again. `window_bytes` is as for a
    /// launch.
    ///
    /// # Errors
    /// `unknown-process`, `process-attached` while a client is attached, and `invalid-argument` for a window of zero or
    /// an `after_seq` beyond the last event of the process.
    pub async fn attach(
        &self,
        pid: u64,
        after_seq: u64,
        window_bytes: Option<u64>,
    ) -> Result<Process, Error> {
        let mut asked = json!({ "pid": pid });
        set(&mut asked, "window_bytes", window_bytes);
        // Older servers do not know the field, and need none where there is nothing to pass over.
        set(
            &mut asked,
            "after_seq",
            (after_seq > 0).then_some(after_seq),
        );
        let expected = Expected::Attach {
            window_bytes: self.window(window_bytes)?,
            after_seq,
        };
        let unclaimed = self
            .connection
            .attach("attach", fields(asked), expected)
            .await?;
        Ok(Process::new(self.connection.clone(), unclaimed))
    }

    /// The processes of this user that run; with `all`, also those that ended and are still kept. For an operator, with
    /// `all_users`, everybody's.
    ///
    /// # Errors
    /// `not-permitted`.
    pub async fn list(&self, all: bool, all_users: bool) -> Result<Vec<ProcessInfo>, Error> {
        let mut asked = everybody(all_users);
        asked["all"] = all.into();
        self.list_of("processes", asked).await
    }

    /// What a process wrote after the position `after`, at any time, whoever is attached: at most the last
    /// `tail_bytes`. With `follow`, waits until there is some or the process has ended. No event is taken by it.
    ///
    /// # Errors
    /// `unknown-process`.
    pub async fn logs(
        &self,
        pid: u64,
        after: u64,
        tail_bytes: Option<u64>,
        follow: bool,
    ) -> Result<Logs, Error> {
        let mut asked = json!({ "pid": pid, "after": after, "follow": follow });
        set(&mut asked, "tail_bytes", tail_bytes);
        read(self.ask("logs", asked).await?)
    }

    /// How a process ended, whoever has taken its events; none while it runs.
    ///
    /// # Errors
    /// `unknown-process`.
    pub async fn outcome(&self, pid: u64) -> Result<Option<Outcome>, Error> {
        let mut ok = self.ask("outcome", json!({ "pid": pid })).await?;
        match ok.remove("outcome") {
            None | Some(Value::Null) => Ok(None),
            Some(last) => match event_of(last, Vec::new())?.outcome() {
                Some(outcome) => Ok(Some(outcome)),
                None => Err(Error::protocol(
                    "an outcome that is not the end of a process",
                )),
            },
        }
    }

    /// Ends a process of this user, or for an operator of anybody, whoever is attached to it.
    ///
    /// # Errors
    /// `unknown-process`.
    pub async fn terminate(&self, pid: u64) -> Result<(), Error> {
        self.ask("terminate", json!({ "pid": pid })).await.map(drop)
    }

    /// Offers an MCP server to the programs that this connection launches, and to their children, by a name. The
    /// process is started when a program asks for the server, and ends with the connection. A server of the operator
    /// with that name gives way, and so does one that was registered by it before. Where this is dropped before the
    /// server has answered, the server is registered with its command, or is not at all, as if this had been waited
    /// for; its process ends with the connection in any case.
    ///
    /// # Errors
    /// `invalid-name`, and `limit-mcp-calls` where there are too many; a server that had the name before stays then.
    pub async fn register_mcp_server(&self, name: &str, command: McpCommand) -> Result<(), Error> {
        self.connection.register(name, command).await
    }

    /// Takes an MCP server back: programs find it no more.
    ///
    /// # Errors
    /// `unknown-mcp-server`.
    pub async fn unregister_mcp_server(&self, name: &str) -> Result<(), Error> {
        self.ask("unregister_mcp_server", json!({ "name": name }))
            .await?;
        self.connection.shared.mcp.set(name, None);
        Ok(())
    }

    /// What this user has at the server, and for an operator what everybody has: the answer to `stats`, by the names
    /// that `docs/reference/protocol.md` gives its fields.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn stats(&self) -> Result<Map<String, Value>, Error> {
        self.ask("stats", json!({})).await
    }

    /// Uploads a program, and installs it as `asked` says.
    async fn install_as(&self, program: &[u8], mut asked: Value) -> Result<(), Error> {
        asked["digest"] = self.upload(program).await?.into();
        self.ask("install", asked).await.map(drop)
    }

    async fn ask(&self, kind: &str, asked: Value) -> Result<Fields, Error> {
        self.connection.request(kind, fields(asked)).await
    }

    /// Asks for something of what this user has, or an operator's `user` has; `asked` says which it is.
    async fn ask_of_owner(
        &self,
        kind: &str,
        mut asked: Value,
        user: Option<&str>,
    ) -> Result<Fields, Error> {
        set(&mut asked, "user", user);
        self.ask(kind, asked).await
    }

    /// Deletes what has a name in a model.
    async fn delete(
        &self,
        kind: &str,
        model: &str,
        name: &str,
        user: Option<&str>,
    ) -> Result<(), Error> {
        let asked = json!({ "model": model, "name": name });
        self.ask_of_owner(kind, asked, user).await.map(drop)
    }

    /// What the server lists: the request and the list of its answer have one name.
    async fn list_of<T: DeserializeOwned>(
        &self,
        name: &str,
        asked: Value,
    ) -> Result<Vec<T>, Error> {
        let list = self
            .ask(name, asked)
            .await?
            .remove(name)
            .unwrap_or_default();
        Vec::deserialize(list).map_err(Error::protocol)
    }

    /// What is installed as `name@version`, or the versions of `name`, oldest first.
    async fn installed(&self, program: &str) -> Result<Vec<ProgramInfo>, Error> {
        let (name, version) = match program.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (program, None),
        };
        let mut programs = self.programs(false).await?;
        programs.retain(|found| {
            found.name == name && version.is_none_or(|version| found.version == version)
        });
        Ok(programs)
    }

    /// Bytes of events that the server sends before they are read.
    fn window(&self, asked: Option<u64>) -> Result<u64, Error> {
        match asked {
            Some(0) => {
                let message = "window_bytes is 0; give a number of bytes above it, or None for what the server has";
                Err(Error::argument("window_bytes", message))
            }
            Some(window_bytes) => Ok(window_bytes),
            None => Ok(self.connection.hello.limits.window_bytes),
        }
    }
}

fn identity(options: ConnectOptions) -> Result<Identity, Error> {
    #[cfg(feature = "keys")]
    if options.private_key.is_some() {
        let wrong = |message: &str| Err(Error::argument("private_key", message));
        if options.key.is_some() {
            return wrong("a key and a private key were given; give one of them");
        }
        if options.user.is_none() {
            return wrong("a private key counts together with a user; give `user`, too");
        }
    }
    Ok(Identity {
        user: options.user,
        key: options.key.as_deref().map(check_key).transpose()?,
        #[cfg(feature = "keys")]
        private_key: options.private_key,
    })
}

fn launch_fields(program: &str, options: LaunchOptions) -> Result<Value, Error> {
    let LaunchOptions {
        input,
        args,
        seed,
        token_budget,
        credits,
        limits,
        programs,
        detached,
        window_bytes,
    } = options;
    if let Some(given) = credits.filter(|credits| !(0.0..=MAX_CREDITS).contains(credits)) {
        let message =
            format!("credits is {given:?}; give a number of credits from 0 to {MAX_CREDITS}");
        return Err(Error::argument("credits", message));
    }
    for (name, limit) in &limits {
        if limit.is_some_and(|limit| !limit.is_finite()) {
            let message = format!(
                "limits[{name:?}] is {limit:?}; give a finite number, or None for no limit"
            );
            return Err(Error::argument(&format!("limits[{name:?}]"), message));
        }
    }
    let mut asked = json!({
        "program": program, "input": input, "args": args, "detached": detached, "attach": true,
    });
    set(&mut asked, "seed", seed);
    set(&mut asked, "token_budget", token_budget);
    set(&mut asked, "credits", credits);
    set(&mut asked, "window_bytes", window_bytes);
    set(
        &mut asked,
        "limits",
        (!limits.is_empty()).then(|| json!(limits)),
    );
    set(
        &mut asked,
        "programs",
        (!programs.is_empty()).then(|| json!(programs)),
    );
    Ok(asked)
}

fn everybody(all_users: bool) -> Value {
    if all_users {
        json!({ "all_users": true })
    } else {
        json!({})
    }
}

/// Sets a field that may be left out.
fn set(asked: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        asked[name] = value.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_says_what_was_given_and_nothing_else() {
        let plain = launch_fields("p", LaunchOptions::default()).unwrap();
        assert_eq!(
            plain,
            json!({"program": "p", "input": null, "args": [], "detached": false, "attach": true})
        );
        let options = LaunchOptions {
            seed: Some(u64::MAX),
            limits: BTreeMap::from([("cpu_s".to_owned(), Some(0.5)), ("wall_s".to_owned(), None)]),
            ..LaunchOptions::default()
        };
        let asked = launch_fields("p", options).unwrap();
        assert_eq!(asked["seed"], u64::MAX);
        assert_eq!(asked["limits"], json!({"cpu_s": 0.5, "wall_s": null}));
    }

    #[test]
    fn credits_that_are_no_amount_are_refused() {
        let launch = |credits| {
            let credits = Some(credits);
            let options = LaunchOptions::default();
            launch_fields("p", LaunchOptions { credits, ..options })
        };
        assert_eq!(launch(2.5).unwrap()["credits"], 2.5);
        for credits in [f64::NAN, f64::INFINITY, -1.0, 9_223_372_036_854_775_808.0] {
            let error = launch(credits).unwrap_err();
            assert_eq!(error.code(), "invalid-argument");
            let named = format!("credits is {credits:?}; give a number of credits from 0 to");
            assert!(error.message().starts_with(&named), "{error}");
        }
    }

    #[test]
    fn a_limit_that_is_not_a_number_is_refused() {
        let options = LaunchOptions {
            limits: BTreeMap::from([("cpu_s".to_owned(), Some(f64::NAN))]),
            ..LaunchOptions::default()
        };
        let error = launch_fields("p", options).unwrap_err();
        assert_eq!(error.code(), "invalid-argument");
        assert!(
            error.message().starts_with("limits[\"cpu_s\"] is"),
            "{error}"
        );
    }
}
