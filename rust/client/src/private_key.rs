//! Private keys that sign the challenge of a server.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};

use crate::error::Error;
use crate::error_codes::ErrorCode;

const OPENSSH: &str = "OPENSSH PRIVATE KEY";
const OPENSSH_MAGIC: &[u8] = b"openssh-key-v1\0";
const ED25519: &str = "ssh-ed25519";
const ED25519_SEED_BYTES: usize = 32;
const MAX_FILE_BYTES: u64 = 64 << 10;

/// A private key whose public half the operator of a server has added: Ed25519, ECDSA with P-256 or P-384, or RSA.
pub struct PrivateKey {
    pair: Pair,
    random: SystemRandom,
}

enum Pair {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl PrivateKey {
    /// Reads a key without a passphrase: PKCS #8 (PEM) of any kind, or the format of OpenSSH for Ed25519.
    ///
    /// # Errors
    /// `invalid-argument` where it is not one.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if is_public(text) {
            let message = "this is the public half of a key, which the operator of a server adds; give the private half, which lies in the file without .pub";
            return Err(Error::argument("private_key", message));
        }
        let (label, data) = pem(text).ok_or_else(unreadable)?;
        let random = SystemRandom::new();
        let pair = if label == OPENSSH {
            openssh(&data).ok_or_else(unreadable)?
        } else {
            pkcs8(&data, &random).ok_or_else(unreadable)?
        };
        Ok(Self { pair, random })
    }

    /// Reads the key in a file; otherwise as [`PrivateKey::parse`].
    ///
    /// # Errors
    /// `invalid-argument` where it cannot be read or holds none.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let unreadable = |reason: &dyn std::fmt::Display| {
            let message = format!(
                "the private key in {path:?} cannot be read ({reason}); check the path and its permissions"
            );
            Error::argument("private_key", message)
        };
        let length = std::fs::metadata(path)
            .map_err(|error| unreadable(&error))?
            .len();
        if length > MAX_FILE_BYTES {
            return Err(unreadable(&"it is too long for a key"));
        }
        Self::parse(&std::fs::read_to_string(path).map_err(|error| unreadable(&error))?)
    }

    /// The public half, as a line of OpenSSH.
    pub fn public_line(&self) -> String {
        match &self.pair {
            Pair::Ed25519(pair) => line(ED25519, &[pair.public_key().as_ref()]),
            Pair::P256(pair) => curve_line("nistp256", pair),
            Pair::P384(pair) => curve_line("nistp384", pair),
            Pair::Rsa(pair) => {
                let PublicKeyComponents::<Vec<u8>> { n, e } = pair.public().into();
                line("ssh-rsa", &[&positive(e), &positive(n)])
            }
        }
    }

    /// The signature of a message, in base64.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<String, Error> {
        let failed = |_| {
            Error::new(
                ErrorCode::Internal,
                "the system gives no random bytes to sign with",
            )
        };
        let signature = match &self.pair {
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::P256(pair) | Pair::P384(pair) => pair
                .sign(&self.random, message)
                .map_err(failed)?
                .as_ref()
                .to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &self.random, message, &mut signature)
                    .map_err(failed)?;
                signature
            }
        };
        Ok(STANDARD.encode(signature))
    }
}

fn pkcs8(data: &[u8], random: &SystemRandom) -> Option<Pair> {
    if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(data) {
        return Some(Pair::Ed25519(pair));
    }
    if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, data, random) {
        return Some(Pair::P256(pair));
    }
    if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_ASN1_SIGNING, data, random) {
        return Some(Pair::P384(pair));
    }
    RsaKeyPair::from_pkcs8(data).ok().map(Pair::Rsa)
}

/// The key in a file of OpenSSH that holds one Ed25519 key without a passphrase.
fn openssh(data: &[u8]) -> Option<Pair> {
    let mut outer = SshReader(data.strip_prefix(OPENSSH_MAGIC)?);
    let is_open = outer.bytes()? == b"none";
    let (_derivation, _options) = (outer.bytes()?, outer.bytes()?);
    if !is_open || outer.number()? != 1 {
        return None;
    }
    let _public = outer.bytes()?;
    let mut inner = SshReader(outer.bytes()?);
    if inner.number()? != inner.number()? || inner.bytes()? != ED25519.as_bytes() {
        return None;
    }
    let public = inner.bytes()?;
    let seed = inner.bytes()?.get(..ED25519_SEED_BYTES)?;
    Ed25519KeyPair::from_seed_and_public_key(seed, public)
        .ok()
        .map(Pair::Ed25519)
}

/// Reads what SSH writes: numbers of 32 bits, and bytes behind their length.
struct SshReader<'a>(&'a [u8]);

impl<'a> SshReader<'a> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*number))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

fn curve_line(curve: &str, pair: &EcdsaKeyPair) -> String {
    let kind = format!("ecdsa-sha2-{curve}");
    line(&kind, &[curve.as_bytes(), pair.public_key().as_ref()])
}

