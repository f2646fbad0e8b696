//! How a client proves who it is: API keys, and private keys that sign the challenge of a server.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::Error;
#[cfg(feature = "keys")]
use crate::private_key::PrivateKey;
use crate::wire::{Fields, fields};

const KEY_PREFIX: &str = "pie_";
const KEY_CHARS: usize = 89;
const CHECKSUM_CHARS: usize = 8;
/// What every signed text begins with, so that a signature is good for nothing else.
#[cfg(feature = "keys")]
const SIGNED_BEFORE: &str = "pie hello 1";

/// Who a client says that it is, and how it proves that.
#[derive(Default)]
pub(crate) struct Identity {
    pub(crate) user: Option<String>,
    pub(crate) key: Option<String>,
    #[cfg(feature = "keys")]
    pub(crate) private_key: Option<PrivateKey>,
}

impl Identity {
    /// The fields of the hello that say so.
    pub(crate) fn proof(&self) -> Fields {
        let mut proof = fields(json!({ "user": self.user, "key": self.key }));
        #[cfg(feature = "keys")]
        if let Some(key) = &self.private_key {
            proof.insert("public_key".to_owned(), key.public_line().into());
        }
        proof.retain(|_, value| *value != Value::Null);
        proof
    }

    /// The answer to a challenge of the server that was called `host`; none without a private key.
    ///
    /// # Errors
    /// `internal` where the system gives no random bytes.
    #[cfg(feature = "keys")]
    pub(crate) fn sign(&self, host: &str, nonce: &str) -> Result<Option<String>, Error> {
        let Some(key) = &self.private_key else {
            return Ok(None);
        };
        let user = self.user.as_deref().unwrap_or_default();
        let message = format!("{SIGNED_BEFORE}\n{host}\n{user}\n{nonce}\n");
        key.sign(message.as_bytes()).map(Some)
    }

    /// Nothing signs.
    #[cfg(not(feature = "keys"))]
    pub(crate) fn sign(&self, _: &str, _: &str) -> Result<Option<String>, Error> {
        Ok(None)
    }
}

/// The API key, without what a file or a terminal adds.
///
/// # Errors
/// `invalid-argument`, without the key, where it is damaged.
pub(crate) fn check_key(key: &str) -> Result<String, Error> {
    let key = key.trim();
    let whole = key
        .len()
        .checked_sub(CHECKSUM_CHARS)
        .and_then(|end| key.split_at_checked(end))
        .filter(|(body, sum)| {
            key.len() == KEY_CHARS
                && body.starts_with(KEY_PREFIX)
                && sha256(body.as_bytes()).starts_with(sum)
        });
    if whole.is_some() {
        return Ok(key.to_owned());
    }
    let message = "this is not a whole API key: it begins with pie_, has 89 characters and ends with a checksum; copy it again";
    Err(Error::argument("key", message))
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256(data: &[u8]) -> String {
    Sha256::digest(data)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_whole_or_not_at_all() {
        let body = format!("pie_{}_{}", "0".repeat(12), "a".repeat(64));
        let key = format!("{body}{}", &sha256(body.as_bytes())[..CHECKSUM_CHARS]);
        assert_eq!(check_key(&format!(" {key}\n")).unwrap(), key);
        for damaged in [&key[1..], &key[..88], &key.replace('a', "b"), "", "ä"] {
            let error = check_key(damaged).unwrap_err();
            assert_eq!(error.code(), "invalid-argument");
            assert!(!error.message().contains(&body));
        }
    }

    #[test]
    fn an_identity_says_what_it_has() {
        assert!(Identity::default().proof().is_empty());
        let ada = Identity {
            user: Some("ada".to_owned()),
            ..Identity::default()
        };
        assert_eq!(Value::Object(ada.proof()), json!({ "user": "ada" }));
    }
}
