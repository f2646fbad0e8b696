//! The host of Pie: programs in WebAssembly sandboxes beside the models that they use.
//!
//! - [`Host`]: one engine. Models are added to it, programs are launched in it.
//! - [`Model`]: a loaded model. A driver pulls [`Batch`]es from it and answers them with logits.
//! - [`Program`]: a component, or sources for one of the language runtimes.
//! - [`Process`]: a launched program; its [`Event`]s come in order, the last one is its return value or its error.
//! - [`ServedProcess`]: a process that outlives its readers, which attach and detach.
//!
//! A call of a program enters `interface` and reaches the core of a model, either at once (calls that take
//! microseconds) or through the inbox (calls that wait for a batch). Its answer comes back through a future that the
//! program polls.

mod budget;
mod bus;
mod config;
mod counted;
mod errors;
mod event;
mod futures;
mod host;
mod http_in;
mod identity;
mod interface;
mod json_depth;
mod limits;
mod mcp;
mod model;
mod naming;
mod network;
mod numbering;
mod process;
mod program;
mod sandbox;
mod scratch;
mod shared_places;
mod snapshots;
mod stepped_charge;
mod sync;
mod temporary;

pub use budget::{Account, Budget, Charge, Purpose, Usage};
pub use bus::Bus;
pub use config::HostConfig;
pub use event::{Event, Failure, Form};
pub use host::{Check, Host};
pub use http_in::answer::AnswerBody;
pub use http_in::incoming::{ArrivedRequest, Asked, Asking, IncomingRequest, Outcome};
pub use http_in::queue::RequestQueue;
pub use identity::effective_user;
pub use limits::Limits;
pub use mcp::clients::McpClientServers;
pub use mcp::config::{HeaderLine, McpConfig, McpServerConfig, Part, Variable};
pub use mcp::heard::{McpHeard, McpWritten, mcp_heard};
pub use mcp::outgoing::McpLine;
pub use mcp::relay::{McpIncoming, McpRelay};
pub use model::driver::{Batch, Command, Work};
pub use model::state::ModelState;
pub use model::{AdapterInfo, Model, ModelConfig, SnapshotInfo};
pub use network::allowed::Allowed;
pub use network::config::NetworkConfig;
pub use numbering::{KEY_BYTES, Numbering};
pub use pie_core::bus::{BusLimits, BusSettingNames, BusStats, TopicStats};
pub use pie_core::settings;
pub use pie_core::settings::{Setting, Value};
pub use pie_core::{
    Capabilities, CommandFailure, DriverAnswer, EngineConfig, Error, ErrorCode, Figure, Stats,
    UserStats,
};
pub use process::{
    Finding, Holding, Inherited, Launch, LogText, Named, Observer, Process, Programs, Reader,
    ServedProcess, Serving,
};
pub use program::worker::compile_worker;
pub use program::{
    Component, HttpInstance, HttpService, Language, Manifest, Packed, Parameter, ParameterKind,
    Parameters, Preparation, Program, SourceBundle, did_you_mean, is_program_name,
    is_program_version, parse_digest, runtime_name,
};
pub use sandbox::pages::keep_small_pages;
pub use sandbox::priority::take_short_turns;
pub use sandbox::trim::{give_back_freed, keep_little_free};
pub use scratch::config::{FileScope, FilesConfig, Mount};
pub use shared_places::{Full, SharedPlace, SharedPlaces};
pub use snapshots::config::{Durability, PageKeeping, SnapshotConfig};
pub use snapshots::loose::{read_snapshot, snapshot_bytes};
