//! What a server tells of what it has: processes, programs, snapshots, adapters, topics, connections and logs.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A process in a list.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// Its number.
    pub pid: u64,
    /// What was launched: `name@version`, or the digest.
    pub program: String,
    /// What its client calls the file that was uploaded; none where nobody has said.
    pub name: Option<String>,
    /// `running` or `ended`.
    pub state: String,
    /// Whether a client reads its events.
    pub attached: bool,
    /// Whether it lives on without a client, without limit.
    pub detached: bool,
    /// Seconds since 1970.
    pub started: f64,
    /// Seconds since 1970; none while it runs.
    pub ended: Option<f64>,
    /// Processor time, in seconds.
    #[serde(default)]
    pub cpu_s: f64,
    /// How it ended: `return`, or the code of its error; none while it runs.
    pub exit: Option<String>,
    /// Events of output that were dropped while nobody read them.
    #[serde(default)]
    pub dropped: u64,
    /// Tokens that have entered its contexts.
    #[serde(default)]
    pub tokens: u64,
    /// Whose it is, in a list of everybody's.
    pub user: Option<String>,
    /// What it has of the market for pages, by the name of the model; empty once it has ended.
    #[serde(default)]
    pub credits: BTreeMap<String, f64>,
    /// The highest bid of its contexts, in credits a page, by the name of the model.
    #[serde(default)]
    pub bids: BTreeMap<String, f64>,
}

/// An installed program.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[non_exhaustive]
pub struct ProgramInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its content: `sha256:...`.
    pub digest: String,
    /// Its size.
    pub bytes: u64,
    /// Seconds since 1970.
    pub installed: f64,
    /// Whose it is, in a list of everybody's.
    pub user: Option<String>,
}

/// A context that a program saved under a name.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// The name of the model.
    pub model: String,
    /// The name under which it was saved.
    pub name: String,
    /// Its length.
    pub tokens: u64,
    /// Whose it is, in a list of everybody's.
    pub user: Option<String>,
}

/// An adapter to which a program gave a name.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdapterInfo {
    /// The name of the model.
    pub model: String,
    /// Its name.
    pub name: String,
    /// The bytes of the files of its weights.
    pub bytes: u64,
    /// Whose it is, in a list of everybody's.
    pub user: Option<String>,
}

/// A client that is connected, as operators see it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// Its number, for the life of the server.
    pub connection: u64,
    /// Whose it is.
    pub user: String,
    /// `read`, `user` or `operator`.
    pub role: String,
    /// The id of the key by which it came in.
    pub key: Option<String>,
    /// Where it comes from.
    pub address: String,
    /// What it calls itself.
    pub client: String,
    /// Seconds since 1970.
    pub since: f64,
}

/// A topic by which programs send to each other, while it is in use.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicInfo {
    /// Its name.
    pub topic: String,
    /// Messages that wait in its queue.
    pub queued: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Pushes that wait for room.
    pub waiting_pushes: u64,
    /// Pulls that wait for a message.
    pub waiting_pulls: u64,
    /// Subscriptions to it.
    pub subscriptions: u64,
    /// Whose it is, in a list of everybody's.
    pub user: Option<String>,
}

/// A part of what a process wrote to its standard output and error, as one text.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[non_exhaustive]
pub struct Logs {
    /// The part.
    pub text: String,
    /// The position after the text, from which to read on.
    pub next: u64,
    /// Bytes before the text that are no longer kept.
    pub dropped_bytes: u64,
    /// Whether the process has ended.
    pub ended: bool,
}
