//! What a filter or a method may make of its arguments, in bytes: an upper bound, charged before it is called.

use minijinja::{Error, Value};

use super::budget::charge;
use super::weight::{ITEM_BYTES, Weight, reached, weigh};

/// What a text becomes where each of its characters becomes an item of a list.
const CHARACTER_BYTES: usize = 32;
/// How often a sort looks at a value, for lists that fit a budget.
const SORT_LOOKS: usize = 24;
/// Bytes in capitals or small letters, of one byte.
const CASE_BYTES: usize = 3;
/// The longest number in a format that is told apart from larger ones, in digits.
const MAX_WIDTH_DIGITS: usize = 12;

/// A call: what it is about, and the other arguments.
struct Call<'a> {
    subject: &'a Value,
    rest: &'a [Value],
    /// Of the subject.
    weight: Weight,
    /// Of all arguments, the subject among them.
    total: Weight,
}

impl<'a> Call<'a> {
    fn new(subject: &'a Value, rest: &'a [Value]) -> Result<Self, Error> {
        let weight = weigh(subject)?;
        let mut total = weight;
        for argument in rest {
            let more = weigh(argument)?;
            total.n_values = total.n_values.saturating_add(more.n_values);
            total.n_bytes = total.n_bytes.saturating_add(more.n_bytes);
        }
        Ok(Self {
            subject,
            rest,
            weight,
            total,
        })
    }

    fn text(&self) -> &'a str {
        self.subject.as_str().unwrap_or_default()
    }

    fn argument(&self, place: usize) -> &'a str {
        self.rest.get(place).and_then(Value::as_str).unwrap_or("")
    }

    /// The largest number among the arguments, those by keyword included.
    fn largest(&self) -> usize {
        let mut largest = 0;
        for argument in self.rest {
            let named = argument.as_object().and_then(|it| it.try_iter_pairs());
            for value in named.into_iter().flatten().map(|(_, value)| value) {
                largest = largest.max(value.as_usize().unwrap_or(0));
            }
            largest = largest.max(argument.as_usize().unwrap_or(0));
        }
        largest
    }

    /// A list of the parts into which `separator`, or whitespace, splits the text.
    fn split(&self, separator: Option<&str>) -> usize {
        let n_parts = match separator {
            Some("") => self.text().len(),
            Some(separator) => self.text().matches(separator).count(),
            None => self.text().split_whitespace().count(),
        };
        n_parts
            .saturating_add(2)
            .saturating_mul(ITEM_BYTES)
            .saturating_add(self.text().len())
    }

    /// The text with `old` replaced by `new`.
    fn replaced(&self, old: &str, new: &str) -> usize {
        let n_places = if old.is_empty() {
            self.text().len() + 1
        } else {
            self.text().matches(old).count()
        };
        n_places
            .saturating_mul(new.len())
            .saturating_add(self.text().len())
    }

    /// What is trimmed is looked up among `characters`, one after the other.
    fn trimmed(&self, characters: &str) -> usize {
        let looks = self.text().len().saturating_mul(characters.len()) / 16;
        self.text().len().saturating_add(looks)
    }

    /// What a format makes: each of its fields may be as wide as the numbers in it say.
    fn formatted(&self) -> usize {
        let mut widths: usize = 0;
        let numbers = self.text().split(|c: char| !c.is_ascii_digit());
        for digits in numbers.filter(|digits| !digits.is_empty()) {
            let width = if digits.len() > MAX_WIDTH_DIGITS {
                usize::MAX
            } else {
                digits.parse().unwrap_or(usize::MAX)
            };
            widths = widths.saturating_add(width);
        }
        // Each field may show the same argument again.
        let n_fields = self.text().matches(['%', '{']).count().max(1);
        self.total
            .as_text()
            .saturating_mul(n_fields)
            .saturating_add(widths.saturating_mul(4))
    }

    /// As a list, whose characters are items where it is a text.
    fn listed(&self) -> usize {
        match self.subject.as_str() {
            Some(text) => text.len().saturating_mul(CHARACTER_BYTES),
            None => self.total.as_list(),
        }
    }

    fn sorted(&self) -> usize {
        // Items may be compared by several of their attributes, which a text names with commas.
        let n_keys = 1 + self
            .rest
            .iter()
            .filter_map(|argument| argument.as_object()?.try_iter_pairs())
            .flatten()
            .filter_map(|(_, value)| Some(value.as_str()?.matches(',').count()))
            .sum::<usize>();
        let looks = self.weight.n_values.saturating_add(self.weight.n_bytes / 4);
        looks
            .saturating_mul(SORT_LOOKS)
            .saturating_mul(n_keys)
            .saturating_add(self.listed())
    }

    fn indented(&self) -> usize {
        let n_lines = 1 + self.text().matches('\n').count();
        self.largest()
            .max(4)
            .saturating_mul(n_lines.saturating_add(1))
            .saturating_add(self.text().len())
    }
}

