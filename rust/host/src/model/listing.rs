//! What a program is told that names what its user does not have: the names that there are.

use pie_core::ErrorCode;

use crate::Error;
use crate::program::{after_hint, did_you_mean, shown};

/// Names that a message lists.
const LISTED: usize = 8;

/// Says which names a user has beside one that is absent, the nearest first. It follows the absent one in a message.
/// `things` is what they are names of, in the plural.
pub(crate) fn names_there_are(absent: &str, things: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return format!("; this user has no {things} of this model");
    }
    let nearest = did_you_mean(absent, names);
    let listed: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| format!("{name:?}"))
        .collect();
    let more = match names.len().saturating_sub(LISTED) {
        0 => String::new(),
        n_more => format!(" and {n_more} more"),
    };
    let there_are = format!("the {things} of this user are {}{more}", listed.join(", "));
    after_hint(&nearest, &there_are)
}

/// The error of a snapshot to delete that a user with these names does not have: to save one first would be no remedy.
pub(crate) fn no_snapshot(name: &str, names: &[String]) -> Error {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let there_are = names_there_are(name, "snapshots", &names);
    Error::new(
        ErrorCode::SnapshotMissing,
        format!(
            "there is no snapshot {:?} to delete{there_are}",
            shown(name)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::names_there_are;

    #[test]
    fn names_are_listed_up_to_a_bound_and_the_nearest_is_told() {
        let told = |names: &[&str]| names_there_are("helo", "snapshots", names);
        assert_eq!(told(&[]), "; this user has no snapshots of this model");
        assert_eq!(told(&["b"]), "; the snapshots of this user are \"b\"");
        assert_eq!(
            told(&["b", "hello"]),
            "; did you mean \"hello\"? The snapshots of this user are \"b\", \"hello\""
        );
        let mut many = ["b"; 200];
        assert!(told(&many).ends_with("\"b\" and 192 more"));
        // Of so many not all are compared: a program may ask again and again.
        many[150] = "hello";
        assert!(!told(&many).contains("did you mean"));
        many[50] = "hello";
        assert!(told(&many).starts_with("; did you mean \"hello\"?"));
    }
}
