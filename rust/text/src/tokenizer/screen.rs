//! What a `tokenizer.json` says is looked at before it is loaded: how many values it holds, and how much its steps can
//! make of a text.
//!
//! The library that loads it makes of each value an object of its own, and applies the normalizer to each added token
//! while it loads. Both are bounded here. While a text is encoded, [`Bounded`] counts what the normalizer really makes
//! of it.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base64::Engine as _;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokenizers::{NormalizedString, Normalizer, NormalizerWrapper, PreTokenizerWrapper};

use crate::limits::{MAX_TOKENIZER_STEPS, MAX_TOKENIZER_VALUES};

/// Values outside of the model itself: added tokens, steps.
const MAX_OTHER_VALUES: usize = 1 << 19;
/// How many bytes the steps of a normalizer may make of one, if the worst of each comes together.
const MAX_GROWTH: usize = 4096;
/// The same of a pre-tokenizer, of which nothing is counted while a text is encoded: those of models put a few spaces
/// in, or write a byte as a character, and what is split costs twenty times its bytes.
const MAX_SPLIT_GROWTH: usize = 32;
/// The bytes of all added tokens as the normalizer may write them.
const MAX_ADDED_BYTES: usize = 64 << 20;
/// A text that cannot become longer than this is normalized without being counted.
const FREE_BYTES: usize = 8 << 20;
/// Another may become so many bytes, and so many for each of its own.
const BASE_BYTES: usize = 1 << 20;
const MAX_TIMES: usize = 8;
/// The normalizer is tried on so many bytes at a time.
const PART_BYTES: usize = 1 << 10;

/// The parts of a `tokenizer.json` that make texts longer.
#[derive(Deserialize)]
struct Steps {
    #[serde(default)]
    normalizer: Option<Value>,
    #[serde(default)]
    pre_tokenizer: Option<Value>,
    #[serde(default)]
    added_tokens: Vec<Value>,
}

/// Refuses a file that would take too much memory to load. Gives how many bytes the normalizer makes of one at most.
///
/// # Errors
/// A text that names what is too large, or that the file is not JSON.
pub(super) fn screen(file: &[u8]) -> Result<usize, String> {
    let mut json = serde_json::Deserializer::from_slice(file);
    Document
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|error| format!("it is not JSON, or too large: {error}"))?;
    let steps: Steps = serde_json::from_slice(file).map_err(|error| error.to_string())?;
    let mut n_steps = NSteps::default();
    let growth = growth_as_loaded::<NormalizerWrapper>(steps.normalizer, &mut n_steps)?;
    let further = growth_as_loaded::<PreTokenizerWrapper>(steps.pre_tokenizer, &mut n_steps)?;
    for (growth, limit, what) in [
        (growth, MAX_GROWTH, "normalizer"),
        (further, MAX_SPLIT_GROWTH, "pre_tokenizer"),
    ] {
        if growth > limit {
            return Err(format!(
                "its {what} may make {growth} bytes of one, and the limit is {limit}"
            ));
        }
    }
    let added = steps.added_tokens.iter();
    let n_bytes: usize = added
        .filter_map(|token| Some(token["content"].as_str()?.len()))
        .sum();
    if n_bytes.saturating_mul(growth) > MAX_ADDED_BYTES {
        return Err(format!(
            "its added tokens have {n_bytes} bytes, of each of which its normalizer may make {growth}; together the limit is {MAX_ADDED_BYTES}"
        ));
    }
    Ok(growth)
}

/// Steps that were counted, of the normalizer and the pre-tokenizer together.
#[derive(Default)]
struct NSteps {
    written: usize,
    loaded: usize,
}

/// How many bytes a step, as the library loads it, makes of one at most. What the file calls it does not say: the
/// library takes a step of an unknown type, and one without any, for the first whose fields it has.
fn growth_as_loaded<T: DeserializeOwned + Serialize>(
    step: Option<Value>,
    n_steps: &mut NSteps,
) -> Result<usize, String> {
    let Some(step) = step else {
        return Ok(1);
    };
    // Their number is looked at before any is made.
    growth(&step, &mut n_steps.written)?;
    let loaded: T = serde_json::from_value(step).map_err(|error| error.to_string())?;
    let step = serde_json::to_value(&loaded).map_err(|error| error.to_string())?;
    growth(&step, &mut n_steps.loaded)
}

/// How many bytes a step makes of one at most. A step that puts a text before another counts as if each byte were a
/// text.
fn growth(step: &Value, n_steps: &mut usize) -> Result<usize, String> {
    *n_steps += 1;
    if *n_steps > MAX_TOKENIZER_STEPS {
        return Err(format!(
            "it normalizes and splits in more than the limit of {MAX_TOKENIZER_STEPS} steps"
        ));
    }
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    let parts = ["normalizers", "pretokenizers"]
        .iter()
        .filter_map(|name| step[*name].as_array());
    let mut all: usize = 1;
    for part in parts.flatten() {
        all = all.saturating_mul(growth(part, n_steps)?);
    }
    let own = match step["type"].as_str().unwrap_or_default() {
        "Replace" => {
            let content = text("content").len();
            match step["pattern"]["String"].as_str() {
                Some(pattern) if !pattern.is_empty() => content.div_ceil(pattern.len()).max(1),
                // An expression may match each byte, or between two.
                _ => content + 1,
            }
        }
        "Prepend" => text("prepend").len() + 1,
        "Metaspace" => 4 + 4,
        "ByteLevel" => 2 + 1,
        "BertNormalizer" | "Bert" => 3,
        "NFC" | "NFD" => 3,
        "NFKC" | "NFKD" => 12,
        "Lowercase" => 2,
        "Precompiled" => longest_replacement(text("precompiled_charsmap"))?.max(1),
        _ => 1,
    };
    Ok(all.saturating_mul(own))
}

