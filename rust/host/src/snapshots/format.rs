//! The file of a snapshot: a header that names its parts, each with its checksum, and the parts, one behind the other.
//!
//! ```text
//! 8 bytes     "pie-snap"
//! 4 bytes     the version of the format
//! 4 bytes     the number of parts
//! 48 bytes    of each part: where it begins (8), its length (8), its SHA-256 (32)
//! 32 bytes    SHA-256 of all that stands before
//! ```
//!
//! Numbers are little-endian. Nothing stands between the parts or behind the last. So what is cut, longer, or changed
//! in one bit is told from what was written, and no length is believed that the file does not have.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256.
pub(super) type Digest = [u8; DIGEST_BYTES];

const MAGIC: [u8; 8] = *b"pie-snap";
/// The version that this engine writes, and the only one that it reads.
pub(super) const VERSION: u32 = 1;
pub(super) const DIGEST_BYTES: usize = 32;
const PART_BYTES: usize = 8 + 8 + DIGEST_BYTES;
const CHECKED_BYTES: usize = 16 + N_PARTS * PART_BYTES;
pub(super) const HEADER_BYTES: usize = CHECKED_BYTES + DIGEST_BYTES;
const N_PARTS: usize = 5;

/// The longest part of each kind, in bytes: what is longer is no part that this engine wrote.
const MOST_BYTES: [u64; N_PARTS] = [16 << 20, 1 << 20, 1 << 30, 1 << 34, 1 << 38];

/// The parts, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Whose it is, and what it holds: an [`Index`].
    Index,
    /// The numbers of the context: JSON.
    State,
    /// Where its conversation stands, as `pie-text` writes it: JSON.
    Turns,
    /// The tokens behind the whole runs.
    Tail,
    /// The runs that no other file holds.
    Runs,
}

impl Part {
    pub(super) const ALL: [Self; N_PARTS] = [
        Self::Index,
        Self::State,
        Self::Turns,
        Self::Tail,
        Self::Runs,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::State => "state",
            Self::Turns => "turns",
            Self::Tail => "tail",
            Self::Runs => "runs",
        }
    }
}

/// Where a part of a file lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) n_bytes: u64,
    pub(super) digest: Digest,
}

/// Where the parts of a file lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header([Extent; N_PARTS]);

impl Header {
    pub(super) const fn of(&self, part: Part) -> &Extent {
        &self.0[part as usize]
    }

    /// The header of parts that follow it.
    fn for_parts(parts: &[&[u8]; N_PARTS]) -> Self {
        let mut offset = HEADER_BYTES as u64;
        Self(parts.map(|bytes| {
            let extent = Extent {
                offset,
                n_bytes: bytes.len() as u64,
                digest: Sha256::digest(bytes).into(),
            };
            offset += extent.n_bytes;
            extent
        }))
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((N_PARTS as u32).to_le_bytes());
        for extent in &self.0 {
            bytes.extend(extent.offset.to_le_bytes());
            bytes.extend(extent.n_bytes.to_le_bytes());
            bytes.extend(extent.digest);
        }
        let digest: Digest = Sha256::digest(&bytes).into();
        bytes.extend(digest);
        bytes
    }

    /// The header of a file of `file_bytes`.
    fn parse(bytes: &[u8; HEADER_BYTES], file_bytes: u64) -> Result<Self, String> {
        let mut reader = Reader(bytes);
        let magic: [u8; MAGIC.len()] = reader.chunk()?;
        if magic != MAGIC {
            return Err("it is not the file of a snapshot; delete the snapshot".to_owned());
        }
        let (version, n_parts) = (reader.u32()?, reader.u32()?);
        if Sha256::digest(&bytes[..CHECKED_BYTES])[..] != bytes[CHECKED_BYTES..] {
            // Another version may have a header of another length.
            return Err(match version {
                VERSION => damaged("its header"),
                other => other_version(other),
            });
        }
        if version != VERSION {
            return Err(other_version(version));
        }
        if n_parts as usize != N_PARTS {
            return Err(damaged("its number of parts"));
        }
        let mut extents = Vec::with_capacity(N_PARTS);
        let mut end = HEADER_BYTES as u64;
        for (part, most) in Part::ALL.into_iter().zip(MOST_BYTES) {
            let (offset, n_bytes) = (reader.u64()?, reader.u64()?);
            let digest: Digest = reader.chunk()?;
            if offset != end || n_bytes > most {
                return Err(damaged(&format!("the place of its part {:?}", part.name())));
            }
            end += n_bytes;
            extents.push(Extent {
                offset,
                n_bytes,
                digest,
            });
        }
        if end != file_bytes {
            return Err(format!(
                "it has {file_bytes} bytes, and its parts take {end}: it was cut or added to; delete the snapshot, and save \
                 it again"
            ));
        }
        let extents: Result<[Extent; N_PARTS], _> = extents.try_into();
        extents.map(Self).map_err(|_| damaged("its header"))
    }

