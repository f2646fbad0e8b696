//! Where a value holds a number that JSON cannot hold: serde_json writes NaN and the infinities as `null`, and says
//! nothing.

use std::fmt::{self, Display, Write as _};

use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Characters of a place that are shown.
const MAX_SHOWN_CHARS: usize = 80;

/// A number that is not finite, and where it stands. It is shown as what follows the name of the whole value.
#[derive(Debug)]
pub(crate) struct NotFinite {
    place: String,
    number: f64,
}

/// The first number in `value` that is not finite. `written` is its JSON: a value without a `null` is not looked
/// through.
pub(crate) fn not_finite(value: &impl Serialize, written: &str) -> Option<NotFinite> {
    if !written.contains("null") {
        return None;
    }
    let mut walk = Walk::default();
    match value.serialize(&mut walk) {
        Err(Stop::Number(number)) => Some(NotFinite {
            place: walk.place,
            number,
        }),
        Ok(()) | Err(Stop::Other) => None,
    }
}

impl Display for NotFinite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.trim_start_matches('.');
        if !place.is_empty() {
            let shown: String = place.chars().take(MAX_SHOWN_CHARS).collect();
            let cut = if shown.len() < place.len() { "..." } else { "" };
            write!(formatter, " at {shown}{cut}")?;
        }
        write!(
            formatter,
            " is the number {}; JSON holds finite numbers only: give an `Option` that is `None`, or leave it out",
            self.number
        )
    }
}

/// Goes through a value as serde shows it, and stops at the first number that is not finite.
#[derive(Default)]
struct Walk {
    /// Where it is, as in `.scores[1]`.
    place: String,
}

/// Why a walk ends before the end of its value.
#[derive(Debug)]
enum Stop {
    Number(f64),
    /// The value cannot be written at all.
    Other,
}

impl Display for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the walk through a value ends here")
    }
}

impl std::error::Error for Stop {}

impl Error for Stop {
    fn custom<T: Display>(_: T) -> Self {
        Self::Other
    }
}

/// What is within a list, a map or a struct.
struct Within<'walk> {
    walk: &'walk mut Walk,
    /// Bytes of the place of the whole.
    outer: usize,
    /// Bytes of the place that what is within continues.
    inner: usize,
    /// Items so far.
    n_items: usize,
}

impl Walk {
    fn within(&mut self, variant: Option<&str>) -> Within<'_> {
        let outer = self.place.len();
        if let Some(variant) = variant {
            self.step(variant);
        }
        Within {
            outer,
            inner: self.place.len(),
            n_items: 0,
            walk: self,
        }
    }

    /// Appends a name: after a dot where it is a word, else in brackets.
    fn step(&mut self, name: &str) {
        let is_word = name
            .chars()
            .all(|character| character.is_alphanumeric() || character == '_');
        let starts_a_word = name
            .chars()
            .next()
            .is_some_and(|first| !first.is_ascii_digit());
        // Writing to a string cannot fail.
        let _ = if is_word && starts_a_word {
            write!(self.place, ".{name}")
        } else {
            write!(self.place, "[{name:?}]")
        };
    }
}

impl Within<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        self.walk.place.truncate(self.inner);
        let _ = write!(self.walk.place, "[{}]", self.n_items);
        self.n_items += 1;
        value.serialize(&mut *self.walk)
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Stop> {
        self.walk.place.truncate(self.inner);
        self.walk.step(name);
        value.serialize(&mut *self.walk)
    }

    fn over(self) -> Result<(), Stop> {
        self.walk.place.truncate(self.outer);
        Ok(())
    }
}

/// Methods for values in which there is no number that is not finite.
macro_rules! harmless {
    ($($method:ident: $kind:ty),* $(,)?) => {
        $(
            fn $method(self, _: $kind) -> Result<(), Stop> {
                Ok(())
            }
        )*
    };
}

impl<'walk> Serializer for &'walk mut Walk {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Within<'walk>;
    type SerializeTuple = Within<'walk>;
    type SerializeTupleStruct = Within<'walk>;
    type SerializeTupleVariant = Within<'walk>;
    type SerializeMap = Within<'walk>;
    type SerializeStruct = Within<'walk>;
    type SerializeStructVariant = Within<'walk>;

