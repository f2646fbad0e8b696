/** Promises of the engine. All waiting of the SDK is here. */
export {};
