//! A table of settings makes a structure, and says what is wrong with a value.

use std::path::PathBuf;
use std::time::Duration;

use pie_core::settings::{MAX_TEXTS, Value, Word};
use pie_core::{ErrorCode, settings};

settings! {
    /// One of each kind.
    pub struct Every in "every" {
        /// A count.
        count "count": u32 = 2, 1 => 16;
        /// A time.
        time "time_s": Duration = Duration::from_secs(1), Duration::ZERO => Duration::from_secs(9);
        /// A time or none.
        patience "patience_s": Option<Duration> = None, Duration::from_secs(1) => Duration::from_secs(9);
        /// A flag.
        flag "flag": bool = false;
        /// A name.
        name "name": String = "a".to_owned(), 1 => 4;
        /// A path.
        path "path": PathBuf = PathBuf::new();
        /// Letters.
        letters "letters": Vec<Letter> = Vec::new();
    }
    beside {
        /// What is no setting.
        other: u8 = 7;
    }
}

/// A text of one letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter(char);

impl Word for Letter {
    const EXPECTED: &'static str = "single letters";

    fn parse(text: &str) -> Option<Self> {
        let mut letters = text.chars();
        letters
            .next()
            .filter(|_| letters.next().is_none())
            .map(Self)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

#[test]
fn values_are_set_by_their_keys() {
    let mut every = Every::default();
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    for (key, value) in [
        ("count", Value::Integer(16)),
        ("time_s", Value::Integer(9)),
        ("patience_s", Value::Seconds(1.5)),
        ("flag", Value::Flag(true)),
        ("name", Value::Text("abcd".to_owned())),
        ("path", Value::Text("/a".to_owned())),
        ("letters", Value::Texts(texts(&["a", "b"]))),
    ] {
        every.set(key, value).unwrap();
    }
    assert_eq!((every.count, every.other), (16, 7));
    assert_eq!(every.time, Duration::from_secs(9));
    assert_eq!(every.patience, Some(Duration::from_millis(1500)));
    assert!(every.flag);
    assert_eq!(every.letters, [Letter('a'), Letter('b')]);
    every.set("patience_s", Value::Unlimited).unwrap();
    assert_eq!(every.patience, None);
    every.check_settings().unwrap();
}

#[test]
fn what_is_wrong_is_named_with_what_it_could_be() {
    let many = vec!["a".to_owned(); MAX_TEXTS + 1];
    for (key, value, message) in [
        (
            "count",
            Value::Integer(17),
            "every.count = 17 is outside 1 to 16; give a whole number between them",
        ),
        (
            "count",
            Value::Integer(1 << 40),
            "every.count = 1099511627776 is outside 1 to 16",
        ),
        (
            "count",
            Value::Seconds(1.5),
            "every.count = 1.5 is of another kind; count is a whole number",
        ),
        (
            "count",
            Value::Unlimited,
            "every.count = none is of another kind",
        ),
        (
            "time_s",
            Value::Seconds(f64::NAN),
            "every.time_s = NaN is outside 0 to 9",
        ),
        (
            "time_s",
            Value::Seconds(-1.0),
            "every.time_s = -1 is outside 0 to 9; give a number of seconds",
        ),
        (
            "patience_s",
            Value::Integer(0),
            "every.patience_s = 0 is outside 1 to 9; give a number of seconds between them, or none for no limit",
        ),
        ("flag", Value::Integer(1), "flag is true or false"),
        (
            "name",
            Value::Text(String::new()),
            "every.name = \"\" is outside 1 to 4; give a text of so many bytes",
        ),
        ("path", Value::Flag(true), "path is a path"),
        (
            "letters",
            Value::Texts(vec!["ab".to_owned()]),
            "every.letters holds \"ab\"; give single letters",
        ),
        (
            "letters",
            Value::Texts(many),
            "every.letters is a list of 1001 texts; give at most 1000",
        ),
        (
            "speed",
            Value::Integer(1),
            "there is no setting \"speed\" in [every]; there are count, time_s",
        ),
    ] {
        let error = Every::default().set(key, value).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidConfig);
        assert!(
            error.message.starts_with(message) || error.message.ends_with(message),
            "{}",
            error.message
        );
    }
}

#[test]
fn what_was_put_into_a_field_is_checked_too() {
    let every = Every {
        count: 0,
        ..Every::default()
    };
    assert!(
        every
            .check_settings()
            .unwrap_err()
            .message
            .contains("every.count = 0")
    );
}
