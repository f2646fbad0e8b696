// Generated from tools/errors.toml by tools/gen_errors.py; do not edit.

/// The stable name of what went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// No loaded model has that name.
    UnknownModel,
    /// There is no program or file of that name.
    UnknownProgram,
    /// The program cannot run: it is not a component of the expected world, is damaged, or has source that does not
    /// parse.
    InvalidProgram,
    /// The program ended with an error of its own.
    ProgramError,
    /// Every task of the program waits, and nothing could wake one.
    Deadlock,
    /// The launch input does not fit what the entry of the program takes.
    InvalidInput,
    /// The program returned a value that is not JSON.
    InvalidOutput,
    /// An argument of a call is out of its range or of the wrong type.
    InvalidArgument,
    /// A token id lies outside the vocabulary of the model.
    InvalidToken,
    /// A parameter of a sampler is out of its range.
    InvalidSampler,
    /// A parameter of a probe is out of its range.
    InvalidProbe,
    /// There is nothing to generate from.
    EmptyContext,
    /// A pass of the context is under way, so that its state cannot be read or changed by this call.
    ContextBusy,
    /// The context was released.
    ContextReleased,
    /// The context would become longer than the model allows.
    ContextFull,
    /// The user has no snapshot of that name.
    SnapshotMissing,
    /// The file of a snapshot is damaged, or was made with another model, tokenizer, version or adapter.
    SnapshotUnusable,
    /// The user has no adapter of that name.
    AdapterMissing,
    /// The user has an adapter of that name already.
    AdapterExists,
    /// An adapter was to be destroyed with which a pass is computed.
    AdapterBusy,
    /// The files of an adapter are damaged, do not fit the model, or ask for what is not supported.
    InvalidAdapter,
    /// There are too many adapters, of this user or in all, or they take too many bytes.
    LimitAdapters,
    /// Too many snapshots are kept, of this user or in all.
    LimitSnapshots,
    /// More tokens were to be dropped than lie outside committed pages.
    TruncateRange,
    /// The pages that the pass needs cannot be had.
    OutOfPages,
    /// The driver of the model does not serve what the pass needs.
    Unsupported,
    /// A newer generator, a truncation or a release retired this generator.
    GeneratorRetired,
    /// A step was opened and never executed, executed without being opened, or cannot be accepted in this place.
    StepPending,
    /// The answer of this future was taken before.
    FutureTaken,
    /// The client has disconnected.
    SessionClosed,
    /// The engine has no more memory for this user, or at all: what one user holds is bounded, and what all hold.
    LimitEngineMemory,
    /// The program asked for more memory than one instance may have.
    LimitMemory,
    /// The program used more CPU time than one instance may use.
    LimitCpu,
    /// The program ran longer than one instance may run.
    LimitWall,
    /// A step or a flush took longer than one may take; the context is as it was before.
    LimitPass,
    /// The token mask of a row did not come in time; the context is as it was before.
    LateMask,
    /// A schema, a regular expression or a grammar does not parse, cannot be enforced, or takes too much.
    InvalidGrammar,
    /// A token does not continue the text of a grammar, or a text does not fit it.
    GrammarMismatch,
    /// A document was cut before its end, by max_tokens or the length of the context.
    JsonCut,
    /// The program recursed deeper than its stack allows.
    LimitStack,
    /// More contexts, generators, futures or other handles are held than a program, its user or the engine may hold.
    LimitResources,
    /// A message or a list is larger than one call may carry.
    LimitMessage,
    /// Too many requests, messages or programs to compile wait, or the machine was too busy to read a program.
    LimitQueue,
    /// The queue of a topic was full and nobody took a message in time, or all queues of the user hold too much.
    QueueFull,
    /// The program was stopped by a fault in its own code.
    Trap,
    /// The program or the pass was cancelled.
    Cancelled,
    /// The driver of the model failed while it ran the pass; the context is as it was before.
    DriverFailed,
    /// The process of the driver ended or hung while it ran the pass; the context is as it was before.
    DriverLost,
    /// The driver of the model ended too often, or cannot be started again.
    ModelUnavailable,
    /// The driver answered with a row that holds NaN, or rows of the wrong shape; the context is as it was before.
    BadLogits,
    /// The engine is stopping.
    EngineStopped,
    /// The model folder cannot be loaded.
    InvalidModel,
    /// The chat template of the model is missing or failed.
    TemplateError,
    /// A setting is out of its range.
    InvalidConfig,
    /// The engine found a fault of its own.
    Internal,
    /// The files of a program would take more than they may: bytes, number, depth or the disk.
    LimitFiles,
    /// The engine gives programs no folder of their own, `/scratch`.
    FilesOff,
    /// Work on files of programs does not end: the disk under them does not answer.
    FilesStalled,
    /// The operator has not allowed programs to send requests to that server, or to an address that it has.
    NetDenied,
    /// A server cannot be reached: its name is not known, it refuses connections, or TLS fails.
    NetUnreachable,
    /// A server did not answer as HTTP has it: it said nonsense, or broke off.
    HttpProtocol,
    /// A server redirected a request too often, to no place that a request can go, or though the program refuses it.
    HttpRedirects,
    /// Too many HTTP requests are under way or wait, of the program, of its user or in the engine.
    LimitHttpRequests,
    /// The body of an HTTP request or of its answer is longer than it may be.
    LimitHttpBytes,
    /// The head of an HTTP request or of its answer is longer than it may be.
    LimitHttpHeaders,
    /// An HTTP request took longer than it may: to connect, to be answered, between two parts, or in all.
    LimitHttpTime,
    /// There is no MCP server of this name for the program.
    UnknownMcpServer,
    /// An MCP server cannot be started or reached, has ended, or is of a client that has gone.
    McpUnavailable,
    /// An MCP server did not answer as the protocol has it.
    McpProtocol,
    /// An MCP server refused a call: it does not know the tool, the resource or the prompt, or the arguments are wrong.
    McpError,
    /// A call was made by a session with an MCP server that is closed, or was closed while the call was under way.
    McpClosed,
    /// Too many sessions with MCP servers are open, or too many calls under way, of the program or of its user.
    LimitMcpCalls,
    /// A call of an MCP server, or its answer, is longer than it may be.
    LimitMcpBytes,
    /// An MCP server took longer than it may: to start, or to answer a call.
    LimitMcpTime,
    /// The program asked for requests by HTTP, and was not launched to answer any.
    NotServing,
    /// A program that serves HTTP ended, or failed, before it had answered a request.
    HttpNoAnswer,
    /// The client of a request by HTTP has gone, or its time was over, before it had all of the answer.
    ClientGone,
    /// A client asked a program that serves HTTP for a WebSocket.
    WebsocketUnsupported,
    /// The program wrote more than one process may write in its life.
    LimitOutput,
    /// The program made more calls to the engine than one process may make.
    LimitCalls,
    /// The program holds more timers than one process may hold.
    LimitTimers,
    /// Compiling the program took more time or memory than a compilation may take.
    LimitCompile,
    /// The program is larger, or has more parts, than a program may have.
    LimitProgram,
    /// Too many processes live, of this user or in the engine.
    LimitProcesses,
    /// A program wanted to start a child too many generations below the launch of its client.
    LimitChildDepth,
    /// Too many processes that one launch has started, directly or not, live.
    LimitChildren,
    /// One launch has started too many processes, directly or not.
    LimitSpawns,
    /// The tokens that the process may put into its contexts are used up.
    TokenBudget,
    /// There is no process of that number, or it is another user's.
    UnknownProcess,
    /// The language runtime that a built program names is not known to this engine.
    UnknownRuntime,
    /// The name of a program, a version or a user is not one.
    InvalidName,
    /// The manifest `Pie.toml` is damaged or does not fit the program.
    InvalidManifest,
    /// The program could not be built.
    BuildFailed,
    /// Another client is attached to the process and reads its events.
    ProcessAttached,
    /// The address to serve on is taken or cannot be used.
    PortInUse,
    /// The server cannot be reached, or the connection broke.
    ConnectionFailed,
    /// Client and server speak different versions of the protocol.
    ProtocolVersion,
    /// A message does not follow the protocol.
    ProtocolError,
    /// A web page of an origin that is not allowed tried to connect, or by a name that the server does not know.
    ForbiddenOrigin,
    /// A header names a user, and it does not come from a proxy that the server trusts.
    UntrustedHeader,
    /// The server has to know who the client is, and the client did not prove it.
    AuthenticationRequired,
    /// The key is unknown, revoked or expired, the signature is wrong, or the user is not the one of the key.
    AuthenticationFailed,
    /// Too many keys of one address were no good.
    LimitAttempts,
    /// What was asked for needs another role than that of the client.
    NotPermitted,
    /// There is no key of that id.
    UnknownKey,
    /// The data folder holds as many keys as it can.
    LimitKeys,
    /// Too many clients are connected, in all, of the user or of the address.
    LimitConnections,
    /// An upload is larger than one may be, or too many wait.
    LimitUpload,
    /// What arrived is not what the digest or the length of the upload says.
    UploadDamaged,
    /// The server is about to end and takes no new launches.
    ServerDraining,
    /// A message of a client did not end in the time that one may take.
    LimitFrame,
    /// The disk of the engine has no room for what was to be written; what was there before stays.
    DiskFull,
    /// The engine may not write to its own folder, or not read in it; what was there before stays.
    DiskReadOnly,
    /// The disk of the engine failed at what was to be read or written.
    DiskError,
}

