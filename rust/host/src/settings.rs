//! Settings that a user gives by name. One entry of a table says all about one: its field, its key, what it is, its
//! default and its range; whatever else is known of it, in other languages and in the reference too, is read from
//! [`Setting`].

use std::fmt;
use std::time::Duration;

use pie_core::ErrorCode;

use crate::Error;

/// The value of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count or a size.
    Integer(u64),
    /// A time.
    Seconds(f64),
    /// No limit.
    Unlimited,
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(formatter, "{number}"),
            Self::Seconds(seconds) => write!(formatter, "{seconds}"),
            Self::Unlimited => formatter.write_str("none"),
        }
    }
}

/// What there is to know of a setting.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its key in the section of the configuration.
    pub name: &'static str,
    /// What it is, in a sentence or two.
    pub description: String,
    /// What holds where it is not given.
    pub default: Value,
    /// The least and the most that it may be.
    pub range: (Value, Value),
    /// Whether it may be [`Value::Unlimited`].
    pub optional: bool,
}

impl Setting {
    /// Checks a value of this setting.
    ///
    /// # Errors
    /// `invalid-config`, naming the setting, its value and the range.
    pub(crate) fn check(&self, section: &str, value: Value) -> Result<(), Error> {
        let (low, high) = self.range;
        let inside = match (low, value, high) {
            (Value::Integer(low), Value::Integer(value), Value::Integer(high)) => {
                (low..=high).contains(&value)
            }
            (Value::Seconds(low), Value::Seconds(value), Value::Seconds(high)) => {
                (low..=high).contains(&value)
            }
            (_, Value::Unlimited, _) => self.optional,
            _ => false,
        };
        if inside {
            return Ok(());
        }
        let name = self.name;
        let remedy = if self.optional {
            ", and none is no limit"
        } else {
            ""
        };
        Err(Error::new(
            ErrorCode::InvalidConfig,
            format!("{section}.{name} = {value} is outside {low} to {high}{remedy}"),
        ))
    }
}

/// What the fields of a table may be.
pub(crate) trait Field: Sized {
    /// Whether there is a value for "no limit".
    const OPTIONAL: bool = false;

    fn to_value(&self) -> Value;

    /// None where the value is of another kind.
    fn from_value(value: Value) -> Option<Self>;
}

macro_rules! integer_fields {
    ($($kind:ty),+) => {$(
        impl Field for $kind {
            fn to_value(&self) -> Value {
                Value::Integer(u64::try_from(*self).unwrap_or(u64::MAX))
            }

            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::Integer(number) => Self::try_from(number).ok(),
                    Value::Seconds(_) | Value::Unlimited => None,
                }
            }
        }
    )+};
}

integer_fields!(u32, u64, usize);

impl Field for Duration {
    fn to_value(&self) -> Value {
        Value::Seconds(self.as_secs_f64())
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Seconds(seconds) => Self::try_from_secs_f64(seconds).ok(),
            #[expect(
                clippy::cast_precision_loss,
                reason = "no time that is in range is long enough to lose a second"
            )]
            Value::Integer(seconds) => Self::try_from_secs_f64(seconds as f64).ok(),
            Value::Unlimited => None,
        }
    }
}

impl<T: Field> Field for Option<T> {
    const OPTIONAL: bool = true;

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Unlimited, T::to_value)
    }

    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Unlimited => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// Makes a structure of settings from a table of `field "key": type = default, least => most;`.
///
/// It has `Default`, `SECTION`, `settings()` (every entry, in order), `values()` (what holds, in the same order),
/// `set(key, value)` and `check()`.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident in $section:literal {
            $($(#[doc = $doc:literal])+ $field:ident $key:literal: $kind:ty = $default:expr, $low:expr => $high:expr;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $kind,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $name {
            /// The section of the configuration that holds them.
            pub const SECTION: &'static str = $section;

            /// Every setting, in order.
            pub fn settings() -> Vec<$crate::settings::Setting> {
                use $crate::settings::{Field, Setting};
                let default = Self::default();
                vec![$(Setting {
                    name: $key,
                    description: concat!($($doc),+).trim().to_owned(),
                    default: default.$field.to_value(),
                    range: (Field::to_value(&$low), Field::to_value(&$high)),
                    optional: <$kind as Field>::OPTIONAL,
                }),+]
            }

            /// What holds, in the order of [`Self::settings`].
            pub fn values(&self) -> Vec<$crate::settings::Value> {
                vec![$($crate::settings::Field::to_value(&self.$field)),+]
            }

            /// Sets the one of that key.
            ///
            /// # Errors
            /// `invalid-config` for a key that there is not, or a value of another kind; ranges are looked at by
            /// [`Self::check`].
            pub fn set(&mut self, key: &str, value: $crate::settings::Value) -> Result<(), $crate::Error> {
                let fits = match key {
                    $($key => $crate::settings::Field::from_value(value).map(|value| self.$field = value),)+
                    _ => {
                        let known = [$($key),+].join(", ");
                        return Err($crate::Error::new(
                            pie_core::ErrorCode::InvalidConfig,
                            format!("there is no setting {key:?} in [{}]; there are {known}", $section),
                        ));
                    }
                };
                fits.ok_or_else(|| $crate::Error::new(
                    pie_core::ErrorCode::InvalidConfig,
                    format!("{}.{key} = {value} is of another kind; {key} is {}", $section, match key {
                        key if key.ends_with("_s") => "a time in seconds",
                        _ => "a whole number",
                    }),
                ))
            }

            /// Checks every value against its range.
            ///
            /// # Errors
            /// `invalid-config`, naming the setting, its value and the range.
            pub fn check(&self) -> Result<(), $crate::Error> {
                for (setting, value) in Self::settings().iter().zip(self.values()) {
                    setting.check($section, value)?;
                }
                Ok(())
            }
        }
    };
}

pub(crate) use settings;