    /// Reads the header of a file.
    ///
    /// # Errors
    /// Why it cannot be used; the error of the system where it cannot be read.
    pub(super) fn read(file: &File) -> io::Result<Result<Self, String>> {
        let file_bytes = file.metadata()?.len();
        if file_bytes < HEADER_BYTES as u64 {
            return Ok(Err(format!(
                "it has {file_bytes} bytes, less than its header: it was cut; delete the snapshot, and save it again"
            )));
        }
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(Self::parse(&bytes, file_bytes))
    }

    /// Reads a part of a file, which has these bytes: its length was compared with that of the file.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(super) fn read_part(&self, file: &File, part: Part) -> io::Result<Result<Vec<u8>, String>> {
        let extent = self.of(part);
        let bytes = read_at(file, extent.offset, extent.n_bytes)?;
        let is_whole = Sha256::digest(&bytes)[..] == extent.digest;
        Ok(match is_whole {
            true => Ok(bytes),
            false => Err(damaged(&format!("its part {:?}", part.name()))),
        })
    }
}

/// Bytes of a file that are known to be there.
pub(super) fn read_at(file: &File, offset: u64, n_bytes: u64) -> io::Result<Vec<u8>> {
    let n_bytes = usize::try_from(n_bytes).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(n_bytes).map_err(io::Error::other)?;
    bytes.resize(n_bytes, 0);
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// The bytes of a file, its parts in their order.
pub(super) fn assemble(parts: &[&[u8]; N_PARTS]) -> Vec<u8> {
    let header = Header::for_parts(parts).to_bytes();
    let n_bytes: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::with_capacity(header.len() + n_bytes);
    bytes.extend(header);
    for part in parts {
        bytes.extend_from_slice(part);
    }
    bytes
}

/// What stands in the part of that name: whose the snapshot is, what it was made with, and where its runs lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index {
    /// The user who saved it.
    pub(super) owner: String,
    pub(super) name: String,
    /// The name of the model in the engine that saved it.
    pub(super) model: String,
    /// Digest of its weights and its configuration, as 64 digits.
    pub(super) model_digest: String,
    /// Digest of its tokenizer and its chat template.
    pub(super) tokenizer_digest: String,
    /// The version of the engine that wrote it.
    pub(super) engine: String,
    /// Seconds since 1970 when it was saved.
    pub(super) saved_unix_s: u64,
    /// All its tokens, those included that were not computed.
    pub(super) n_tokens: u32,
    /// The names that adapters of its tokens had when it was saved, by what tokens say of them. Files without any, and
    /// those of older engines, do not have the field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) adapters: BTreeMap<String, String>,
    /// Runs of tokens that lie before its tail, in their order.
    pub(super) runs: Vec<RunPlace>,
}

/// Where a run lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunPlace {
    /// The number of the file that holds it.
    pub(super) file: u64,
    /// Where it begins within the part `runs` of that file.
    pub(super) offset: u64,
    pub(super) n_bytes: u64,
    /// Digest of the key of the run before and of its bytes, as 64 digits: so a run is found by its content and all
    /// before it, and by whose it is and of which model.
    pub(super) key: String,
}

/// What a reason says of something that is not as it was written.
pub(super) fn damaged(what: &str) -> String {
    format!("{what} is damaged; delete the snapshot, and save it again")
}

fn other_version(version: u32) -> String {
    format!(
        "it is of version {version} of the format, and this engine reads version {VERSION}; open it with the engine that \
         saved it, or delete the snapshot"
    )
}

/// Reads what stands in bytes, in order.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (chunk, left) = self.0.split_first_chunk::<N>().ok_or_else(too_short)?;
        self.0 = left;
        Ok(*chunk)
    }

    pub(super) fn u32(&mut self) -> Result<u32, String> {
        self.chunk().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, String> {
        self.chunk().map(u64::from_le_bytes)
    }

    /// As many words as the word before them says. No more is allocated than the bytes hold.
    pub(super) fn words(&mut self) -> Result<Vec<u32>, String> {
        let n_bytes = (self.u32()? as usize).saturating_mul(4);
        let (words, left) = self.0.split_at_checked(n_bytes).ok_or_else(too_short)?;
        self.0 = left;
        let (words, _) = words.as_chunks::<4>();
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn too_short() -> String {
    damaged("the length of what it holds")
}
