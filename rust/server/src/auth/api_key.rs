//! The text of an API key: `pie_`, 12 digits of its id, `_`, 64 digits of a secret, 8 digits of a checksum, all
//! hexadecimal.
//!
//! The secret is 256 random bits, so that nobody can try them through. A slow hash protects what people choose; of
//! random bits a plain SHA-256 is enough, and a client cannot make the server compute for long. The checksum tells a
//! mistyped key from a revoked one before it is sent, and scanners of published text a key from something that only
//! looks like one.

use pie_host::Error;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

/// Bytes of a key that are looked at: a key has fewer.
pub(super) const MAX_KEY_BYTES: usize = 256;
/// What every key begins with.
pub(crate) const PREFIX: &str = "pie_";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;
const CHECK_BYTES: usize = 4;
/// Characters of a key.
const KEY_CHARS: usize = PREFIX.len() + 2 * (ID_BYTES + SECRET_BYTES + CHECK_BYTES) + 1;
/// What is hashed before a key, so that a digest of ours is no other's.
const HASHED_BEFORE: &[u8] = b"pie api key 1\0";

/// A new key: its id, and its text, which is shown once.
pub(crate) struct Made {
    pub(crate) id: String,
    pub(crate) text: String,
}

/// Makes a key.
///
/// # Errors
/// `internal` where the system gives no random bytes.
pub(crate) fn make() -> Result<Made, Error> {
    let id = hex(&random::<ID_BYTES>()?);
    let body = format!("{PREFIX}{id}_{}", hex(&random::<SECRET_BYTES>()?));
    let text = format!("{body}{}", check_digits(&body));
    Ok(Made { id, text })
}

/// An id for a key without a secret.
///
/// # Errors
/// As [`make`].
pub(crate) fn make_id() -> Result<String, Error> {
    Ok(hex(&random::<ID_BYTES>()?))
}

/// Random bytes.
///
/// # Errors
/// As [`make`].
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::internal("the system gives no random bytes"))?;
    Ok(bytes)
}

/// The id in a text of the form of a key; none for any other text.
pub(crate) fn id_of(text: &str) -> Option<&str> {
    let (id, rest) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let is_hex = |text: &str| {
        text.bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let whole = text.len() == KEY_CHARS && id.len() == 2 * ID_BYTES && is_hex(id) && is_hex(rest);
    let (body, check) = text.split_at_checked(KEY_CHARS.checked_sub(2 * CHECK_BYTES)?)?;
    (whole && check == check_digits(body)).then_some(id)
}

/// What is kept of a key.
pub(crate) fn digest(text: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(HASHED_BEFORE);
    hash.update(text.as_bytes());
    hash.finalize().into()
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text does not fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

/// The 32 bytes that 64 hexadecimal digits stand for.
pub(crate) fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes().as_chunks::<2>();
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.0) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn check_digits(body: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(body.as_bytes()).into();
    hex(&digest[..CHECK_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_id_and_nothing_else_is_a_key() {
        let made = make().unwrap();
        assert_eq!(made.text.len(), KEY_CHARS);
        assert_eq!(id_of(&made.text), Some(made.id.as_str()));
        let mut other = made.text.clone();
        let last = other.pop().unwrap();
        other.push(if last == '0' { '1' } else { '0' });
        for text in [
            "",
            "pie_",
            other.as_str(),
            &made.text[1..],
            &made.text.to_uppercase(),
            &format!("{}0", made.text),
            &"ä".repeat(60),
        ] {
            assert_eq!(id_of(text), None, "{text}");
        }
    }

    #[test]
    fn keys_differ_and_their_digests_too() {
        let (one, two) = (make().unwrap(), make().unwrap());
        assert_ne!(one.text, two.text);
        assert_ne!(digest(&one.text), digest(&two.text));
        assert_eq!(unhex(&hex(&digest(&one.text))), Some(digest(&one.text)));
        assert_eq!(unhex("00"), None);
        assert_eq!(unhex(&"g".repeat(64)), None);
        assert_eq!(unhex(&"+0".repeat(32)), None);
    }
}
