//! Who a client is, and what it may do.
//!
//! A client is whoever a trusted proxy says (`presented`), the owner of an API key (`api_key`) or of a public key whose
//! challenge it signs (`public_key`); on loopback, without a proxy, whoever it says. Keys stand in the data folder
//! (`records`), and a running server follows what happens to them (`keys`). Whether a key is unknown, was revoked or
//! has expired, the server does and says the same.

mod api_key;
mod attempts;
mod config;
pub(crate) mod identity;
mod keys;
mod presented;
mod public_key;
mod records;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pie_host::{Error, ErrorCode};
use tungstenite::http::{HeaderMap, header};

use self::api_key::MAX_KEY_BYTES;
pub(crate) use self::api_key::{hex, id_of, random, unhex};
use self::attempts::Attempts;
pub use self::config::{AuthConfig, AuthMode, HeaderName, HostName, Network, UserName};
pub(crate) use self::identity::Identity;
pub use self::identity::Role;
use self::keys::{Credential, Keys};
pub(crate) use self::presented::Presented;
pub(crate) use self::public_key::Challenge;
use self::public_key::PublicKey;
pub use self::records::{KeyRecord, NewKey, add_key, list_keys, revoke_key};
use crate::audit::Audit;
use crate::names;
use crate::sync::lock;

/// How often a server looks whether the keys have changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Who has no name.
const ANONYMOUS: &str = "anonymous";

/// What a hello says of who the client is.
#[derive(Debug, Default)]
pub(crate) struct IdentityClaim {
    pub(crate) user: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) public_key: Option<String>,
}

/// What becomes of a hello.
#[derive(Debug)]
pub(crate) enum Verdict {
    In(Identity),
    /// The client has to sign this first.
    Challenged(Challenge),
}

/// Judges who comes in.
#[derive(Debug)]
pub(crate) struct Authority {
    config: AuthConfig,
    address: SocketAddr,
    is_on: bool,
    keys: Arc<Keys>,
    attempts: Mutex<Attempts>,
}

impl Authority {
    /// The judge of a server at an address.
    ///
    /// # Errors
    /// `invalid-config` where nobody could come in, or anybody as anybody, and for a file of keys that cannot be used.
    pub(crate) fn open(
        config: &AuthConfig,
        data_dir: &Path,
        address: SocketAddr,
    ) -> Result<Self, Error> {
        let keys = Keys::open(data_dir)?;
        let is_on = config.is_on(address.ip(), keys.n_usable())?;
        if !is_on && !address.ip().to_canonical().is_loopback() {
            tracing::warn!(%address, "server.allow_anonymous: clients may say that they are any user");
        }
        Ok(Self {
            config: config.clone(),
            address,
            is_on,
            keys: Arc::new(keys),
            attempts: Mutex::default(),
        })
    }

    /// True where clients may give themselves any name.
    pub(crate) fn names_are_free(&self) -> bool {
        !self.is_on
    }

    /// Checks what a client calls a server that only its own machine reaches, and where nobody has to prove who they
    /// are. A web page of elsewhere may have its own name lead to this machine, and is of the same origin then. Where
    /// the configuration lets anybody be anybody, it may be called by any name.
    ///
    /// # Errors
    /// `forbidden-origin`.
    pub(crate) fn check_called(&self, headers: &HeaderMap) -> Result<(), Error> {
        let is_local = self.address.ip().to_canonical().is_loopback();
        if self.is_on || !is_local || self.config.allow_anonymous {
            return Ok(());
        }
        // Every browser says it.
        let Some(host) = headers.get(header::HOST) else {
            return Ok(());
        };
        let host = String::from_utf8_lossy(host.as_bytes());
        if self.config.is_local_name(&host) {
            return Ok(());
        }
        let shown: String = host.chars().take(200).collect();
        let message = format!(
            "this server is not called {shown:?}; ask it by localhost or its address, or add that name to server.host_names"
        );
        Err(Error::new(ErrorCode::ForbiddenOrigin, message))
    }

    pub(crate) fn config(&self) -> &AuthConfig {
        &self.config
    }