/// A line of OpenSSH.
fn line(kind: &str, parts: &[&[u8]]) -> String {
    let mut blob = Vec::new();
    for part in std::iter::once(&kind.as_bytes()).chain(parts) {
        // Parts of keys are short.
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        blob.extend(length.to_be_bytes());
        blob.extend(*part);
    }
    format!("{kind} {}", STANDARD.encode(blob))
}

/// A number above zero whose first bit is not set, as SSH writes it.
fn positive(mut number: Vec<u8>) -> Vec<u8> {
    if number.first().is_some_and(|first| *first >= 0x80) {
        number.insert(0, 0);
    }
    number
}

/// The label and the bytes of the first block of PEM.
fn pem(text: &str) -> Option<(&str, Vec<u8>)> {
    let (_, begun) = text.split_once("-----BEGIN ")?;
    let (label, rest) = begun.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let digits: String = body.split_whitespace().collect();
    Some((label, STANDARD.decode(digits).ok()?))
}

/// Whether a text begins as the public half of a key does: a line of OpenSSH, PEM, or the format of SSH2.
fn is_public(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    let kinds = ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"];
    kinds.iter().any(|kind| first.starts_with(kind))
        || (first.starts_with("----") && first.contains("PUBLIC KEY"))
}

fn unreadable() -> Error {
    let message = "this is not a private key that can be read; give PKCS #8 without a passphrase, or an Ed25519 key that `ssh-keygen -t ed25519` makes";
    Error::argument("private_key", message)
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519 as ED25519_VERIFICATION, UnparsedPublicKey};

    use super::*;

    fn pem_of(label: &str, data: &[u8]) -> String {
        format!(
            "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
            STANDARD.encode(data)
        )
    }

    fn with_length(part: &[u8]) -> Vec<u8> {
        let length = u32::try_from(part.len()).unwrap();
        [&length.to_be_bytes()[..], part].concat()
    }

    /// A key as `ssh-keygen` writes it without a passphrase.
    fn openssh_of(seed: &[u8], public: &[u8]) -> String {
        let key = [with_length(ED25519.as_bytes()), with_length(public)].concat();
        let secret = with_length(&[seed, public].concat());
        let inner = [
            &[1, 2, 3, 4, 1, 2, 3, 4][..],
            &key,
            &secret,
            &with_length(b"a comment"),
            &[1, 2],
        ]
        .concat();
        let none = with_length(b"none");
        let data = [
            OPENSSH_MAGIC,
            &none,
            &none,
            &with_length(b""),
            &[0, 0, 0, 1],
            &with_length(&key),
            &with_length(&inner),
        ]
        .concat();
        pem_of(OPENSSH, &data)
    }

    #[test]
    fn a_key_in_both_formats_signs_the_same() {
        let random = SystemRandom::new();
        let seed = [7; ED25519_SEED_BYTES];
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        let key = PrivateKey::parse(&openssh_of(&seed, pair.public_key().as_ref())).unwrap();
        let signature = STANDARD.decode(key.sign(b"message").unwrap()).unwrap();
        UnparsedPublicKey::new(&ED25519_VERIFICATION, pair.public_key().as_ref())
            .verify(b"message", &signature)
            .unwrap();
        assert!(
            key.public_line()
                .starts_with("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI")
        );
        let written = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let key = PrivateKey::parse(&pem_of("PRIVATE KEY", written.as_ref())).unwrap();
        assert!(key.public_line().starts_with("ssh-ed25519 "));
    }

    #[test]
    fn keys_of_curves_are_told_apart() {
        let random = SystemRandom::new();
        for (algorithm, kind) in [
            (&ECDSA_P256_SHA256_ASN1_SIGNING, "ecdsa-sha2-nistp256 "),
            (&ECDSA_P384_SHA384_ASN1_SIGNING, "ecdsa-sha2-nistp384 "),
        ] {
            let written = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            let key = PrivateKey::parse(&pem_of("PRIVATE KEY", written.as_ref())).unwrap();
            assert!(key.public_line().starts_with(kind));
            assert!(!key.sign(b"message").unwrap().is_empty());
        }
    }

    #[test]
    fn the_public_half_is_told_as_one() {
        for text in [
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me@home\n",
            "\necdsa-sha2-nistp256 AAAA",
            &pem_of("PUBLIC KEY", b"key"),
            "---- BEGIN SSH2 PUBLIC KEY ----\nAAAA",
        ] {
            let refused = PrivateKey::parse(text).err().unwrap();
            assert_eq!(refused.code(), "invalid-argument");
            let told = "this is the public half of a key";
            assert!(refused.message().starts_with(told), "{refused}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in [
            "",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\n*\n-----END PRIVATE KEY-----",
            &pem_of(OPENSSH, OPENSSH_MAGIC),
            &pem_of(OPENSSH, b"other"),
        ] {
            let refused = PrivateKey::parse(text).err().unwrap();
            assert_eq!(refused.code(), "invalid-argument", "{text}");
        }
    }
}
