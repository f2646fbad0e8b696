//! How large a value is, counted as what walks it sees it: a part that stands in it twice counts twice.
//!
//! Every value that holds others is weighed where it is made, so none is nested deeper than [`MAX_DEPTH`]: printing,
//! comparing and dropping one takes a bounded stack.

use std::sync::OnceLock;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::budget::charge;

/// How deep values may be nested. The deepest that templates build are schemas of tools.
pub(super) const MAX_DEPTH: usize = 100;
/// What a list takes for an item, with the item's own head and its share of the allocations.
pub(super) const ITEM_BYTES: usize = 64;
/// What it costs to look at one value.
const VISIT_BYTES: usize = 8;
/// So many bytes of text are looked at in the time in which one is made.
const SCAN: usize = 16;

/// What a value holds, all of its parts together.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Weight {
    /// Values, itself included.
    pub(super) n_values: usize,
    /// Bytes of its texts.
    pub(super) n_bytes: usize,
}

impl Weight {
    /// What the value takes as text: quotes, separators and escapes included.
    pub(super) fn as_text(self) -> usize {
        (self.n_bytes.saturating_mul(6)).saturating_add(self.n_values.saturating_mul(48))
    }

    /// What a list takes that holds as many values.
    pub(super) fn as_list(self) -> usize {
        self.n_values.saturating_mul(ITEM_BYTES)
    }
}

/// Weighs a value, and charges for it as for looking at all of it.
///
/// # Errors
/// Where the budget ends, or the value is nested too deep.
pub(super) fn weigh(value: &Value) -> Result<Weight, Error> {
    let mut weight = Weight::default();
    add(value, MAX_DEPTH, &mut weight)?;
    Ok(weight)
}

fn add(value: &Value, depth: usize, weight: &mut Weight) -> Result<(), Error> {
    let text = value.as_str().map_or(0, str::len);
    charge(VISIT_BYTES + text / SCAN)?;
    weight.n_values += 1;
    weight.n_bytes += text;
    let kind = value.kind();
    if !matches!(kind, ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
        return Ok(());
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("a value is nested deeper than the limit of {MAX_DEPTH}"),
        ));
    };
    if kind == ValueKind::Map {
        let pairs = value.as_object().and_then(|object| object.try_iter_pairs());
        for (key, item) in pairs.into_iter().flatten() {
            add(&key, depth, weight)?;
            add(&item, depth, weight)?;
        }
        return Ok(());
    }
    for item in value.try_iter()? {
        add(&item, depth, weight)?;
    }
    Ok(())
}

/// Charges for a value that an operation made, and gives it as one that holds its items itself.
///
/// minijinja makes slices, sums and views of lists lazily: one holds the other, as deep as they are made.
///
/// # Errors
/// As [`weigh`].
pub(super) fn made(value: Value) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        charge(text.len())?;
        return Ok(value);
    }
    let Some(object) = value.as_object() else {
        return Ok(value);
    };
    let kind = value.kind();
    if !matches!(kind, ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
        return Ok(value);
    }
    // Its items first: none may be walked or copied before it is charged.
    let weight = weigh(&value)?;
    charge(weight.as_list())?;
    if kind == ValueKind::Map {
        return Ok(match object.try_iter_pairs() {
            Some(pairs) if object.type_name().ends_with("::MergeDict") => pairs.collect(),
            _ => value,
        });
    }
    if object.downcast_ref::<Vec<Value>>().is_some() {
        return Ok(value);
    }
    Ok(Value::from(value.try_iter()?.collect::<Vec<Value>>()))
}

/// The same for what holds items of values that there are, one deep: none of them is walked.
///
/// # Errors
/// Where the budget ends.
pub(super) fn gathered(value: Value) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        charge(text.len())?;
        return Ok(value);
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(value);
    }
    let mut items = Vec::new();
    for item in value.try_iter()? {
        charge(ITEM_BYTES)?;
        items.push(item);
    }
    Ok(Value::from(items))
}

/// Charges for looking at a value that has no parts, or at the text that it is.
///
/// # Errors
/// Where the budget ends.
pub(super) fn glance(value: &Value) -> Result<(), Error> {
    charge(VISIT_BYTES + value.as_str().map_or(0, str::len) / SCAN)
}

/// Charges for reaching an item of a value: what makes its items as they are asked for makes those before it too.
///
/// # Errors
/// Where the budget ends.
pub(super) fn reached(value: &Value) -> Result<(), Error> {
    if value.kind() == ValueKind::Iterable {
        return weigh(value).map(drop);
    }
    glance(value)
}

/// How many items a list holds.
pub(super) fn n_items(value: &Value) -> Option<usize> {
    value.as_object()?.enumerator_len()
}

/// Charges for a comparison of two values.
///
/// # Errors
/// As [`weigh`].
pub(super) fn compared(a: &Value, b: &Value) -> Result<(), Error> {
    if a.as_object().is_some() && b.as_object().is_some() {
        weigh(a)?;
        weigh(b)?;
        return Ok(());
    }
    let shorter = a
        .as_str()
        .map_or(0, str::len)
        .min(b.as_str().map_or(0, str::len));
    charge(VISIT_BYTES + shorter / SCAN)
}

/// Charges for looking for a value in a text, a list or a map.
///
/// # Errors
/// As [`weigh`].
pub(super) fn sought(value: &Value, place: &Value) -> Result<(), Error> {
    match (value.as_object(), place.kind(), n_items(place)) {
        (None, ValueKind::Map, _) => glance(value),
        (None, ValueKind::Seq | ValueKind::Iterable, Some(n_items)) => {
            let one = VISIT_BYTES + value.as_str().map_or(0, str::len) / SCAN;
            charge(one.saturating_mul(n_items))
        }
        _ => {
            weigh(value)?;
            weigh(place).map(drop)
        }
    }
}

/// Whether what a namespace keeps may hold this value. One that holds a namespace or a loop could hold itself, and
/// would never be freed.
///
/// # Errors
/// Where the value holds one, or as [`weigh`].
pub(super) fn check_storable(value: &Value) -> Result<(), Error> {
    weigh(value)?;
    if holds_mutable(value) {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "a namespace cannot keep a namespace or a loop; keep what it holds instead",
        ));
    }
    Ok(())
}

fn holds_mutable(value: &Value) -> bool {
    let Some(object) = value.as_object() else {
        return false;
    };
    let name = object.type_name();
    if name == namespace_type() || name.ends_with("::Loop") {
        return true;
    }
    match value.kind() {
        ValueKind::Map => object
            .try_iter_pairs()
            .into_iter()
            .flatten()
            .any(|(key, item)| holds_mutable(&key) || holds_mutable(&item)),
        ValueKind::Seq | ValueKind::Iterable => object
            .try_iter()
            .into_iter()
            .flatten()
            .any(|item| holds_mutable(&item)),
        _ => false,
    }
}

/// The name of the type of namespaces, which minijinja does not export.
fn namespace_type() -> &'static str {
    static NAME: OnceLock<&'static str> = OnceLock::new();
    NAME.get_or_init(|| {
        minijinja::functions::namespace(None)
            .ok()
            .and_then(|value| value.as_object().map(|object| object.type_name()))
            .unwrap_or("")
    })
}