impl ErrorCode {
    /// Every code, in the order of the reference.
    pub const ALL: &'static [Self] = &[
        Self::UnknownModel,
        Self::UnknownProgram,
        Self::InvalidProgram,
        Self::ProgramError,
        Self::Deadlock,
        Self::InvalidInput,
        Self::InvalidOutput,
        Self::InvalidArgument,
        Self::InvalidToken,
        Self::InvalidSampler,
        Self::InvalidProbe,
        Self::EmptyContext,
        Self::ContextBusy,
        Self::ContextReleased,
        Self::ContextFull,
        Self::SnapshotMissing,
        Self::SnapshotUnusable,
        Self::AdapterMissing,
        Self::AdapterExists,
        Self::AdapterBusy,
        Self::InvalidAdapter,
        Self::LimitAdapters,
        Self::LimitSnapshots,
        Self::TruncateRange,
        Self::OutOfPages,
        Self::Unsupported,
        Self::GeneratorRetired,
        Self::StepPending,
        Self::FutureTaken,
        Self::SessionClosed,
        Self::LimitEngineMemory,
        Self::LimitMemory,
        Self::LimitCpu,
        Self::LimitWall,
        Self::LimitPass,
        Self::LateMask,
        Self::InvalidGrammar,
        Self::GrammarMismatch,
        Self::JsonCut,
        Self::LimitStack,
        Self::LimitResources,
        Self::LimitMessage,
        Self::LimitQueue,
        Self::QueueFull,
        Self::Trap,
        Self::Cancelled,
        Self::DriverFailed,
        Self::DriverLost,
        Self::ModelUnavailable,
        Self::BadLogits,
        Self::EngineStopped,
        Self::InvalidModel,
        Self::TemplateError,
        Self::InvalidConfig,
        Self::Internal,
        Self::LimitFiles,
        Self::FilesOff,
        Self::FilesStalled,
        Self::NetDenied,
        Self::NetUnreachable,
        Self::HttpProtocol,
        Self::HttpRedirects,
        Self::LimitHttpRequests,
        Self::LimitHttpBytes,
        Self::LimitHttpHeaders,
        Self::LimitHttpTime,
        Self::UnknownMcpServer,
        Self::McpUnavailable,
        Self::McpProtocol,
        Self::McpError,
        Self::McpClosed,
        Self::LimitMcpCalls,
        Self::LimitMcpBytes,
        Self::LimitMcpTime,
        Self::NotServing,
        Self::HttpNoAnswer,
        Self::ClientGone,
        Self::WebsocketUnsupported,
        Self::LimitOutput,
        Self::LimitCalls,
        Self::LimitTimers,
        Self::LimitCompile,
        Self::LimitProgram,
        Self::LimitProcesses,
        Self::LimitChildDepth,
        Self::LimitChildren,
        Self::LimitSpawns,
        Self::TokenBudget,
        Self::UnknownProcess,
        Self::UnknownRuntime,
        Self::InvalidName,
        Self::InvalidManifest,
        Self::BuildFailed,
        Self::ProcessAttached,
        Self::PortInUse,
        Self::ConnectionFailed,
        Self::ProtocolVersion,
        Self::ProtocolError,
        Self::ForbiddenOrigin,
        Self::UntrustedHeader,
        Self::AuthenticationRequired,
        Self::AuthenticationFailed,
        Self::LimitAttempts,
        Self::NotPermitted,
        Self::UnknownKey,
        Self::LimitKeys,
        Self::LimitConnections,
        Self::LimitUpload,
        Self::UploadDamaged,
        Self::ServerDraining,
        Self::LimitFrame,
        Self::DiskFull,
        Self::DiskReadOnly,
        Self::DiskError,
    ];

    /// The code as programs and clients see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownModel => "unknown-model",
            Self::UnknownProgram => "unknown-program",
            Self::InvalidProgram => "invalid-program",
            Self::ProgramError => "program-error",
            Self::Deadlock => "deadlock",
            Self::InvalidInput => "invalid-input",
            Self::InvalidOutput => "invalid-output",
            Self::InvalidArgument => "invalid-argument",
            Self::InvalidToken => "invalid-token",
            Self::InvalidSampler => "invalid-sampler",
            Self::InvalidProbe => "invalid-probe",
            Self::EmptyContext => "empty-context",
            Self::ContextBusy => "context-busy",
            Self::ContextReleased => "context-released",
            Self::ContextFull => "context-full",
            Self::SnapshotMissing => "snapshot-missing",
            Self::SnapshotUnusable => "snapshot-unusable",
            Self::AdapterMissing => "adapter-missing",
            Self::AdapterExists => "adapter-exists",
            Self::AdapterBusy => "adapter-busy",
            Self::InvalidAdapter => "invalid-adapter",
            Self::LimitAdapters => "limit-adapters",
            Self::LimitSnapshots => "limit-snapshots",
            Self::TruncateRange => "truncate-range",
            Self::OutOfPages => "out-of-pages",
            Self::Unsupported => "unsupported",
            Self::GeneratorRetired => "generator-retired",
            Self::StepPending => "step-pending",
            Self::FutureTaken => "future-taken",
            Self::SessionClosed => "session-closed",
            Self::LimitEngineMemory => "limit-engine-memory",
            Self::LimitMemory => "limit-memory",
            Self::LimitCpu => "limit-cpu",
            Self::LimitWall => "limit-wall",
            Self::LimitPass => "limit-pass",
            Self::LateMask => "late-mask",
            Self::InvalidGrammar => "invalid-grammar",
            Self::GrammarMismatch => "grammar-mismatch",
            Self::JsonCut => "json-cut",
            Self::LimitStack => "limit-stack",
            Self::LimitResources => "limit-resources",
            Self::LimitMessage => "limit-message",
            Self::LimitQueue => "limit-queue",
            Self::QueueFull => "queue-full",
            Self::Trap => "trap",
            Self::Cancelled => "cancelled",
            Self::DriverFailed => "driver-failed",
            Self::DriverLost => "driver-lost",
            Self::ModelUnavailable => "model-unavailable",
            Self::BadLogits => "bad-logits",
            Self::EngineStopped => "engine-stopped",
            Self::InvalidModel => "invalid-model",
            Self::TemplateError => "template-error",
            Self::InvalidConfig => "invalid-config",
            Self::Internal => "internal",
            Self::LimitFiles => "limit-files",
            Self::FilesOff => "files-off",
            Self::FilesStalled => "files-stalled",
            Self::NetDenied => "net-denied",
            Self::NetUnreachable => "net-unreachable",
            Self::HttpProtocol => "http-protocol",
            Self::HttpRedirects => "http-redirects",
            Self::LimitHttpRequests => "limit-http-requests",
            Self::LimitHttpBytes => "limit-http-bytes",
            Self::LimitHttpHeaders => "limit-http-headers",
            Self::LimitHttpTime => "limit-http-time",
            Self::UnknownMcpServer => "unknown-mcp-server",
            Self::McpUnavailable => "mcp-unavailable",
            Self::McpProtocol => "mcp-protocol",
            Self::McpError => "mcp-error",
            Self::McpClosed => "mcp-closed",
            Self::LimitMcpCalls => "limit-mcp-calls",
            Self::LimitMcpBytes => "limit-mcp-bytes",
            Self::LimitMcpTime => "limit-mcp-time",
            Self::NotServing => "not-serving",
            Self::HttpNoAnswer => "http-no-answer",
            Self::ClientGone => "client-gone",
            Self::WebsocketUnsupported => "websocket-unsupported",
            Self::LimitOutput => "limit-output",
            Self::LimitCalls => "limit-calls",
            Self::LimitTimers => "limit-timers",
            Self::LimitCompile => "limit-compile",
            Self::LimitProgram => "limit-program",
            Self::LimitProcesses => "limit-processes",
            Self::LimitChildDepth => "limit-child-depth",
            Self::LimitChildren => "limit-children",
            Self::LimitSpawns => "limit-spawns",
            Self::TokenBudget => "token-budget",
            Self::UnknownProcess => "unknown-process",
            Self::UnknownRuntime => "unknown-runtime",
            Self::InvalidName => "invalid-name",
            Self::InvalidManifest => "invalid-manifest",
            Self::BuildFailed => "build-failed",
            Self::ProcessAttached => "process-attached",
            Self::PortInUse => "port-in-use",
            Self::ConnectionFailed => "connection-failed",
            Self::ProtocolVersion => "protocol-version",
            Self::ProtocolError => "protocol-error",
            Self::ForbiddenOrigin => "forbidden-origin",
            Self::UntrustedHeader => "untrusted-header",
            Self::AuthenticationRequired => "authentication-required",
            Self::AuthenticationFailed => "authentication-failed",
            Self::LimitAttempts => "limit-attempts",
            Self::NotPermitted => "not-permitted",
            Self::UnknownKey => "unknown-key",
            Self::LimitKeys => "limit-keys",
            Self::LimitConnections => "limit-connections",
            Self::LimitUpload => "limit-upload",
            Self::UploadDamaged => "upload-damaged",
            Self::ServerDraining => "server-draining",
            Self::LimitFrame => "limit-frame",
            Self::DiskFull => "disk-full",
            Self::DiskReadOnly => "disk-read-only",
            Self::DiskError => "disk-error",
        }
    }

    /// The code of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}
