//! Settings that a user gives by name. One row of a table says all about one: its field, its key, what it is, its
//! default and its range. Whatever else knows of it, in other languages and in the reference too, reads [`Setting`].
//!
//! [`settings!`](crate::settings!) makes a structure of a table.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::errors::{Error, ErrorCode, Result};

/// The most texts that a list may hold.
pub const MAX_TEXTS: usize = 1000;
/// The most letters of a text that a message repeats.
const MAX_SHOWN: usize = 80;

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count or a size.
    Integer(u64),
    /// A time.
    Seconds(f64),
    /// Yes or no.
    Flag(bool),
    /// A text, a path, or one of some words.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// No limit.
    Unlimited,
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(formatter, "{number}"),
            Self::Seconds(seconds) => write!(formatter, "{seconds}"),
            Self::Flag(flag) => write!(formatter, "{flag}"),
            Self::Text(text) => write!(formatter, "{:?}", shortened(text)),
            Self::Texts(texts) => write!(formatter, "a list of {} texts", texts.len()),
            Self::Unlimited => formatter.write_str("none"),
        }
    }
}

/// What a setting may be, apart from its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A count or a size.
    Whole,
    /// A time in seconds.
    Seconds,
    /// Yes or no.
    Flag,
    /// A text; its range is that of its length in bytes.
    Text,
    /// The path of a file or folder; it may be empty.
    Path,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts.
    Texts,
}

impl Kind {
    /// Its name for other languages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Seconds => "seconds",
            Self::Flag => "flag",
            Self::Text => "text",
            Self::Path => "path",
            Self::Choice(_) => "choice",
            Self::Texts => "texts",
        }
    }

    /// The words of which it is one; none where it is none of some.
    pub const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Choice(words) => words,
            _ => &[],
        }
    }

    /// What a message asks for.
    fn expected(self) -> String {
        match self {
            Self::Whole => "a whole number".to_owned(),
            Self::Seconds => "a time in seconds".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Choice(words) => words.join(" or "),
            Self::Texts => "a list of texts".to_owned(),
        }
    }
}

/// What there is to know of a setting.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The section of the configuration that holds it.
    pub section: &'static str,
    /// Its key in the section; the unit ends it (`_bytes`, `_s`).
    pub name: &'static str,
    /// What it is, in a sentence or two.
    pub description: String,
    /// What it may be.
    pub kind: Kind,
    /// What holds where it is not given.
    pub default: Value,
    /// The least and the most that a number or a time may be, or a text may be long. None: any.
    pub range: Option<(Value, Value)>,
    /// Whether it may be [`Value::Unlimited`].
    pub optional: bool,
}

impl Setting {
    /// Checks a value of this setting: its kind, and its range.
    ///
    /// # Errors
    /// `invalid-config`, naming the setting, its value, and what it could be.
    pub fn check(&self, value: &Value) -> Result<()> {
        let measure = match (self.kind, value) {
            (_, Value::Unlimited) if self.optional => return Ok(()),
            (Kind::Whole, Value::Integer(_)) | (Kind::Seconds, Value::Seconds(_)) => value.clone(),
            (Kind::Seconds, Value::Integer(number)) => Value::Seconds(to_f64(*number)),
            (Kind::Flag, Value::Flag(_)) | (Kind::Path, Value::Text(_)) => return Ok(()),
            (Kind::Text, Value::Text(text)) => Value::Integer(text.len() as u64),
            (Kind::Choice(words), Value::Text(text)) if words.contains(&text.as_str()) => {
                return Ok(());
            }
            (Kind::Texts, Value::Texts(texts)) if texts.len() <= MAX_TEXTS => return Ok(()),
            (Kind::Texts, Value::Texts(_)) => return Err(self.too_many(value)),
            _ => return Err(self.of_another_kind(value)),
        };
        match &self.range {
            Some((low, high)) if !is_between(&measure, low, high) => {
                Err(self.outside(value, low, high))
            }
            _ => Ok(()),
        }
    }

    fn of_another_kind(&self, value: &Value) -> Error {
        let (section, name) = (self.section, self.name);
        let expected = self.kind.expected();
        let or_none = if self.optional { ", or none" } else { "" };
        invalid(format!(
            "{section}.{name} = {value} is of another kind; {name} is {expected}{or_none}"
        ))
    }

    fn too_many(&self, value: &Value) -> Error {
        let (section, name) = (self.section, self.name);
        invalid(format!(
            "{section}.{name} is {value}; give at most {MAX_TEXTS}"
        ))
    }

    fn outside(&self, value: &Value, low: &Value, high: &Value) -> Error {
        let (section, name) = (self.section, self.name);
        let what = match self.kind {
            Kind::Text => "a text of so many bytes",
            Kind::Seconds => "a number of seconds between them",
            _ => "a whole number between them",
        };
        let or_none = if self.optional {
            ", or none for no limit"
        } else {
            ""
        };
        let message =
            format!("{section}.{name} = {value} is outside {low} to {high}; give {what}{or_none}");
        match (value, low, high) {
            (&Value::Integer(value), &Value::Integer(low), &Value::Integer(high)) => {
                Error::with_values(
                    ErrorCode::InvalidConfig,
                    message,
                    &[("value", value), ("least", low), ("most", high)],
                )
            }
            _ => invalid(message),
        }
    }

