//! Snapshots as bytes, without a folder: those that share nothing with others.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};

use pie_core::{ContextImage, ErrorCode};

use super::binding::hex;
use super::content::{Decoding, encode, places, run_key};
use super::format::{Digest, Header, Index, Part, RunPlace, assemble, damaged};
use super::unusable;
use crate::Error;

/// In place of the key of a user and a model.
const FIRST_KEY: Digest = [0; 32];
/// In place of the number of the file.
const NUMBER: u64 = 1;

/// The file of a snapshot of nobody's that shares nothing with others: what a context says, and where its conversation
/// stands.
///
/// # Errors
/// `internal` where it has more tokens than a context can have.
pub fn snapshot_bytes(image: &ContextImage, turns: &[u8]) -> Result<Vec<u8>, Error> {
    let encoded = encode(image, &FIRST_KEY).map_err(Error::internal)?;
    let index = Index {
        owner: String::new(),
        name: String::new(),
        model: String::new(),
        model_digest: String::new(),
        tokenizer_digest: String::new(),
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        saved_unix_s: 0,
        n_tokens: encoded.n_tokens,
        adapters: BTreeMap::new(),
        runs: places(&encoded.runs, NUMBER),
    };
    let index = serde_json::to_vec(&index).map_err(Error::internal)?;
    let own = encoded.runs.iter().map(|run| &run.bytes[..]);
    let own = own.collect::<Vec<_>>().concat();
    Ok(assemble(&[
        &index,
        &encoded.state,
        turns,
        &encoded.tail,
        &own,
    ]))
}

/// What such a file says: the context, and where its conversation stands.
///
/// # Errors
/// `snapshot-unusable`; `disk-error` where there is no room to look at it.
pub fn read_snapshot(bytes: &[u8]) -> Result<(ContextImage, Vec<u8>), Error> {
    let failed = |error: io::Error| Error::new(ErrorCode::DiskError, error.to_string());
    let mut file = tempfile::tempfile().map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    let read = read_file(&file).map_err(failed)?;
    read.map_err(|why| unusable("a temporary one", &why))
}

fn read_file(file: &File) -> io::Result<Result<(ContextImage, Vec<u8>), String>> {
    let header = match Header::read(file)? {
        Ok(header) => header,
        Err(why) => return Ok(Err(why)),
    };
    let mut parts = Vec::with_capacity(Part::ALL.len());
    for part in Part::ALL {
        match header.read_part(file, part)? {
            Ok(bytes) => parts.push(bytes),
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(decode(&parts))
}

fn decode(parts: &[Vec<u8>]) -> Result<(ContextImage, Vec<u8>), String> {
    let [index, state, turns, tail, runs] = parts else {
        return Err(damaged("its number of parts"));
    };
    let index: Index = serde_json::from_slice(index).map_err(|_| damaged("its part \"index\""))?;
    let (mut decoding, mut key) = (Decoding::default(), FIRST_KEY);
    for place in &index.runs {
        let run = run_at(runs, place).ok_or_else(|| damaged("the place of a run"))?;
        key = run_key(&key, run);
        if hex(&key) != place.key {
            return Err(damaged("a run of its tokens"));
        }
        decoding.run(run)?;
    }
    Ok((decoding.end(tail, state)?, turns.clone()))
}

fn run_at<'a>(runs: &'a [u8], place: &RunPlace) -> Option<&'a [u8]> {
    let start = usize::try_from(place.offset).ok()?;
    let n_bytes = usize::try_from(place.n_bytes).ok()?;
    runs.get(start..start.checked_add(n_bytes)?)
}
