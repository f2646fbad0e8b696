//! Who somebody is, and what they may do.

use std::net::IpAddr;

use pie_host::{Error, ErrorCode};
use serde::{Deserialize, Serialize};

/// What somebody may do; each may what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Look at what is their own.
    Read,
    /// Launch, install and so on.
    User,
    /// See and end what is anybody's.
    Operator,
}

impl Role {
    /// The role of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Read, Self::User, Self::Operator]
            .into_iter()
            .find(|role| role.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::User => "user",
            Self::Operator => "operator",
        }
    }
}

/// Who a client is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) role: Role,
    /// The id of the key by which it came in.
    pub(crate) key: Option<String>,
    pub(crate) address: IpAddr,
}

impl Identity {
    /// Looks whether the client may do what needs a role.
    ///
    /// # Errors
    /// `not-permitted`.
    pub(crate) fn check(&self, needed: Role, what: &str) -> Result<(), Error> {
        if self.role >= needed {
            return Ok(());
        }
        let message = format!(
            "{what} needs the role {:?}, and yours is {:?}; ask the operator of the server for a key of that scope",
            needed.name(),
            self.role.name()
        );
        Err(Error::new(ErrorCode::NotPermitted, message))
    }

    pub(crate) fn is_operator(&self) -> bool {
        self.role == Role::Operator
    }
}
