//! The raw bytes behind every id.

use serde_json::Value;
use tokenizers::Tokenizer;

/// How a tokenizer writes bytes into the names of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// Each byte is one printable character, as in GPT-2.
    ByteLevel,
    /// A character stands for the space, as in sentencepiece.
    Metaspace {
        /// The character that stands for the space.
        space: char,
        /// Whether the text begins with a space that the tokenizer put there.
        leads: bool,
        /// Whether `<0x0A>` is a byte, or just text.
        byte_fallback: bool,
    },
}

/// Refuses a tokenizer that is another model's: one whose words have no logits. Many models have more logits than
/// tokens, and that fits. Added tokens may lie beyond: checkpoints that were trained further have a padding token for
/// which nobody resized the embeddings. It is never drawn, and a program that feeds it gets `invalid-token`.
fn check_fit<'a>(words: impl Iterator<Item = &'a u32>, n_logits: u32) -> Result<(), String> {
    let beyond: Vec<u32> = words.copied().filter(|&id| id >= n_logits).collect();
    match beyond.iter().max() {
        Some(largest) if n_logits > 0 => Err(format!(
            "it has {} tokens of the ids {n_logits} to {largest}, and the model has {n_logits} logits, for the ids 0 \
             to {}; take the tokenizer of this model, or resize the embeddings of the model",
            beyond.len(),
            n_logits - 1
        )),
        _ => Ok(()),
    }
}

/// Every id of a vocabulary with its raw bytes.
pub(super) struct Vocab {
    spelling: Spelling,
    /// The bytes of all tokens, one after the other.
    bytes: Vec<u8>,
    /// Where the bytes of each id lie; `None` for an id without a token.
    ranges: Vec<Option<(u32, u32)>>,
}

impl Vocab {
    /// Reads the vocabulary of `tokenizer`, added tokens included; its ids are those of the model, or where that has no
    /// vocabulary (0), as many as it has itself.
    pub(super) fn new(tokenizer: &Tokenizer, model_vocab_size: u32) -> Result<Self, String> {
        let decoder = match tokenizer.get_decoder() {
            Some(decoder) => serde_json::to_value(decoder).map_err(|error| error.to_string())?,
            None => {
                return Err(
                    "it has no decoder, so that its tokens have no bytes of their own".to_owned(),
                );
            }
        };
        let spelling = Spelling::of(&decoder)?;
        let added = tokenizer.get_added_tokens_decoder();
        let vocab = tokenizer.get_vocab(true);
        let largest = vocab
            .values()
            .copied()
            .max()
            .ok_or("its vocabulary is empty")?;
        // A damaged id must not make the table huge: real vocabularies are dense.
        let limit = vocab.len().saturating_mul(2) + (1 << 20);
        for id in [largest, model_vocab_size] {
            if id as usize > limit {
                return Err(format!(
                    "the id {id} is too large for a vocabulary of {} tokens",
                    vocab.len()
                ));
            }
        }
        check_fit(
            vocab.values().filter(|id| !added.contains_key(*id)),
            model_vocab_size,
        )?;
        let unmap = byte_level_table();
        let mut tokens: Vec<(u32, String)> =
            vocab.into_iter().map(|(token, id)| (id, token)).collect();
        tokens.sort_unstable();
        let mut bytes = Vec::new();
        let mut ranges = vec![None; (largest + 1).max(model_vocab_size) as usize];
        for (id, token) in tokens {
            let start = offset(bytes.len())?;
            match added.get(&id) {
                // An added token is its text.
                Some(added) => bytes.extend_from_slice(added.content.as_bytes()),
                None => spelling.append(&token, &unmap, &mut bytes),
            }
            let end = offset(bytes.len())?;
            if let Some(range) = ranges.get_mut(id as usize) {
                *range = Some((start, end));
            }
        }
        Ok(Self {
            spelling,
            bytes,
            ranges,
        })
    }

    /// Number of ids.
    pub(super) fn size(&self) -> u32 {
        self.ranges.len() as u32
    }

    /// Bytes of the longest token.
    pub(super) fn longest_bytes(&self) -> usize {
        let lengths = self.ranges.iter().flatten().map(|(start, end)| end - start);
        lengths.max().unwrap_or(0) as usize
    }

