//! What each request needs of whoever asks.

use pie_host::Error;

use crate::auth::{Identity, Role};

/// What only reads things of one's own. Taking events is not that: what was acknowledged is forgotten.
const LOOKS: [&str; 10] = [
    "ping",
    "programs",
    "processes",
    "snapshots",
    "adapters",
    "topics",
    "logs",
    "outcome",
    "stats",
    "detach",
];

/// Looks whether a client may ask for this.
///
/// # Errors
/// `not-permitted`.
pub(super) fn check(who: &Identity, verb: &str) -> Result<(), Error> {
    let needed = if LOOKS.contains(&verb) {
        Role::Read
    } else {
        Role::User
    };
    who.check(needed, &format!("{verb:?}"))
}

/// Looks whether a client may ask for what is another's: the user whose it is meant to be, their own name where none
/// was given.
///
/// # Errors
/// `not-permitted`.
pub(super) fn user<'a>(who: &'a Identity, asked: Option<&'a str>) -> Result<&'a str, Error> {
    match asked {
        Some(user) if user != who.user => who
            .check(Role::Operator, "what is another user's")
            .map(|()| user),
        _ => Ok(&who.user),
    }
}

/// Looks whether a client may see everybody's.
///
/// # Errors
/// `not-permitted`.
pub(super) fn everybody(who: &Identity, asked: Option<bool>) -> Result<bool, Error> {
    match asked {
        Some(true) => who.check(Role::Operator, "\"all_users\"").map(|()| true),
        _ => Ok(false),
    }
}

/// Looks whether a client may see, or do, what is for operators.
///
/// # Errors
/// `not-permitted`.
pub(super) fn operator(who: &Identity, what: &str) -> Result<(), Error> {
    who.check(Role::Operator, what)
}
