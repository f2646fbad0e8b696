// Generated from tools/errors.toml by tools/gen_errors.py; do not edit.

/** Every error code, in the order of the reference. */
export const ERROR_CODES = [
  /** No loaded model has that name. */
  'unknown-model',
  /** There is no program or file of that name. */
  'unknown-program',
  /**
   * The program cannot run: it is not a component of the expected world, is damaged, or has source that does not parse.
   */
  'invalid-program',
  /** The program ended with an error of its own. */
  'program-error',
  /** Every task of the program waits, and nothing could wake one. */
  'deadlock',
  /** The launch input does not fit what the entry of the program takes. */
  'invalid-input',
  /** The program returned a value that is not JSON. */
  'invalid-output',
  /** An argument of a call is out of its range or of the wrong type. */
  'invalid-argument',
  /** A token id lies outside the vocabulary of the model. */
  'invalid-token',
  /** A parameter of a sampler is out of its range. */
  'invalid-sampler',
  /** A parameter of a probe is out of its range. */
  'invalid-probe',
  /** There is nothing to generate from. */
  'empty-context',
  /** A pass of the context is under way, so that its state cannot be read or changed by this call. */
  'context-busy',
  /** The context was released. */
  'context-released',
  /** The context would become longer than the model allows. */
  'context-full',
  /** The user has no snapshot of that name. */
  'snapshot-missing',
  /** The file of a snapshot is damaged, or was made with another model, tokenizer, version or adapter. */
  'snapshot-unusable',
  /** The user has no adapter of that name. */
  'adapter-missing',
  /** The user has an adapter of that name already. */
  'adapter-exists',
  /** An adapter was to be destroyed with which a pass is computed. */
  'adapter-busy',
  /** The files of an adapter are damaged, do not fit the model, or ask for what is not supported. */
  'invalid-adapter',
  /** There are too many adapters, of this user or in all, or they take too many bytes. */
  'limit-adapters',
  /** Too many snapshots are kept, of this user or in all. */
  'limit-snapshots',
  /** More tokens were to be dropped than lie outside committed pages. */
  'truncate-range',
  /** The pages that the pass needs cannot be had. */
  'out-of-pages',
  /** The driver of the model does not serve what the pass needs. */
  'unsupported',
  /** A newer generator, a truncation or a release retired this generator. */
  'generator-retired',
  /** A step was opened and never executed, executed without being opened, or cannot be accepted in this place. */
  'step-pending',
  /** The answer of this future was taken before. */
  'future-taken',
  /** The client has disconnected. */
  'session-closed',
  /** The engine has no more memory for this user, or at all: what one user holds is bounded, and what all hold. */
  'limit-engine-memory',
  /** The program asked for more memory than one instance may have. */
  'limit-memory',
  /** The program used more CPU time than one instance may use. */
  'limit-cpu',
  /** The program ran longer than one instance may run. */
  'limit-wall',
  /** A step or a flush took longer than one may take; the context is as it was before. */
  'limit-pass',
  /** The token mask of a row did not come in time; the context is as it was before. */
  'late-mask',
  /** A schema, a regular expression or a grammar does not parse, cannot be enforced, or takes too much. */
  'invalid-grammar',
  /** A token does not continue the text of a grammar, or a text does not fit it. */
  'grammar-mismatch',
  /** A document was cut before its end, by max_tokens or the length of the context. */
  'json-cut',
  /** The program recursed deeper than its stack allows. */
  'limit-stack',
  /** More contexts, generators, futures or other handles are held than a program, its user or the engine may hold. */
  'limit-resources',
  /** A message or a list is larger than one call may carry. */
  'limit-message',
  /** Too many requests, messages or programs to compile wait, or the machine was too busy to read a program. */
  'limit-queue',
  /** The queue of a topic was full and nobody took a message in time, or all queues of the user hold too much. */
  'queue-full',
  /** The program was stopped by a fault in its own code. */
  'trap',
  /** The program or the pass was cancelled. */
  'cancelled',
  /** The driver of the model failed while it ran the pass; the context is as it was before. */
  'driver-failed',
  /** The process of the driver ended or hung while it ran the pass; the context is as it was before. */
  'driver-lost',
  /** The driver of the model ended too often, or cannot be started again. */
  'model-unavailable',
  /** The driver answered with a row that holds NaN, or rows of the wrong shape; the context is as it was before. */
  'bad-logits',
  /** The engine is stopping. */
  'engine-stopped',
  /** The model folder cannot be loaded. */
  'invalid-model',
  /** The chat template of the model is missing or failed. */
  'template-error',
  /** A setting is out of its range. */
  'invalid-config',
  /** The engine found a fault of its own. */
  'internal',
  /** The files of a program would take more than they may: bytes, number, depth or the disk. */
  'limit-files',
  /** The engine gives programs no folder of their own, `/scratch`. */
  'files-off',
  /** Work on files of programs does not end: the disk under them does not answer. */
  'files-stalled',
  /** The operator has not allowed programs to send requests to that server, or to an address that it has. */
  'net-denied',
  /** A server cannot be reached: its name is not known, it refuses connections, or TLS fails. */
  'net-unreachable',
  /** A server did not answer as HTTP has it: it said nonsense, or broke off. */
  'http-protocol',
  /** A server redirected a request too often, to no place that a request can go, or though the program refuses it. */
  'http-redirects',
  /** Too many HTTP requests are under way or wait, of the program, of its user or in the engine. */
  'limit-http-requests',
  /** The body of an HTTP request or of its answer is longer than it may be. */
  'limit-http-bytes',
  /** The head of an HTTP request or of its answer is longer than it may be. */
  'limit-http-headers',
  /** An HTTP request took longer than it may: to connect, to be answered, between two parts, or in all. */
  'limit-http-time',
  /** There is no MCP server of this name for the program. */
  'unknown-mcp-server',
  /** An MCP server cannot be started or reached, has ended, or is of a client that has gone. */
  'mcp-unavailable',
  /** An MCP server did not answer as the protocol has it. */
  'mcp-protocol',
  /**
   * An MCP server refused a call: it does not know the tool, the resource or the prompt, or the arguments are wrong.
   */
  'mcp-error',
  /** A call was made by a session with an MCP server that is closed, or was closed while the call was under way. */
  'mcp-closed',
  /** Too many sessions with MCP servers are open, or too many calls under way, of the program or of its user. */
  'limit-mcp-calls',
  /** A call of an MCP server, or its answer, is longer than it may be. */
  'limit-mcp-bytes',
  /** An MCP server took longer than it may: to start, or to answer a call. */
  'limit-mcp-time',
  /** The program asked for requests by HTTP, and was not launched to answer any. */
  'not-serving',
  /** A program that serves HTTP ended, or failed, before it had answered a request. */
  'http-no-answer',
  /** The client of a request by HTTP has gone, or its time was over, before it had all of the answer. */
  'client-gone',
  /** A client asked a program that serves HTTP for a WebSocket. */
  'websocket-unsupported',
  /** The program wrote more than one process may write in its life. */
  'limit-output',
  /** The program made more calls to the engine than one process may make. */
  'limit-calls',
  /** The program holds more timers than one process may hold. */
  'limit-timers',
  /** Compiling the program took more time or memory than a compilation may take. */
  'limit-compile',
  /** The program is larger, or has more parts, than a program may have. */
  'limit-program',
  /** Too many processes live, of this user or in the engine. */
  'limit-processes',
  /** A program wanted to start a child too many generations below the launch of its client. */
  'limit-child-depth',
  /** Too many processes that one launch has started, directly or not, live. */
  'limit-children',
  /** One launch has started too many processes, directly or not. */
  'limit-spawns',
  /** The tokens that the process may put into its contexts are used up. */
  'token-budget',
  /** There is no process of that number, or it is another user's. */
  'unknown-process',
  /** The language runtime that a built program names is not known to this engine. */
  'unknown-runtime',
  /** The name of a program, a version or a user is not one. */
  'invalid-name',
  /** The manifest `Pie.toml` is damaged or does not fit the program. */
  'invalid-manifest',
  /** The program could not be built. */
  'build-failed',
  /** Another client is attached to the process and reads its events. */
  'process-attached',
  /** The address to serve on is taken or cannot be used. */
  'port-in-use',
  /** The server cannot be reached, or the connection broke. */
  'connection-failed',
  /** Client and server speak different versions of the protocol. */
  'protocol-version',
  /** A message does not follow the protocol. */
  'protocol-error',
  /** A web page of an origin that is not allowed tried to connect, or by a name that the server does not know. */
  'forbidden-origin',
  /** A header names a user, and it does not come from a proxy that the server trusts. */
  'untrusted-header',
  /** The server has to know who the client is, and the client did not prove it. */
  'authentication-required',
  /** The key is unknown, revoked or expired, the signature is wrong, or the user is not the one of the key. */
  'authentication-failed',
  /** Too many keys of one address were no good. */
  'limit-attempts',
  /** What was asked for needs another role than that of the client. */
  'not-permitted',
  /** There is no key of that id. */
  'unknown-key',
  /** The data folder holds as many keys as it can. */
  'limit-keys',
  /** Too many clients are connected, in all, of the user or of the address. */
  'limit-connections',
  /** An upload is larger than one may be, or too many wait. */
  'limit-upload',
  /** What arrived is not what the digest or the length of the upload says. */
  'upload-damaged',
  /** The server is about to end and takes no new launches. */
  'server-draining',
  /** A message of a client did not end in the time that one may take. */
  'limit-frame',
  /** The disk of the engine has no room for what was to be written; what was there before stays. */
  'disk-full',
  /** The engine may not write to its own folder, or not read in it; what was there before stays. */
  'disk-read-only',
  /** The disk of the engine failed at what was to be read or written. */
  'disk-error',
] as const;

/** The stable name of what went wrong. */
export type ErrorCode = (typeof ERROR_CODES)[number];