/// Whether a filter gives a value that there is, or one without parts, and walks nothing.
pub(super) fn only_glances(filter: &str) -> bool {
    matches!(
        filter,
        "length"
            | "count"
            | "default"
            | "d"
            | "bool"
            | "int"
            | "float"
            | "abs"
            | "round"
            | "first"
            | "attr"
            | "safe"
    )
}

/// Charges for a filter with these arguments.
///
/// # Errors
/// Where the budget ends.
pub(super) fn charge_filter(name: &str, arguments: &[Value]) -> Result<(), Error> {
    let Some((subject, rest)) = arguments.split_first() else {
        return Ok(());
    };
    if only_glances(name) {
        reached(subject)?;
        return rest
            .iter()
            .try_for_each(|argument| weigh(argument).map(drop));
    }
    let call = Call::new(subject, rest)?;
    charge(match name {
        "lower" | "upper" | "title" | "capitalize" => call.text().len().saturating_mul(CASE_BYTES),
        "trim" => call.trimmed(call.argument(0)),
        "string" if call.subject.as_str().is_some() => 0,
        "string" | "escape" | "e" | "urlencode" => call.total.as_text(),
        // Indented by four spaces a level.
        "pprint" => call.total.as_text().saturating_mul(9),
        "replace" => call.replaced(call.argument(0), call.argument(1)),
        "split" => call.split(call.rest.first().and_then(Value::as_str)),
        "lines" => call.split(Some("\n")),
        "join" => joined(call.subject, call.weight, call.argument(0)),
        "format" => call.formatted(),
        "indent" => call.indented(),
        "batch" | "slice" => {
            let places = call.largest().saturating_mul(ITEM_BYTES);
            places.saturating_add(call.listed())
        }
        "sort" | "unique" | "groupby" | "dictsort" | "min" | "max" => call.sorted(),
        _ => call.listed(),
    })
}

/// Charges for a method of a text, a list or a map with these arguments.
///
/// # Errors
/// Where the budget ends.
pub(super) fn charge_method(name: &str, subject: &Value, rest: &[Value]) -> Result<(), Error> {
    if name == "get" {
        return rest.iter().take(1).try_for_each(|key| weigh(key).map(drop));
    }
    let call = Call::new(subject, rest)?;
    charge(match (name, subject.as_str().is_some()) {
        ("lower" | "upper" | "title" | "capitalize", true) => {
            call.text().len().saturating_mul(CASE_BYTES)
        }
        ("strip" | "lstrip" | "rstrip", true) => call.trimmed(call.argument(0)),
        ("replace", true) => call.replaced(call.argument(0), call.argument(1)),
        ("split", true) => call.split(rest.first().and_then(Value::as_str)),
        ("splitlines", true) => call.split(Some("\n")),
        ("join", true) => match rest.first() {
            Some(list) => joined(list, weigh(list)?, call.text()),
            None => 0,
        },
        ("format", true) => call.formatted(),
        ("items" | "keys" | "values", false) => call.weight.as_list(),
        _ => 0,
    })
}

/// The items of `list`, or the characters of a text, with `separator` between them.
fn joined(list: &Value, weight: Weight, separator: &str) -> usize {
    let (n_items, items) = match list.as_str() {
        Some(text) => (text.len(), text.len().saturating_mul(CHARACTER_BYTES)),
        None => (weight.n_values, weight.as_text()),
    };
    n_items
        .saturating_mul(separator.len())
        .saturating_add(items)
}
