/** How a client proves who it is: API keys, and private keys that sign the challenge of a server. */

import { refused } from './checks.js';
import { PieError } from './errors.js';

const KEY = /^(pie_[0-9a-f]{12}_[0-9a-f]{64})([0-9a-f]{8})$/;
const PEM = /-----BEGIN ([A-Z ]+)-----([\s\S]+?)-----END \1-----/;
const OPENSSH = 'OPENSSH PRIVATE KEY';
const OPENSSH_MAGIC = 'openssh-key-v1\0';
const ED25519_SEED_BYTES = 32;
// What stands before the seed of an Ed25519 key in PKCS #8 (RFC 8410).
const PKCS8_ED25519 = Uint8Array.of(0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20);
// How the public half of a key begins, in a line of OpenSSH, in PEM, and in the format of SSH2.
const PUBLIC = /^\s*(?:(?:sk-)?(?:ssh|ecdsa)-\w|-{4,5} ?BEGIN [A-Z0-9 ]*PUBLIC KEY)/;
// What every signed text begins with, so that a signature is good for nothing else.
const SIGNED_BEFORE = 'pie hello 1';

/** A kind of key: how the platform reads it, and how it signs. */
interface Kind {
  readonly read: EcKeyImportParams | RsaHashedImportParams | Algorithm;
  readonly sign: EcdsaParams | Algorithm;
}

const KINDS: readonly Kind[] = [
  { read: { name: 'Ed25519' }, sign: { name: 'Ed25519' } },
  { read: { name: 'ECDSA', namedCurve: 'P-256' }, sign: { name: 'ECDSA', hash: 'SHA-256' } as EcdsaParams },
  { read: { name: 'ECDSA', namedCurve: 'P-384' }, sign: { name: 'ECDSA', hash: 'SHA-384' } as EcdsaParams },
  { read: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }, sign: { name: 'RSASSA-PKCS1-v1_5' } },
];

/** The API key, without what a file adds. PieError `invalid-argument`, without the key, where it is damaged. */
export async function checkedKey(key: string): Promise<string> {
  const trimmed = key.trim();
  const [, whole, sum] = KEY.exec(trimmed) ?? [];
  if (whole === undefined || (await sha256(new TextEncoder().encode(whole))).slice(0, 8) !== sum) {
    const message = 'this is not a whole API key: it begins with pie_, has 89 characters and ends with a checksum; copy it again';
    throw new PieError('invalid-argument', message, { argument: 'key' });
  }
  return trimmed;
}

