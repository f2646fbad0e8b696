//! The order of versions, from which `name` without a version means the highest.
//!
//! Any version that the protocol admits has a place, semantic versions that of their specification
//! (<https://semver.org>, section 11) but for build parts, which here break ties.

use std::cmp::Ordering;

/// Compares two versions: numbers by value, a pre-release before its release.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    let (left_core, left_pre, left_build) = parts(left);
    let (right_core, right_pre, right_build) = parts(right);
    compare_lists(left_core, right_core)
        .then_with(|| match (left_pre, right_pre) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(left), Some(right)) => compare_lists(left, right),
        })
        .then_with(|| compare_lists(left_build, right_build))
        .then_with(|| left.cmp(right))
}

/// The dotted core, the pre-release after `-`, the build after `+`.
fn parts(version: &str) -> (&str, Option<&str>, &str) {
    let (version, build) = version.split_once('+').unwrap_or((version, ""));
    match version.split_once('-') {
        Some((core, pre)) => (core, Some(pre), build),
        None => (version, None, build),
    }
}

/// Field by field; a list that goes on is higher.
fn compare_lists(left: &str, right: &str) -> Ordering {
    left.split('.')
        .map(Field::of)
        .cmp(right.split('.').map(Field::of))
}

/// Numbers come before words.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Field<'a> {
    /// Length without leading zeros, then digits: the order of the values, however long.
    Number(usize, &'a str),
    Word(&'a str),
}

impl<'a> Field<'a> {
    fn of(text: &'a str) -> Self {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let digits = text.trim_start_matches('0');
            Self::Number(digits.len(), digits)
        } else {
            Self::Word(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_people_expect() {
        let ascending = [
            "0.9",
            "0.10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.0+build",
            "1.0.1",
            "1.1",
            "2",
            "10",
            "99999999999999999999999",
            "nightly",
        ];
        for (at, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(compare(left, right), at.cmp(&other), "{left} {right}");
            }
        }
    }

    #[test]
    fn different_texts_are_never_equal() {
        assert_ne!(compare("1.0", "1.00"), Ordering::Equal);
    }
}