    /// The bytes of an id; `None` when it has no token.
    pub(super) fn bytes(&self, id: u32) -> Option<&[u8]> {
        let (start, end) = (*self.ranges.get(id as usize)?)?;
        self.bytes.get(start as usize..end as usize)
    }

    /// A text's bytes without the space that a sentencepiece tokenizer puts before every text.
    pub(super) fn strip_lead<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        match self.spelling {
            Spelling::Metaspace { leads: true, .. } => bytes.strip_prefix(b" ").unwrap_or(bytes),
            _ => bytes,
        }
    }
}

impl Spelling {
    /// Reads it off the decoder of a `tokenizer.json`.
    fn of(decoder: &Value) -> Result<Self, String> {
        let kind = decoder["type"].as_str().unwrap_or("none");
        match kind {
            "ByteLevel" => return Ok(Self::ByteLevel),
            "Metaspace" => {
                let space = first_char(&decoder["replacement"]).unwrap_or('▁');
                let leads = decoder["prepend_scheme"].as_str() != Some("never");
                return Ok(Self::Metaspace {
                    space,
                    leads,
                    byte_fallback: false,
                });
            }
            _ => {}
        }
        let steps = decoder["decoders"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let step = |kind: &str| {
            steps
                .iter()
                .find(|step| step["type"].as_str() == Some(kind))
        };
        if step("ByteLevel").is_some() {
            return Ok(Self::ByteLevel);
        }
        let byte_fallback = step("ByteFallback").is_some();
        if let Some(Self::Metaspace { space, leads, .. }) =
            step("Metaspace").and_then(|it| Self::of(it).ok())
        {
            return Ok(Self::Metaspace {
                space,
                leads,
                byte_fallback,
            });
        }
        if let Some(space) =
            step("Replace").and_then(|replace| first_char(&replace["pattern"]["String"]))
        {
            let leads = step("Strip").is_some_and(|strip| strip["start"].as_u64() == Some(1));
            return Ok(Self::Metaspace {
                space,
                leads,
                byte_fallback,
            });
        }
        Err(format!(
            "its decoder {kind:?} is not supported; supported are ByteLevel, Metaspace and Replace with ByteFallback"
        ))
    }

    /// Appends the bytes that a token of the vocabulary stands for.
    fn append(self, token: &str, unmap: &[Option<u8>; 512], bytes: &mut Vec<u8>) {
        match self {
            Self::ByteLevel => {
                let start = bytes.len();
                for character in token.chars() {
                    let Some(byte) = unmap.get(character as usize).copied().flatten() else {
                        // Not written by the byte-level alphabet: it stands for itself.
                        bytes.truncate(start);
                        bytes.extend_from_slice(token.as_bytes());
                        return;
                    };
                    bytes.push(byte);
                }
            }
            Self::Metaspace {
                space,
                byte_fallback,
                ..
            } => match fallback_byte(token) {
                Some(byte) if byte_fallback => bytes.push(byte),
                _ => bytes.extend_from_slice(token.replace(space, " ").as_bytes()),
            },
        }
    }
}

/// From the characters of the byte-level alphabet to the bytes that they stand for.
///
/// The alphabet (GPT-2's `bytes_to_unicode`): printable bytes of Latin-1 are themselves, the others follow from U+0100
/// on.
fn byte_level_table() -> [Option<u8>; 512] {
    let mut table = [None; 512];
    let mut next = 0x100;
    for byte in 0..=u8::MAX {
        let place = match byte {
            b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => usize::from(byte),
            _ => {
                next += 1;
                next - 1
            }
        };
        if let Some(entry) = table.get_mut(place) {
            *entry = Some(byte);
        }
    }
    table
}

/// The byte of a token such as `<0x0A>`.
fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    let hexadecimal = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if hexadecimal {
        u8::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

fn first_char(value: &Value) -> Option<char> {
    value.as_str()?.chars().next()
}

fn offset(len: usize) -> Result<u32, String> {
    u32::try_from(len).map_err(|_| "its tokens take more than 4 GiB".to_owned())
}
