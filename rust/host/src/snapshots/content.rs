//! What a context says, as bytes.
//!
//! The computed tokens are cut into runs of [`RUN_TOKENS`], whatever the size of a page, so that an engine with pages
//! of another size reads them. Behind the last whole run comes the tail. Both are:
//!
//! ```text
//! n, n tokens; m, m special tokens
//! a special token: slot, position, adapter (8 bytes), its version, 1 where it has a zo seed, zo seed (8), medium (8),
//!                  n, n runs of its attention mask
//! ```
//!
//! and the tail goes on with `n, n pending tokens; n, n buffered tokens`. Numbers have 4 bytes where nothing else is
//! said.

use std::sync::Arc;

use pie_core::{Adapter, ContextImage, SpecialSlot};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::binding::hex;
use super::format::{Digest, Reader, RunPlace, damaged};

/// Tokens of a run.
pub(crate) const RUN_TOKENS: usize = 1024;

/// The numbers of a context: the part `state`.
#[derive(Serialize, Deserialize)]
struct State {
    n_cached: u32,
    n_committed: u32,
    n_final: u32,
    n_reserved: u32,
    path: u64,
}

/// A context as bytes.
pub(super) struct Encoded {
    pub(super) state: Vec<u8>,
    pub(super) runs: Vec<Run>,
    pub(super) tail: Vec<u8>,
    /// All its tokens.
    pub(super) n_tokens: u32,
}

/// A run, and the key by which it is found.
pub(super) struct Run {
    pub(super) key: Digest,
    pub(super) bytes: Vec<u8>,
}

/// The key of a run behind another, or behind nothing: then that of whose it is.
pub(super) fn run_key(before: &Digest, bytes: &[u8]) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update(before);
    hasher.update(bytes);
    hasher.finalize().into()
}

/// A context as bytes, with the keys of its runs behind `first`.
///
/// # Errors
/// Why it cannot be written.
pub(super) fn encode(image: &ContextImage, first: &Digest) -> Result<Encoded, String> {
    let n_whole = image.tokens.len() / RUN_TOKENS;
    let (mut runs, mut key): (Vec<Run>, Digest) = (Vec::with_capacity(n_whole), *first);
    for run_idx in 0..n_whole {
        let bytes = stretch(image, run_idx * RUN_TOKENS, (run_idx + 1) * RUN_TOKENS);
        key = run_key(&key, &bytes);
        runs.push(Run { key, bytes });
    }
    let mut tail = stretch(image, n_whole * RUN_TOKENS, image.tokens.len());
    put_words(&mut tail, &image.pending);
    put_words(&mut tail, &image.buffer);
    let state = State {
        n_cached: image.n_cached,
        n_committed: image.n_committed,
        n_final: image.n_final,
        n_reserved: image.n_reserved,
        path: image.path,
    };
    Ok(Encoded {
        state: serde_json::to_vec(&state).map_err(|error| error.to_string())?,
        runs,
        tail,
        n_tokens: u32::try_from(image.length()).map_err(|error| error.to_string())?,
    })
}

/// Where runs lie in a file of that number which holds them, one behind the other.
pub(super) fn places(runs: &[Run], file: u64) -> Vec<RunPlace> {
    let mut offset = 0;
    let place = |run: &Run| {
        let n_bytes = run.bytes.len() as u64;
        let place = RunPlace {
            file,
            offset,
            n_bytes,
            key: hex(&run.key),
        };
        offset += n_bytes;
        place
    };
    runs.iter().map(place).collect()
}

fn stretch(image: &ContextImage, start: usize, end: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + 4 * (end - start));
    put_words(&mut bytes, &image.tokens[start..end]);
    let place = |slot: usize| {
        image
            .special
            .partition_point(|it| (it.slot as usize) < slot)
    };
    let special = &image.special[place(start)..place(end)];
    put(&mut bytes, special.len() as u32);
    for it in special {
        put(&mut bytes, it.slot);
        put(&mut bytes, it.position);
        bytes.extend(it.adapter.id.to_le_bytes());
        put(&mut bytes, it.adapter.version);
        put(&mut bytes, u32::from(it.adapter.zo_seed.is_some()));
        bytes.extend(it.adapter.zo_seed.unwrap_or(0).to_le_bytes());
        bytes.extend(it.media.to_le_bytes());
        put_words(&mut bytes, &it.mask);
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, word: u32) {
    bytes.extend(word.to_le_bytes());
}

fn put_words(bytes: &mut Vec<u8>, words: &[u32]) {
    put(bytes, words.len() as u32);
    for word in words {
        put(bytes, *word);
    }
}

/// A context that is read from bytes, run by run.
#[derive(Default)]
pub(super) struct Decoding {
    image: ContextImage,
}

impl Decoding {
    /// Adds a run.
    ///
    /// # Errors
    /// Why it is none.
    pub(super) fn run(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut reader = Reader(bytes);
        let n = self.stretch(&mut reader)?;
        match n == RUN_TOKENS && reader.is_empty() {
            true => Ok(()),
            false => Err(damaged("a run of its tokens")),
        }
    }