    /// Follows the file of the keys, for ever.
    pub(crate) async fn follow(&self, audit: &Audit) {
        loop {
            self.refresh(audit).await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn refresh(&self, audit: &Audit) {
        if let Some(change) = keys::refreshed(&self.keys).await {
            audit.keys_changed(&change.added, &change.removed);
        }
    }

    /// Judges a hello.
    ///
    /// # Errors
    /// `authentication-required`, `authentication-failed`, `limit-attempts`, `invalid-name`, `invalid-argument`.
    pub(crate) async fn judge(
        &self,
        claim: IdentityClaim,
        shown: &Presented,
        audit: &Audit,
    ) -> Result<Verdict, Error> {
        if let Some(user) = &claim.user {
            names::check_user(user)?;
        }
        if let Some(user) = &shown.user {
            check_same(claim.user.as_deref(), user)?;
            return Ok(Verdict::In(self.named(user.clone(), shown.address)));
        }
        if claim.key.is_some() && claim.public_key.is_some() {
            let message = "the hello has a key and a public key; prove who you are by one of them";
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        if let Some(line) = claim.public_key {
            self.check_attempts(shown.address)?;
            let Some(user) = claim.user else {
                let message = "a hello with a public key names its user; add \"user\"";
                return Err(Error::new(ErrorCode::InvalidArgument, message));
            };
            if !self.config.is_called(&shown.host, self.address) {
                let message = format!(
                    "this server does not know that it is called {:?}, so it cannot tell whether a signature is for it; have its operator add that to server.host_names",
                    shown.host
                );
                return Err(Error::new(ErrorCode::InvalidArgument, message));
            }
            let challenge = Challenge::new(&shown.host, &user, PublicKey::parse(&line)?)?;
            return Ok(Verdict::Challenged(challenge));
        }
        if let Some(key) = claim.key.as_deref().or(shown.bearer.as_deref()) {
            self.check_attempts(shown.address)?;
            self.refresh(audit).await;
            let credential = Some(key)
                .filter(|key| key.len() <= MAX_KEY_BYTES)
                .and_then(|key| self.keys.by_secret(key));
            let identity = self.admitted(credential, shown.address)?;
            check_same(claim.user.as_deref(), &identity.user)?;
            return Ok(Verdict::In(identity));
        }
        if self.is_on {
            let message = "this server has to know who you are; give a key (`--key`, PIE_KEY, client.key_file), which its operator makes with `pie key add`";
            return Err(Error::new(ErrorCode::AuthenticationRequired, message));
        }
        Ok(Verdict::In(self.named(
            claim.user.unwrap_or_else(|| ANONYMOUS.to_owned()),
            shown.address,
        )))
    }

    /// Judges the answer to a challenge. The signature is verified by the key that the client has shown, whether it is
    /// known or not.
    ///
    /// # Errors
    /// `authentication-failed`, `limit-attempts`.
    pub(crate) async fn judge_signature(
        &self,
        challenge: &Challenge,
        signature: &str,
        shown: &Presented,
        audit: &Audit,
    ) -> Result<Identity, Error> {
        self.check_attempts(shown.address)?;
        self.refresh(audit).await;
        let is_signed = challenge.is_signed(signature);
        let credential = self.keys.by_public_key(challenge.key(), challenge.user());
        self.admitted(credential.filter(|_| is_signed), shown.address)
    }

    /// Waits until a client may no longer be there: its key was revoked or has expired.
    pub(crate) async fn gone(&self, identity: &Identity) {
        match &identity.key {
            Some(id) => self.keys.gone(id).await,
            None => std::future::pending().await,
        }
    }

    /// Somebody of whom no key says what they may do.
    fn named(&self, user: String, address: IpAddr) -> Identity {
        let role = if self.config.operators.iter().any(|name| name.is(&user)) {
            Role::Operator
        } else {
            Role::User
        };
        Identity {
            user,
            role,
            key: None,
            address,
        }
    }

    fn admitted(&self, credential: Option<Credential>, address: IpAddr) -> Result<Identity, Error> {
        if let Some(Credential { id, user, role }) = credential {
            return Ok(Identity {
                user,
                role,
                key: Some(id),
                address,
            });
        }
        lock(&self.attempts).fail(address, Instant::now());
        let message = "that key is not good here: it is unknown, was revoked or has expired, or what was signed is not right; ask the operator of the server for \
                       another one";
        Err(Error::new(ErrorCode::AuthenticationFailed, message))
    }

    fn check_attempts(&self, address: IpAddr) -> Result<(), Error> {
        match lock(&self.attempts).wait(address, Instant::now()) {
            None => Ok(()),
            Some(wait) => {
                let ms = u64::try_from(wait.as_millis().max(1)).unwrap_or(u64::MAX);
                let message =
                    format!("too many keys of {address} were no good; come back in {ms} ms");
                Err(Error::with_values(
                    ErrorCode::LimitAttempts,
                    message,
                    &[("retry_after_ms", ms)],
                ))
            }
        }
    }
}

fn check_same(claimed: Option<&str>, user: &str) -> Result<(), Error> {
    match claimed {
        Some(claimed) if claimed != user => {
            let message = format!(
                "you came in as {user:?} and say that you are {claimed:?}; leave the user out"
            );
            Err(Error::new(ErrorCode::AuthenticationFailed, message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
