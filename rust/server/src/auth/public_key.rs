//! The hello by signature: the server makes up a challenge, the client signs it, and the signature is verified by a
//! public key that the operator has added.
//!
//! What is signed begins with a text of our own and names the host that the client talks to and the user that it wants
//! to be. So a signature is good for nothing else, as for SSH, and a server that a client trusts cannot use it at
//! another server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pie_host::{Error, ErrorCode};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use ssh_key::public::{EcdsaPublicKey, KeyData};

use super::api_key;

/// Characters of the longest public key that is looked at: RSA with 8,192 bits has 1,400.
const MAX_KEY_CHARS: usize = 2048;
/// Characters of the longest signature: that of RSA with 8,192 bits has 1,368.
const MAX_SIGNATURE_CHARS: usize = 1400;
/// The shortest RSA key.
const MIN_RSA_BITS: usize = 2048;
/// What every signed text begins with.
const SIGNED_BEFORE: &str = "pie hello 1";

/// A public key in the format of OpenSSH.
#[derive(Clone, Debug)]
pub(crate) struct PublicKey {
    key: ssh_key::PublicKey,
}

impl PublicKey {
    /// Reads `ssh-ed25519 AAAA... [comment]`, and so on.
    ///
    /// # Errors
    /// `invalid-argument` for what is not a key, and for a kind or a size that is not accepted.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let refused = |reason: &str| {
            let message = format!(
                "this is not a public key that can be used ({reason}); give one line of OpenSSH, as in \"ssh-ed25519 AAAA...\": ed25519, \
                 ECDSA with P-256 or P-384, or RSA with at least {MIN_RSA_BITS} bits"
            );
            Error::new(ErrorCode::InvalidArgument, message)
        };
        if text.len() > MAX_KEY_CHARS {
            return Err(refused("it is too long"));
        }
        let key =
            ssh_key::PublicKey::from_openssh(text).map_err(|error| refused(&error.to_string()))?;
        match key.key_data() {
            KeyData::Ed25519(_)
            | KeyData::Ecdsa(EcdsaPublicKey::NistP256(_) | EcdsaPublicKey::NistP384(_)) => {}
            KeyData::Rsa(rsa) => {
                let n_bytes = rsa.n.as_positive_bytes().map_or(0, <[u8]>::len);
                if n_bytes * 8 < MIN_RSA_BITS {
                    return Err(refused(&format!(
                        "RSA with {} bits is too short",
                        n_bytes * 8
                    )));
                }
            }
            other => return Err(refused(other.algorithm().as_str())),
        }
        Ok(Self { key })
    }

    /// The key as one line, without a comment.
    pub(crate) fn line(&self) -> Result<String, Error> {
        let bare = ssh_key::PublicKey::from(self.key.key_data().clone());
        bare.to_openssh().map_err(Error::internal)
    }

    /// True when `signature` is one of `message` by this key. RSA signs by PKCS #1 with SHA-256, ECDSA in ASN.1 with
    /// the hash of its curve.
    fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let by = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key)
                .verify(message, signature)
                .is_ok()
        };
        match self.key.key_data() {
            KeyData::Ed25519(key) => by(&signature::ED25519, key.as_ref()),
            KeyData::Ecdsa(key) => match key {
                EcdsaPublicKey::NistP256(point) => {
                    by(&signature::ECDSA_P256_SHA256_ASN1, point.as_bytes())
                }
                EcdsaPublicKey::NistP384(point) => {
                    by(&signature::ECDSA_P384_SHA384_ASN1, point.as_bytes())
                }
                EcdsaPublicKey::NistP521(_) => false,
            },
            KeyData::Rsa(key) => {
                let (Some(n), Some(e)) = (key.n.as_positive_bytes(), key.e.as_positive_bytes())
                else {
                    return false;
                };
                RsaPublicKeyComponents { n, e }
                    .verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signature)
                    .is_ok()
            }
            _ => false,
        }
    }
}

/// What one client has to sign: a number that is used once.
#[derive(Debug)]
pub(crate) struct Challenge {
    nonce: String,
    host: String,
    user: String,
    key: PublicKey,
}

impl Challenge {
    /// A challenge for a client that called the server `host` and says that it is `user` and has `key`. Whether anybody
    /// knows the key is not looked at before the answer, so that the challenge tells nothing.
    ///
    /// # Errors
    /// `internal` where the system gives no random bytes.
    pub(crate) fn new(host: &str, user: &str, key: PublicKey) -> Result<Self, Error> {
        Ok(Self {
            nonce: STANDARD.encode(api_key::random::<32>()?),
            host: host.to_owned(),
            user: user.to_owned(),
            key,
        })
    }

    /// What the client gets.
    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    pub(crate) fn key(&self) -> &PublicKey {
        &self.key
    }

    /// True when the client has signed it.
    pub(crate) fn is_signed(&self, signature: &str) -> bool {
        if signature.len() > MAX_SIGNATURE_CHARS {
            return false;
        }
        let Self {
            nonce,
            host,
            user,
            key,
        } = self;
        let message = format!("{SIGNED_BEFORE}\n{host}\n{user}\n{nonce}\n");
        STANDARD
            .decode(signature)
            .is_ok_and(|signature| key.has_signed(message.as_bytes(), &signature))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{Ed25519KeyPair, KeyPair};

    fn pair() -> (Ed25519KeyPair, PublicKey) {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let mut blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20".to_vec();
        blob.extend(pair.public_key().as_ref());
        let key =
            PublicKey::parse(&format!("ssh-ed25519 {} me@home", STANDARD.encode(blob))).unwrap();
        (pair, key)
    }

    #[test]
    fn a_signature_is_for_one_challenge_user_and_host() {
        let (pair, key) = pair();
        let challenge = Challenge::new("example.org", "alice", key.clone()).unwrap();
        let sign = |host: &str, user: &str, nonce: &str| {
            let message = format!("pie hello 1\n{host}\n{user}\n{nonce}\n");
            STANDARD.encode(pair.sign(message.as_bytes()))
        };
        assert!(challenge.is_signed(&sign("example.org", "alice", challenge.nonce())));
        assert!(!challenge.is_signed(&sign("evil.org", "alice", challenge.nonce())));
        assert!(!challenge.is_signed(&sign("example.org", "bob", challenge.nonce())));
        let other = Challenge::new("example.org", "alice", key).unwrap();
        assert!(!challenge.is_signed(&sign("example.org", "alice", other.nonce())));
        for text in ["", "AAAA", "?", &"A".repeat(4000)] {
            assert!(!challenge.is_signed(text), "{text}");
        }
    }

    #[test]
    fn lines_of_openssh_are_read() {
        let (_, key) = pair();
        let line = key.line().unwrap();
        assert!(!line.contains("me@home"));
        assert_eq!(PublicKey::parse(&line).unwrap().line().unwrap(), line);
        for text in [
            "",
            "ssh-ed25519",
            "ssh-ed25519 AAAA",
            "ssh-dss AAAAB3NzaC1kc3MAAAABAQ==",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            &"a".repeat(5000),
        ] {
            let error = PublicKey::parse(text).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{text}");
            assert!(
                error.message.contains("ssh-ed25519 AAAA"),
                "{}",
                error.message
            );
        }
    }
}
