/** What a program may know of the engine and of its own launch. */
/** Names of the loaded models, in the order of the configuration; the first is the default. */
export declare function models(): string[];
/** Version of the engine, as `major.minor.patch`. */
export declare function version(): string;
/** Names this engine, not the process that runs in it. */
export declare function instanceId(): string;
/** The user who launched the program; `anonymous` where nobody gave a name. */
export declare function username(): string;
/** The launch arguments as they were typed after `--`, unparsed. */
export declare function args(): string[];
/** The seed from which every unseeded draw of this launch derives. Launching with the same seed repeats the run. */
export declare function launchSeed(): bigint;