    /// The error of a value of which a part cannot be.
    #[must_use]
    pub fn refused(&self, refusal: &Refusal) -> Error {
        let Refusal { found, expected } = refusal;
        invalid(format!(
            "{}.{} holds {:?}; give {expected}",
            self.section,
            self.name,
            shortened(found)
        ))
    }
}

/// Why a value of the right kind cannot be: what was found in it, and what belongs there.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The part that cannot be.
    pub found: String,
    /// What may stand there.
    pub expected: &'static str,
}

impl Refusal {
    fn new(found: impl fmt::Display, expected: &'static str) -> Self {
        Self {
            found: found.to_string(),
            expected,
        }
    }
}

/// What the fields of a table may be.
pub trait Field: Sized {
    /// What a setting of this type may be.
    const KIND: Kind;
    /// Whether there is a value for "no limit".
    const OPTIONAL: bool = false;
    /// What bounds it.
    type Bound;

    /// A bound as a value.
    fn bound(bound: Self::Bound) -> Value;

    /// What holds, as a value.
    fn to_value(&self) -> Value;

    /// The value as a field; it has passed [`Setting::check`].
    ///
    /// # Errors
    /// The part of it that cannot be.
    fn from_value(value: Value) -> std::result::Result<Self, Refusal>;
}

macro_rules! whole_fields {
    ($($kind:ty),+) => {$(
        impl Field for $kind {
            const KIND: Kind = Kind::Whole;
            type Bound = Self;

            fn bound(bound: Self) -> Value {
                bound.to_value()
            }

            fn to_value(&self) -> Value {
                Value::Integer(u64::try_from(*self).unwrap_or(u64::MAX))
            }

            fn from_value(value: Value) -> std::result::Result<Self, Refusal> {
                match value {
                    Value::Integer(number) => Self::try_from(number).ok(),
                    _ => None,
                }
                .ok_or_else(|| Refusal::new(value, "a smaller whole number"))
            }
        }
    )+};
}

whole_fields!(u8, u16, u32, u64, usize);

impl Field for Duration {
    const KIND: Kind = Kind::Seconds;
    type Bound = Self;

    fn bound(bound: Self) -> Value {
        bound.to_value()
    }

    fn to_value(&self) -> Value {
        Value::Seconds(self.as_secs_f64())
    }

    fn from_value(value: Value) -> std::result::Result<Self, Refusal> {
        let seconds = match value {
            Value::Seconds(seconds) => Some(seconds),
            Value::Integer(number) => Some(to_f64(number)),
            _ => None,
        };
        seconds
            .and_then(|seconds| Self::try_from_secs_f64(seconds).ok())
            .ok_or_else(|| Refusal::new(value, "a time in seconds"))
    }
}

impl Field for bool {
    const KIND: Kind = Kind::Flag;
    type Bound = Self;

    fn bound(bound: Self) -> Value {
        Value::Flag(bound)
    }

    fn to_value(&self) -> Value {
        Value::Flag(*self)
    }

    fn from_value(value: Value) -> std::result::Result<Self, Refusal> {
        match value {
            Value::Flag(flag) => Ok(flag),
            _ => Err(Refusal::new(value, "true or false")),
        }
    }
}

impl Field for String {
    const KIND: Kind = Kind::Text;
    type Bound = usize;

    fn bound(bound: usize) -> Value {
        bound.to_value()
    }

    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }

    fn from_value(value: Value) -> std::result::Result<Self, Refusal> {
        match value {
            Value::Text(text) => Ok(text),
            _ => Err(Refusal::new(value, "a text")),
        }
    }
}

impl Field for PathBuf {
    const KIND: Kind = Kind::Path;
    type Bound = usize;

    fn bound(bound: usize) -> Value {
        bound.to_value()
    }

    fn to_value(&self) -> Value {
        Value::Text(self.to_string_lossy().into_owned())
    }

