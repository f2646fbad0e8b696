//! How a document is written: what stands around its values, and what may not stand in its strings.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// How a document is written.
#[derive(Debug, Clone)]
pub(in crate::grammar) struct Spelling {
    /// What the names of rules begin with: lower-case letters, digits and underscores.
    pub(in crate::grammar) prefix: String,
    /// Between two items or properties.
    pub(in crate::grammar) comma: &'static str,
    /// Between a key and its value.
    pub(in crate::grammar) colon: &'static str,
    /// Texts that no string of the document may hold.
    pub(in crate::grammar) avoided: Vec<String>,
}

impl Default for Spelling {
    /// Without white space.
    fn default() -> Self {
        Self {
            prefix: String::new(),
            comma: ",",
            colon: ":",
            avoided: Vec::new(),
        }
    }
}

impl Spelling {
    /// With a space behind commas and colons, as chat templates write JSON.
    pub(in crate::grammar) fn spaced() -> Self {
        Self {
            comma: ", ",
            colon: ": ",
            ..Self::default()
        }
    }

    /// A value that is given whole.
    pub(super) fn of_value(&self, value: &Value) -> String {
        let mut text = Vec::new();
        let separators = Separators {
            comma: self.comma,
            colon: self.colon,
        };
        let written = value.serialize(&mut Serializer::with_formatter(&mut text, separators));
        debug_assert!(written.is_ok(), "a value is written into memory");
        String::from_utf8(text).unwrap_or_default()
    }
}

/// Writes JSON with these texts between its values.
struct Separators {
    comma: &'static str,
    colon: &'static str,
}

impl Separators {
    fn between<W: ?Sized + io::Write>(&self, writer: &mut W, first: bool) -> io::Result<()> {
        match first {
            true => Ok(()),
            false => writer.write_all(self.comma.as_bytes()),
        }
    }
}

impl Formatter for Separators {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.between(writer, first)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.between(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(self.colon.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_with_the_texts_between_them() {
        let value = json!({"a": [1, "x, y: z"], "b": {}, "c": []});
        let spaced = r#"{"a": [1, "x, y: z"], "b": {}, "c": []}"#;
        assert_eq!(Spelling::spaced().of_value(&value), spaced);
        assert_eq!(Spelling::default().of_value(&value), value.to_string());
    }
}