    harmless! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    fn serialize_f32(self, value: f32) -> Result<(), Stop> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Stop> {
        if value.is_finite() {
            Ok(())
        } else {
            Err(Stop::Number(value))
        }
    }

    fn serialize_none(self) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        let mut within = self.within(None);
        within.field(variant, value)?;
        within.over()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Within<'walk>, Stop> {
        Ok(self.within(None))
    }

    fn serialize_tuple(self, _: usize) -> Result<Within<'walk>, Stop> {
        Ok(self.within(None))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Within<'walk>, Stop> {
        Ok(self.within(None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Within<'walk>, Stop> {
        Ok(self.within(Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Within<'walk>, Stop> {
        Ok(self.within(None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Within<'walk>, Stop> {
        Ok(self.within(None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Within<'walk>, Stop> {
        Ok(self.within(Some(variant)))
    }
}

/// Lists and tuples: what is within has a number.
macro_rules! of_items {
    ($($kind:ident::$method:ident),* $(,)?) => {
        $(
            impl $kind for Within<'_> {
                type Ok = ();
                type Error = Stop;

                fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
                    self.item(value)
                }

                fn end(self) -> Result<(), Stop> {
                    self.over()
                }
            }
        )*
    };
}

of_items! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

/// Structs: what is within has a name.
macro_rules! of_fields {
    ($($kind:ident),* $(,)?) => {
        $(
            impl $kind for Within<'_> {
                type Ok = ();
                type Error = Stop;

                fn serialize_field<T: Serialize + ?Sized>(
                    &mut self,
                    name: &'static str,
                    value: &T,
                ) -> Result<(), Stop> {
                    self.field(name, value)
                }

                fn end(self) -> Result<(), Stop> {
                    self.over()
                }
            }
        )*
    };
}

of_fields! { SerializeStruct, SerializeStructVariant }

impl SerializeMap for Within<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Stop> {
        let written = serde_json::to_value(key).map_err(|_| Stop::Other)?;
        self.walk.place.truncate(self.inner);
        match written.as_str() {
            Some(name) => self.walk.step(name),
            None => self.walk.step(&written.to_string()),
        }
        Ok(())
    }

    /// The key of the value was told just before.
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        value.serialize(&mut *self.walk)
    }

    fn end(self) -> Result<(), Stop> {
        self.over()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;

    use super::*;

    #[derive(Serialize)]
    enum Kind {
        Struct { share: f32 },
        Tuple(u8, f64),
        New(Vec<f64>),
    }

    fn told(value: &impl Serialize) -> Option<String> {
        let written = serde_json::to_string(value).unwrap();
        let found = not_finite(value, &written).map(|found| found.to_string());
        found.map(|text| text.split(';').next().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_number_that_is_not_finite_is_found_with_its_place() {
        let of = |name: &str| BTreeMap::from([(name.to_owned(), [Some(1.0), Some(f64::NAN)])]);
        for (found, expected) in [
            (told(&f64::NAN), " is the number NaN"),
            (
                told(&[1.0, f64::NEG_INFINITY]),
                " at [1] is the number -inf",
            ),
            (told(&of("scores")), " at scores[1] is the number NaN"),
            (told(&of("a b")), " at [\"a b\"][1] is the number NaN"),
            (
                told(&(
                    1,
                    Kind::Struct {
                        share: f32::INFINITY,
                    },
                )),
                " at [1].Struct.share is the number inf",
            ),
            (
                told(&Kind::Tuple(1, f64::NAN)),
                " at Tuple[1] is the number NaN",
            ),
            (
                told(&Kind::New(vec![0.0, f64::NAN])),
                " at New[1] is the number NaN",
            ),
            (
                told(&BTreeMap::from([(3, (None::<u8>, f64::NAN))])),
                " at [\"3\"][1] is the number NaN",
            ),
        ] {
            assert_eq!(found.as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_is_null_by_intent_is_none() {
        assert_eq!(told(&None::<f64>), None);
        assert_eq!(told(&((), "null", [Some(1.5), None], i128::MIN)), None);
        assert_eq!(told(&serde_json::json!({ "a": null })), None);
    }

    #[test]
    fn a_long_place_is_cut() {
        let key = "k".repeat(1000);
        let text = told(&BTreeMap::from([(key, f64::NAN)])).unwrap();
        assert!(
            text.len() < 120 && text.contains("kk... is the number NaN"),
            "{text}"
        );
    }
}
