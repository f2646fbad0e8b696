//! Values as Python writes them: what `{{ value }}` prints, and `tojson`.

use std::io;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Output, Value};
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter, Serializer};

use super::budget::charge;
use super::weight::weigh;

/// What serde_json takes for a value, besides its text.
const JSON_VALUE_BYTES: usize = 96;

/// Prints a value as `str` does in Python: `True`, `None`, lists and dicts by `repr`.
pub(super) fn print(output: &mut Output<'_>, value: &Value) -> Result<(), Error> {
    let mut output = Charged(output);
    if let Some(text) = value.as_str() {
        output.write(text)
    } else if !value.is_undefined() {
        repr(&mut output, value)
    } else {
        Ok(())
    }
}

/// An output that charges for what is written.
struct Charged<'a, 'o>(&'a mut Output<'o>);

impl Charged<'_, '_> {
    fn write(&mut self, text: &str) -> Result<(), Error> {
        // Twice, since the text that grows by it has room for twice as much, and a little for the call, so that many
        // empty texts end too.
        charge(2 * text.len() + 1)?;
        Ok(self.0.write_str(text)?)
    }

    fn character(&mut self, character: char) -> Result<(), Error> {
        self.write(character.encode_utf8(&mut [0; 4]))
    }
}

fn repr(output: &mut Charged<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => output.write("None"),
        ValueKind::Bool => output.write(if value.is_true() { "True" } else { "False" }),
        ValueKind::String => repr_text(output, value.as_str().unwrap_or_default()),
        ValueKind::Seq => {
            output.write("[")?;
            for (place, item) in value.try_iter()?.enumerate() {
                output.write(if place > 0 { ", " } else { "" })?;
                repr(output, &item)?;
            }
            output.write("]")
        }
        ValueKind::Map => {
            output.write("{")?;
            for (place, key) in value.try_iter()?.enumerate() {
                output.write(if place > 0 { ", " } else { "" })?;
                repr(output, &key)?;
                output.write(": ")?;
                repr(output, &value.get_item(&key)?)?;
            }
            output.write("}")
        }
        ValueKind::Number if !value.is_integer() => match f64::try_from(value.clone()) {
            Ok(number) => output.write(&float(number)),
            Err(_) => output.write(&value.to_string()),
        },
        _ => {
            charge(weigh(value)?.as_text())?;
            output.write(&value.to_string())
        }
    }
}

/// A text in quotes, as Python's `repr` chooses and escapes them.
fn repr_text(output: &mut Charged<'_, '_>, text: &str) -> Result<(), Error> {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    output.character(quote)?;
    for character in text.chars() {
        match character {
            '\n' => output.write("\\n")?,
            '\r' => output.write("\\r")?,
            '\t' => output.write("\\t")?,
            '\\' => output.write("\\\\")?,
            _ if character == quote => {
                output.write("\\")?;
                output.character(character)?;
            }
            _ if character.is_ascii_control() => {
                output.write(&format!("\\x{:02x}", u32::from(character)))?;
            }
            _ => output.character(character)?,
        }
    }
    output.character(quote)
}

/// A float as Python's `repr` writes it: shortest digits, with an exponent below 1e-4 and from 1e16 on.
fn float(number: f64) -> String {
    let size = number.abs();
    if !number.is_finite() {
        return if number.is_nan() {
            "nan"
        } else if number > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent
            .strip_prefix('-')
            .map_or(('+', exponent), |rest| ('-', rest));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    let text = number.to_string();
    if text.contains('.') {
        text
    } else {
        format!("{text}.0")
    }
}

/// `json.dumps(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`, the arguments by keyword.
pub(super) fn to_json(value: &Value, options: &Kwargs) -> Result<Value, Error> {
    let ensure_ascii = options
        .get::<Option<bool>>("ensure_ascii")?
        .unwrap_or(false);
    let indent = options.get::<Option<usize>>("indent")?;
    let separators = options.get::<Option<Vec<String>>>("separators")?;
    let sort_keys = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    options.assert_all_used()?;
    let refused = |why: &str| Error::new(ErrorKind::InvalidOperation, format!("tojson: {why}"));
    let (item, key) = match separators.as_deref() {
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
        Some([item, key]) => (item.clone(), key.clone()),
        Some(_) => return Err(refused("separators must be two texts")),
    };
    let indent = match indent {
        Some(width) if width > 64 => return Err(refused("an indent above 64 is not supported")),
        other => other.map(|width| " ".repeat(width)),
    };
    let weight = weigh(value)?;
    charge(weight.n_values.saturating_mul(JSON_VALUE_BYTES))?;
    charge(weight.n_bytes)?;
    let mut json = serde_json::to_value(value).map_err(|error| refused(&error.to_string()))?;
    if sort_keys {
        json.sort_all_objects();
    }
    let pretty = indent
        .as_ref()
        .map(|indent| PrettyFormatter::with_indent(indent.as_bytes()));
    let style = Dumps {
        item,
        key,
        ensure_ascii,
        pretty,
    };
    let mut written = Written(Vec::new());
    let serialized = json.serialize(&mut Serializer::with_formatter(&mut written, style));
    if serialized.is_err() {
        // Where the budget ended nothing is left, and its error tells more.
        charge(1)?;
    }
    serialized.map_err(|error| refused(&error.to_string()))?;
    let text = String::from_utf8(written.0).map_err(|error| refused(&error.to_string()))?;
    Ok(Value::from_safe_string(text))
}

/// Bytes that are charged as they are written.
struct Written(Vec<u8>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        charge(bytes.len()).map_err(io::Error::other)?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The layout of Python's `json.dumps`.
struct Dumps<'i> {
    item: String,
    key: String,
    ensure_ascii: bool,
    /// Puts line breaks and indents where `indent` was given.
    pretty: Option<PrettyFormatter<'i>>,
}

impl Dumps<'_> {
    /// Writes the separator of items, and the line break that follows it in an indented document.
    fn separate<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(self.item.as_bytes())?;
        }
        match &mut self.pretty {
            // As if each were the first, since the separator is written.
            Some(pretty) => pretty.begin_array_value(writer, true),
            None => Ok(()),
        }
    }
}

impl Formatter for Dumps<'_> {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match &mut self.pretty {
            Some(pretty) => pretty.begin_array(writer),
            None => writer.write_all(b"["),
        }
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match &mut self.pretty {
            Some(pretty) => pretty.end_array(writer),
            None => writer.write_all(b"]"),
        }
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty
            .as_mut()
            .map_or(Ok(()), |pretty| pretty.end_array_value(writer))
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match &mut self.pretty {
            Some(pretty) => pretty.begin_object(writer),
            None => writer.write_all(b"{"),
        }
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match &mut self.pretty {
            Some(pretty) => pretty.end_object(writer),
            None => writer.write_all(b"}"),
        }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(self.key.as_bytes())
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty
            .as_mut()
            .map_or(Ok(()), |pretty| pretty.end_object_value(writer))
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut units = [0; 2];
        for character in fragment.chars() {
            if self.ensure_ascii && !character.is_ascii() {
                for unit in character.encode_utf16(&mut units) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            } else {
                writer.write_all(character.encode_utf8(&mut [0; 4]).as_bytes())?;
            }
        }
        Ok(())
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        serde_json::ser::CompactFormatter.write_char_escape(writer, escape)
    }
}