/// The longest text by which a map of sentencepiece's replaces characters: behind the trie, whose size comes first,
/// they end with zeroes.
fn longest_replacement(map: &str) -> Result<usize, String> {
    let damaged = || "its precompiled_charsmap is damaged".to_owned();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(map)
        .map_err(|_| damaged())?;
    let (size, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    let texts = rest
        .get(u32::from_le_bytes(*size) as usize..)
        .ok_or_else(damaged)?;
    Ok(texts
        .split(|&byte| byte == 0)
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0))
}

/// The whole file: an object whose values are counted.
struct Document;

impl<'de> DeserializeSeed<'de> for Document {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let model = Cell::new(MAX_TOKENIZER_VALUES);
        let other = Cell::new(MAX_OTHER_VALUES);
        while let Some(name) = map.next_key::<String>()? {
            map.next_value_seed(Counted(if name == "model" { &model } else { &other }))?;
        }
        Ok(())
    }
}

/// Any value, which takes one from those that may still come.
#[derive(Clone, Copy)]
struct Counted<'c>(&'c Cell<usize>);

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0.get().checked_sub(1) {
            Some(left) => self.0.set(left),
            None => {
                return Err(D::Error::custom(format!(
                    "it holds more than {MAX_TOKENIZER_VALUES} values in its model, or {MAX_OTHER_VALUES} outside of it"
                )));
            }
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counted<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(self)?;
        }
        Ok(())
    }
}

/// A normalizer for one text, that stops where it makes too much of it.
pub(super) struct Bounded<'t> {
    normalizer: Option<&'t NormalizerWrapper>,
    limit: usize,
    /// What it made so far, of all pieces of the text.
    made: AtomicUsize,
}

impl<'t> Bounded<'t> {
    /// For a text of `n_bytes`, by a normalizer that makes at most `growth` bytes of one.
    pub(super) fn new(
        normalizer: Option<&'t NormalizerWrapper>,
        growth: usize,
        n_bytes: usize,
    ) -> Self {
        let limit = if n_bytes.saturating_mul(growth) <= FREE_BYTES {
            usize::MAX
        } else {
            BASE_BYTES + MAX_TIMES * n_bytes
        };
        Self {
            normalizer,
            limit,
            made: AtomicUsize::new(0),
        }
    }

    /// The same for the text once more.
    pub(super) fn again(&self) -> Self {
        Self {
            normalizer: self.normalizer,
            limit: self.limit,
            made: AtomicUsize::new(0),
        }
    }

    /// Whether what was normalized is the whole.
    ///
    /// # Errors
    /// Where the normalizer made too much.
    pub(super) fn check(&self) -> tokenizers::Result<()> {
        if self.made.load(Relaxed) > self.limit {
            return Err(format!(
                "its normalizer makes more than {} bytes of the text",
                self.limit
            )
            .into());
        }
        Ok(())
    }

    fn step(
        &self,
        step: &NormalizerWrapper,
        text: &mut NormalizedString,
    ) -> tokenizers::Result<()> {
        if let NormalizerWrapper::Sequence(steps) = step {
            return steps
                .as_ref()
                .iter()
                .try_for_each(|step| self.step(step, text));
        }
        if text.len() > PART_BYTES {
            self.measure(step, text.get())?;
        }
        step.normalize(text)
    }

    /// Tries a step on parts of a long text, so that what it makes of all of it is known before there is room for it.
    fn measure(&self, step: &NormalizerWrapper, text: &str) -> tokenizers::Result<()> {
        if let NormalizerWrapper::Prepend(_) = step {
            return Ok(());
        }
        let mut n_bytes = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let mut end = rest.len().min(PART_BYTES);
            while !rest.is_char_boundary(end) {
                end += 1;
            }
            let (part, behind) = rest.split_at(end);
            let mut part = NormalizedString::from(part);
            step.normalize(&mut part)?;
            n_bytes += part.len();
            rest = behind;
            if self.made.load(Relaxed).saturating_add(n_bytes) > self.limit {
                self.made.store(usize::MAX, Relaxed);
                return self.check();
            }
        }
        Ok(())
    }
}

impl Normalizer for Bounded<'_> {
    fn normalize(&self, text: &mut NormalizedString) -> tokenizers::Result<()> {
        let Some(normalizer) = self.normalizer else {
            return Ok(());
        };
        if self.limit == usize::MAX {
            return normalizer.normalize(text);
        }
        self.check()?;
        self.step(normalizer, text)?;
        self.made
            .store(self.made.load(Relaxed).saturating_add(text.len()), Relaxed);
        self.check()
    }
}
