/** `DOMException`: how the Web's own functions fail. */

/** The codes that names had before names were enough. */
const CODES: Readonly<Record<string, number>> = {
  InvalidCharacterError: 5,
  NotSupportedError: 9,
  InvalidStateError: 11,
  SyntaxError: 12,
  TypeMismatchError: 17,
  AbortError: 20,
  QuotaExceededError: 22,
  TimeoutError: 23,
  DataCloneError: 25,
};

/** An error that is told by its name: `AbortError`, `TimeoutError`, `DataCloneError`. */
export class DOMException extends Error {
  constructor(message = '', name = 'Error') {
    super(String(message));
    this.name = String(name);
  }

  /** The older number of the name; 0 where it has none. */
  get code(): number {
    return Object.hasOwn(CODES, this.name) ? CODES[this.name]! : 0;
  }
}
