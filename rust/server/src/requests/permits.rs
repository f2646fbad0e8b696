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
/// What is for operators alone, whatever is asked of it.
const OF_OPERATORS: [&str; 2] = ["connections", "disconnect"];

/// Looks whether a client may ask for this.
///
/// # Errors
/// `not-permitted`.
pub(super) fn check(who: &Identity, verb: &str) -> Result<(), Error> {
    let needed = if OF_OPERATORS.contains(&verb) {
        Role::Operator
    } else if LOOKS.contains(&verb) {
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

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn a_refusal_names_the_role_that_a_verb_needs() {
        let of = |role| Identity {
            user: "alice".to_owned(),
            role,
            key: None,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        for (verb, needed) in [
            ("ping", Role::Read),
            ("launch", Role::User),
            ("connections", Role::Operator),
            ("disconnect", Role::Operator),
        ] {
            for role in [Role::Read, Role::User, Role::Operator] {
                let refused = check(&of(role), verb).err().map(|error| error.message);
                let told = format!("{verb:?} needs the role {:?}, ", needed.name());
                assert_eq!(refused.is_none(), role >= needed, "{verb}");
                let is_told = refused.is_none_or(|message| message.starts_with(&told));
                assert!(is_told, "{verb}");
            }
        }
    }
}
