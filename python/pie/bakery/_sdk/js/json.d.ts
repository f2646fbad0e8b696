/** JSON as the SDK writes it: compact, in insertion order, and never with something silently left out. */
export {};