/** The SHA-256 of bytes, in hexadecimal digits. */
export async function sha256(data: Uint8Array): Promise<string> {
  const hash = new Uint8Array(await subtle().digest('SHA-256', data as Uint8Array<ArrayBuffer>));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A private key whose public half the operator of a server has added: Ed25519, ECDSA with P-256 or P-384, or RSA. */
export class PrivateKey {
  /** The public half, as a line of OpenSSH. */
  readonly publicLine: string;
  readonly #key: CryptoKey;
  readonly #kind: Kind;

  private constructor(key: CryptoKey, kind: Kind, publicLine: string) {
    this.#key = key;
    this.#kind = kind;
    this.publicLine = publicLine;
  }

  /**
   * Reads a key without a passphrase: PKCS #8 (PEM) of any kind, or the format of OpenSSH for Ed25519.
   * @throws PieError `invalid-argument` where it is not one.
   */
  static async parse(text: string): Promise<PrivateKey> {
    if (PUBLIC.test(text)) {
      const half = 'this is the public half of a key, which the operator of a server adds';
      const message = `${half}; give the private half, which lies in the file without .pub`;
      throw new PieError('invalid-argument', message, { argument: 'privateKey' });
    }
    const [, label, body] = PEM.exec(text) ?? [];
    if (label === undefined || body === undefined) throw unreadable();
    const data = fromBase64(body.replace(/\s+/g, ''));
    const pkcs8 = label === OPENSSH ? pkcs8OfOpenssh(data) : data;
    for (const kind of KINDS) {
      const key = await subtle().importKey('pkcs8', pkcs8, kind.read, true, ['sign']).catch(() => null);
      if (key !== null) return new PrivateKey(key, kind, await publicLine(key));
    }
    throw unreadable();
  }

  /** The answer to a challenge of the server that was called `host`, in base64. */
  async signHello(host: string, user: string, nonce: string): Promise<string> {
    const message = new TextEncoder().encode(`${SIGNED_BEFORE}\n${host}\n${user}\n${nonce}\n`);
    const signature = new Uint8Array(await subtle().sign(this.#kind.sign, this.#key, message));
    return toBase64(this.#kind.sign.name === 'ECDSA' ? derOfPair(signature) : signature);
  }
}

function subtle(): SubtleCrypto {
  // Browsers have it on pages that came by HTTPS or from loopback.
  const found = globalThis.crypto?.subtle as SubtleCrypto | undefined;
  if (found === undefined) {
    const message = 'keys and uploads need crypto.subtle, which browsers have on pages of https:// and of localhost alone';
    throw new PieError('unsupported', message);
  }
  return found;
}

function unreadable(): PieError {
  const message =
    'this is not a private key that can be read; give PKCS #8 without a passphrase, or an Ed25519 key that `ssh-keygen -t ed25519` makes';
  return new PieError('invalid-argument', message, { argument: 'privateKey' });
}

/** The key in a file of OpenSSH that holds one Ed25519 key without a passphrase, as PKCS #8. */
function pkcs8OfOpenssh(data: Uint8Array): Uint8Array<ArrayBuffer> {
  const magic = new TextDecoder().decode(data.subarray(0, OPENSSH_MAGIC.length));
  const outer = new SshReader(data.subarray(OPENSSH_MAGIC.length));
  const [cipher] = [outer.text(), outer.bytes(), outer.bytes()];
  if (magic !== OPENSSH_MAGIC || cipher !== 'none' || outer.number() !== 1) throw unreadable();
  outer.bytes(); // the public half
  const inner = new SshReader(outer.bytes());
  if (inner.number() !== inner.number() || inner.text() !== 'ssh-ed25519') throw unreadable();
  inner.bytes(); // the public half again, which also follows the seed
  return joined([PKCS8_ED25519, inner.bytes().subarray(0, ED25519_SEED_BYTES)]);
}

/** Reads what SSH writes: numbers of 32 bits, and bytes behind their length. */
class SshReader {
  readonly #data: Uint8Array;
  #at = 0;

  constructor(data: Uint8Array) {
    this.#data = data;
  }

  number(): number {
    if (this.#at + 4 > this.#data.length) throw unreadable();
    const view = new DataView(this.#data.buffer, this.#data.byteOffset + this.#at, 4);
    this.#at += 4;
    return view.getUint32(0);
  }

  bytes(): Uint8Array {
    const length = this.number();
    if (this.#at + length > this.#data.length) throw unreadable();
    this.#at += length;
    return this.#data.subarray(this.#at - length, this.#at);
  }

  text(): string {
    return new TextDecoder().decode(this.bytes());
  }
}

async function publicLine(key: CryptoKey): Promise<string> {
  const jwk = await subtle().exportKey('jwk', key);
  const part = (name: 'x' | 'y' | 'n' | 'e'): Uint8Array => fromBase64((jwk[name] ?? '').replace(/-/g, '+').replace(/_/g, '/'));
  if (jwk.kty === 'OKP') return sshLine('ssh-ed25519', [part('x')]);
  if (jwk.kty === 'RSA') return sshLine('ssh-rsa', [positive(part('e')), positive(part('n'))]);
  const curve = jwk.crv === 'P-256' ? 'nistp256' : 'nistp384';
  const point = joined([Uint8Array.of(4), part('x'), part('y')]);
  return sshLine(`ecdsa-sha2-${curve}`, [new TextEncoder().encode(curve), point]);
}

function sshLine(kind: string, parts: readonly Uint8Array[]): string {
  const withLengths = [new TextEncoder().encode(kind), ...parts].flatMap((part) => {
    const length = new Uint8Array(4);
    new DataView(length.buffer).setUint32(0, part.length);
    return [length, part];
  });
  return `${kind} ${toBase64(joined(withLengths))}`;
}

/** A signature of ECDSA as the platform gives it, two numbers of one length, in ASN.1 DER. */
function derOfPair(signature: Uint8Array): Uint8Array {
  const half = signature.length / 2;
  const numbers = [signature.subarray(0, half), signature.subarray(half)].flatMap((one) => {
    const number = positive(one);
    return [Uint8Array.of(2, number.length), number];
  });
  const body = joined(numbers);
  return joined([Uint8Array.of(0x30, body.length), body]);
}

/** A number above zero in the fewest bytes whose first bit is not set, as SSH and ASN.1 write it. */
function positive(number: Uint8Array): Uint8Array {
  const first = number.findIndex((byte) => byte !== 0);
  const bare = first < 0 ? new Uint8Array() : number.subarray(first);
  return (bare[0] ?? 0x80) < 0x80 ? bare : joined([Uint8Array.of(0), bare]);
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    throw unreadable();
  }
}

function toBase64(data: Uint8Array): string {
  return btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join(''));
}

/** Checks that a key of a caller is one. */
export function checkedPrivateKey(value: unknown): PrivateKey {
  if (!(value instanceof PrivateKey)) throw refused('privateKey', value, 'a PrivateKey, from `PrivateKey.parse`');
  return value;
}