    fn from_value(value: Value) -> std::result::Result<Self, Refusal> {
        String::from_value(value).map(Self::from)
    }
}

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
    type Bound = T::Bound;

    fn bound(bound: T::Bound) -> Value {
        T::bound(bound)
    }

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Unlimited, T::to_value)
    }

    fn from_value(value: Value) -> std::result::Result<Self, Refusal> {
        match value {
            Value::Unlimited => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// One text of a list.
pub trait Word: Sized {
    /// What such texts are, in a message.
    const EXPECTED: &'static str;

    /// None where it is none.
    fn parse(text: &str) -> Option<Self>;

    /// How it is written.
    fn text(&self) -> String;
}

impl<T: Word> Field for Vec<T> {
    const KIND: Kind = Kind::Texts;
    type Bound = usize;

    fn bound(bound: usize) -> Value {
        bound.to_value()
    }

    fn to_value(&self) -> Value {
        Value::Texts(self.iter().map(T::text).collect())
    }

    fn from_value(value: Value) -> std::result::Result<Self, Refusal> {
        let Value::Texts(texts) = value else {
            return Err(Refusal::new(value, T::EXPECTED));
        };
        let word = |text: &String| T::parse(text).ok_or_else(|| Refusal::new(text, T::EXPECTED));
        texts.iter().map(word).collect()
    }
}

/// Makes a structure of settings from a table, and of what it holds beside them.
///
/// ```
/// pie_core::settings! {
///     /// How a room is lit.
///     pub struct Light in "light" {
///         /// Lamps that are on.
///         n_lamps "n_lamps": u32 = 2, 0 => 16;
///         /// Whether they flicker.
///         flickers "flickers": bool = false;
///     }
///     beside {
///         /// The room.
///         room: String = "hall".to_owned();
///     }
/// }
/// let mut light = Light::default();
/// light.set("n_lamps", pie_core::settings::Value::Integer(3)).unwrap();
/// assert_eq!((light.n_lamps, light.room.as_str()), (3, "hall"));
/// assert!(light.set("n_lamps", pie_core::settings::Value::Integer(17)).is_err());
/// ```
///
/// It has `Default`, `settings()` (every row, in order), `values()` (what holds, in the same order),
/// `set(key, value)` and `check_settings()`.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident in $section:literal {
            $($(#[doc = $doc:literal])+ $field:ident $key:literal: $kind:ty = $default:expr
                $(, $low:expr => $high:expr)?;)+
        }
        $(beside {
            $($(#[doc = $beside_doc:literal])+ $beside:ident: $beside_kind:ty = $beside_default:expr;)+
        })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $kind,)+
            $($($(#[doc = $beside_doc])+ pub $beside: $beside_kind,)+)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $default,)+
                    $($($beside: $beside_default,)+)?
                }
            }
        }

        impl $name {
            /// Every setting, in order.
            pub fn settings() -> Vec<$crate::settings::Setting> {
                use $crate::settings::{Field, Setting, Value};
                let default = Self::default();
                vec![$({
                    let ranges: &[(Value, Value)] =
                        &[$((<$kind as Field>::bound($low), <$kind as Field>::bound($high)))?];
                    Setting {
                        section: $section,
                        name: $key,
                        description: concat!($($doc),+).trim().to_owned(),
                        kind: <$kind as Field>::KIND,
                        default: default.$field.to_value(),
                        range: ranges.first().cloned(),
                        optional: <$kind as Field>::OPTIONAL,
                    }
                }),+]
            }

            /// What holds, in the order of [`Self::settings`].
            pub fn values(&self) -> Vec<$crate::settings::Value> {
                vec![$($crate::settings::Field::to_value(&self.$field)),+]
            }

            /// Sets the one of that key.
            ///
            /// # Errors
            /// `invalid-config` for a key that there is not, and for a value of another kind or out of its range.
            pub fn set(
                &mut self,
                key: &str,
                value: $crate::settings::Value,
            ) -> $crate::errors::Result<()> {
                let settings = Self::settings();
                let setting = $crate::settings::find(&settings, $section, key)?;
                setting.check(&value)?;
                match key {
                    $($key => $crate::settings::Field::from_value(value).map(|value| self.$field = value),)+
                    _ => Ok(()),
                }
                .map_err(|refusal| setting.refused(&refusal))
            }

            /// Checks every value against its range.
            ///
            /// # Errors
            /// `invalid-config`, naming the setting, its value and the range.
            pub fn check_settings(&self) -> $crate::errors::Result<()> {
                for (setting, value) in Self::settings().iter().zip(self.values()) {
                    setting.check(&value)?;
                }
                Ok(())
            }
        }
    };
}

/// The setting of that key.
///
/// # Errors
/// `invalid-config`, naming those that there are.
pub fn find<'a>(settings: &'a [Setting], section: &str, key: &str) -> Result<&'a Setting> {
    let found = settings.iter().find(|setting| setting.name == key);
    found.ok_or_else(|| {
        let known: Vec<&str> = settings.iter().map(|setting| setting.name).collect();
        let (key, known) = (shortened(key), known.join(", "));
        invalid(format!(
            "there is no setting {key:?} in [{section}]; there are {known}"
        ))
    })
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidConfig, message)
}

fn is_between(value: &Value, low: &Value, high: &Value) -> bool {
    match (low, value, high) {
        (Value::Integer(low), Value::Integer(value), Value::Integer(high)) => {
            (low..=high).contains(&value)
        }
        (Value::Seconds(low), Value::Seconds(value), Value::Seconds(high)) => {
            (low..=high).contains(&value)
        }
        _ => false,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no time that is in range is long enough to lose a second"
)]
const fn to_f64(number: u64) -> f64 {
    number as f64
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}