    /// Adds the tail and the numbers, behind all runs.
    ///
    /// # Errors
    /// Why they are none.
    pub(super) fn end(mut self, tail: &[u8], state: &[u8]) -> Result<ContextImage, String> {
        let mut reader = Reader(tail);
        let n = self.stretch(&mut reader)?;
        let (pending, buffer) = (reader.words()?, reader.words()?);
        if n >= RUN_TOKENS || !reader.is_empty() {
            return Err(damaged("its tail"));
        }
        let state: State =
            serde_json::from_slice(state).map_err(|_| damaged("its part \"state\""))?;
        Ok(ContextImage {
            pending,
            buffer,
            n_cached: state.n_cached,
            n_committed: state.n_committed,
            n_final: state.n_final,
            n_reserved: state.n_reserved,
            path: state.path,
            ..self.image
        })
    }

    /// Reads tokens, and what is special of them. Returns how many.
    fn stretch(&mut self, reader: &mut Reader<'_>) -> Result<usize, String> {
        let tokens = reader.words()?;
        self.image.tokens.extend_from_slice(&tokens);
        for _ in 0..reader.u32()? {
            let (slot, position) = (reader.u32()?, reader.u32()?);
            let (id, version) = (reader.u64()?, reader.u32()?);
            let has_zo_seed = reader.u32()? != 0;
            let (zo_seed, media) = (reader.u64()?, reader.u64()?);
            let mask: Arc<[u32]> = reader.words()?.into();
            self.image.special.push(SpecialSlot {
                slot,
                position,
                mask,
                adapter: Adapter {
                    id,
                    version,
                    zo_seed: has_zo_seed.then_some(zo_seed),
                },
                media,
            });
        }
        Ok(tokens.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn special(slot: u32) -> impl Strategy<Value = SpecialSlot> {
        let mask = prop::collection::vec(0u32..9, 0..4);
        let zo_seed = proptest::option::of(any::<u64>());
        (
            any::<u32>(),
            any::<u64>(),
            any::<u32>(),
            zo_seed,
            any::<u64>(),
            mask,
        )
            .prop_map(
                move |(position, id, version, zo_seed, media, mask)| SpecialSlot {
                    slot,
                    position,
                    mask: mask.into(),
                    adapter: Adapter {
                        id,
                        version,
                        zo_seed,
                    },
                    media,
                },
            )
    }

    fn image() -> impl Strategy<Value = ContextImage> {
        let tokens = prop_oneof![0usize..40, 1000usize..1050, 2040usize..2060, Just(5000)];
        let slots = prop::collection::btree_set(0u32..2100, 0..6);
        let words = || prop::collection::vec(any::<u32>(), 0..9);
        let numbers = (any::<u32>(), any::<u32>(), any::<u64>());
        (tokens, slots, words(), words(), numbers).prop_flat_map(
            |(n, slots, pending, buffer, (n_cached, n_committed, path))| {
                let slots = slots.into_iter().filter(move |&slot| (slot as usize) < n);
                let special: Vec<_> = slots.map(special).collect();
                special.prop_map(move |special| ContextImage {
                    tokens: (0..n as u32).map(|slot| slot.wrapping_mul(77)).collect(),
                    special,
                    pending: pending.clone(),
                    buffer: buffer.clone(),
                    n_cached,
                    n_committed,
                    n_final: n as u32,
                    n_reserved: 16,
                    path,
                })
            },
        )
    }

    fn decoded(encoded: &Encoded) -> Result<ContextImage, String> {
        let mut decoding = Decoding::default();
        for run in &encoded.runs {
            decoding.run(&run.bytes)?;
        }
        decoding.end(&encoded.tail, &encoded.state)
    }

    proptest! {
        #[test]
        fn a_context_is_read_as_it_was_written(image in image()) {
            let encoded = encode(&image, &[7; 32]).unwrap();
            prop_assert_eq!(encoded.n_tokens as usize, image.length());
            prop_assert_eq!(decoded(&encoded).unwrap(), image);
        }

        #[test]
        fn bytes_of_any_kind_are_a_context_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut decoding = Decoding::default();
            drop(decoding.run(&bytes));
            drop(decoding.end(&bytes, b"{}"));
        }
    }

    #[test]
    fn runs_of_an_equal_beginning_have_equal_keys_and_others_have_not() {
        let image = |n: u32, last: u32| {
            let mut tokens: Vec<u32> = (0..n).collect();
            tokens.push(last);
            ContextImage {
                tokens,
                ..ContextImage::default()
            }
        };
        let keys = |image: &ContextImage, owner: u8| -> Vec<Digest> {
            let encoded = encode(image, &[owner; 32]).unwrap();
            encoded.runs.iter().map(|run| run.key).collect()
        };
        let long = keys(&image(3000, 1), 1);
        assert_eq!(long.len(), 2);
        assert_eq!(keys(&image(1500, 2), 1), long[..1]);
        assert_eq!(keys(&image(2047, 1), 1)[0], long[0]);
        assert_ne!(keys(&image(2047, 1), 1)[1], long[1]);
        assert_ne!(keys(&image(3000, 1), 2)[0], long[0]);
    }
}
