//! Built programs: a component with two custom sections at its end, so that one file holds all that a launch needs.
//!
//! - `pie:program`: a JSON object, [`Header`]: the format, the language, the entry, the digest of the runtime, the text
//!   of the manifest.
//! - `pie:files`: the files of a program in source form, as WebAssembly writes vectors: their number, then path and
//!   content of each, sorted by path.
//!
//! The component itself is one of three: empty, where the engine brings the language runtime; the runtime, in the
//! standalone form; or the program, where it was compiled. Without the sections its bytes are what they were before,
//! and so is its digest: programs that carry the same runtime share its compiled code. Everything read here is
//! untrusted.

use std::collections::BTreeMap;
use std::ops::Range;

use pie_core::ErrorCode;
use serde::{Deserialize, Serialize};
use wasm_encoder::{ComponentSection, CustomSection, Encode};
use wasmparser::{BinaryReader, BinaryReaderError};

use super::language::Language;
use super::source::{MAX_FILES, MAX_PATH_BYTES};
use crate::Error;

/// The names of the sections.
const PROGRAM_SECTION: &str = "pie:program";
const FILES_SECTION: &str = "pie:files";
/// The version of what stands in them.
const FORMAT: u32 = 1;
/// What a component begins with. An empty component is nothing else.
pub(crate) const PREAMBLE: &[u8; 8] = b"\0asm\x0d\0\x01\0";
/// The longest header; the manifest in it is bounded by itself.
const MAX_HEADER_BYTES: usize = 256 << 10;
/// The most bytes of files that are packed, whatever the limits of the engine that will run them.
const MAX_FILES_BYTES: usize = 1 << 30;
/// The language of a program that was compiled.
const COMPILED: &str = "component";
/// What the digests of runtimes begin with.
const DIGEST_PREFIX: &str = "sha256:";

/// A built program in its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// The language of its sources; none: it was compiled, and `component` is the program.
    pub language: Option<Language>,
    /// The path of the file that holds `main`; empty for a compiled program.
    pub entry: String,
    /// Content by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// SHA-256 of the runtime that it was built for; none: any will do.
    pub runtime: Option<[u8; 32]>,
    /// The text of its `Pie.toml`.
    pub manifest: Option<String>,
    /// The component without the sections: a runtime or a program; none in the small form.
    pub component: Option<Vec<u8>>,
}

/// The section `pie:program`.
#[derive(Deserialize, Serialize)]
struct Header {
    format: u32,
    language: String,
    entry: Option<String>,
    runtime: Option<String>,
    manifest: Option<String>,
}

/// Only the version, which says how to read the rest.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

impl Packed {
    /// The bytes of the built program: the same parts give the same bytes.
    ///
    /// # Errors
    /// `invalid-program` for a compiled program without its component, or with files; `limit-program` for too many
    /// files, or a path or a header that is too long.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        if self.language.is_none() && (self.component.is_none() || !self.files.is_empty()) {
            return Err(invalid(
                "a compiled program is packed from its component, without files",
            ));
        }
        let n_bytes: usize = self.files.values().map(Vec::len).sum();
        if n_bytes > MAX_FILES_BYTES || self.files.len() > MAX_FILES {
            return Err(limit(format!(
                "the program has {} files of {n_bytes} bytes, more than {MAX_FILES} files or {MAX_FILES_BYTES} bytes; leave out what it does not need",
                self.files.len()
            )));
        }
        self.files.keys().try_for_each(|path| check_path(path))?;
        let header = Header {
            format: FORMAT,
            language: self.language.map_or(COMPILED, Language::name).to_owned(),
            entry: self.language.map(|_| self.entry.clone()),
            runtime: self.runtime.as_ref().map(runtime_name),
            manifest: self.manifest.clone(),
        };
        let header = serde_json::to_vec(&header).map_err(Error::internal)?;
        if header.len() > MAX_HEADER_BYTES {
            return Err(header_too_long(header.len()));
        }
        let mut bytes = match &self.component {
            Some(component) => without_sections(component)?,
            None => PREAMBLE.to_vec(),
        };
        append(&mut bytes, PROGRAM_SECTION, &header);
        if self.language.is_some() {
            let mut archive = Vec::new();
            self.files.len().encode(&mut archive);
            for (path, content) in &self.files {
                path.as_str().encode(&mut archive);
                content.as_slice().encode(&mut archive);
            }
            append(&mut bytes, FILES_SECTION, &archive);
        }
        Ok(bytes)
    }

    /// The parts of a built program; none where the bytes are an ordinary component, or cannot be read as sections at
    /// all.
    ///
    /// # Errors
    /// `invalid-program` for one that is cut off, damaged, of another format or at odds with itself; `limit-program`
    /// for more files, or more bytes in them (`max_files_bytes`), than a program may have.
    pub fn read(bytes: &[u8], max_files_bytes: usize) -> Result<Option<Self>, Error> {
        let sections = Sections::find(bytes);
        let Some(program) = sections.program.clone() else {
            return Ok(None);
        };
        if let Some(fault) = &sections.fault {
            return Err(damaged(fault));
        }
        let header = read_header(&bytes[program])?;
        let component = sections.without(bytes);
        let component = (component.len() > PREAMBLE.len()).then_some(component);
        let language = match header.language.as_str() {
            COMPILED => None,
            name => Some(Language::from_name(name).map_err(|error| invalid(error.message))?),
        };
        let files = match (language, sections.files) {
            (Some(_), Some(range)) => read_files(&bytes[range], max_files_bytes)?,
            (Some(_), None) => {
                return Err(invalid(
                    "the built program holds no files: it is cut off or damaged; build it again",
                ));
            }
            (None, files) if files.is_some() || component.is_none() => {
                return Err(invalid(
                    "the built program says that it was compiled, but it has no code or has sources; build it again",
                ));
            }
            (None, _) => BTreeMap::new(),
        };
        let runtime = header.runtime.as_deref().map(parse_digest).transpose()?;
        Ok(Some(Self {
            language,
            entry: header.entry.unwrap_or_default(),
            files,
            runtime,
            manifest: header.manifest,
            component,
        }))
    }
}

/// Where the sections of a built program stand in its bytes.
#[derive(Default)]
struct Sections {
    /// The content of `pie:program`.
    program: Option<Range<usize>>,
    /// The content of `pie:files`.
    files: Option<Range<usize>>,
    /// Both with their headers, in order.
    whole: Vec<Range<usize>>,
    /// Why what follows could not be read.
    fault: Option<String>,
}

impl Sections {
    /// Walks over the sections at the top, without looking into them.
    fn find(bytes: &[u8]) -> Self {
        let mut found = Self::default();
        let mut reader = BinaryReader::new(bytes, 0);
        if reader.read_bytes(PREAMBLE.len()).ok() != Some(PREAMBLE) {
            return found;
        }
        while !reader.eof() {
            match found.step(&mut reader) {
                Ok(true) => (),
                Ok(false) => {
                    found.fault = Some("one of its sections stands there twice".to_owned())
                }
                Err(error) => found.fault = Some(error.to_string()),
            }
            if found.fault.is_some() {
                break;
            }
        }
        found
    }

    /// Reads one section; false when it was there before.
    fn step(&mut self, reader: &mut BinaryReader<'_>) -> Result<bool, BinaryReaderError> {
        let start = reader.original_position();
        let id = reader.read_u8()?;
        let n_bytes = reader.read_var_u32()?;
        let end = reader.original_position() + n_bytes as usize;
        let content = reader.read_bytes(n_bytes as usize)?;
        if id != 0 {
            return Ok(true);
        }
        let mut custom = BinaryReader::new(content, end - content.len());
        let place = match custom.read_string()? {
            PROGRAM_SECTION => &mut self.program,
            FILES_SECTION => &mut self.files,
            _ => return Ok(true),
        };
        let is_first = place.replace(custom.original_position()..end).is_none();
        self.whole.push(start..end);
        Ok(is_first)
    }

    /// The bytes without the sections.
    fn without(&self, bytes: &[u8]) -> Vec<u8> {
        let mut rest = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for range in &self.whole {
            rest.extend_from_slice(&bytes[at..range.start]);
            at = range.end;
        }
        rest.extend_from_slice(&bytes[at..]);
        rest
    }
}

/// A component as it was before it was packed.
fn without_sections(component: &[u8]) -> Result<Vec<u8>, Error> {
    let sections = Sections::find(component);
    match sections.fault {
        Some(fault) => Err(damaged(&fault)),
        None if component.starts_with(PREAMBLE) => Ok(sections.without(component)),
        None => Err(invalid(
            "what is to be packed is not a WebAssembly component",
        )),
    }
}

fn append(bytes: &mut Vec<u8>, name: &str, data: &[u8]) {
    let section = CustomSection {
        name: name.into(),
        data: data.into(),
    };
    section.append_to_component(bytes);
}

fn read_header(json: &[u8]) -> Result<Header, Error> {
    if json.len() > MAX_HEADER_BYTES {
        return Err(header_too_long(json.len()));
    }
    let unreadable = |error: serde_json::Error| damaged(&format!("{PROGRAM_SECTION}: {error}"));
    let Version { format } = serde_json::from_slice(json).map_err(unreadable)?;
    if format != FORMAT {
        return Err(invalid(format!(
            "the program was built in format {format}, and this engine reads format {FORMAT}; build it again with this engine"
        )));
    }
    serde_json::from_slice(json).map_err(unreadable)
}

fn read_files(archive: &[u8], max_bytes: usize) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let fault = |error: BinaryReaderError| damaged(&format!("{FILES_SECTION}: {error}"));
    let mut reader = BinaryReader::new(archive, 0);
    let n_files = reader.read_var_u32().map_err(fault)? as usize;
    if n_files > MAX_FILES {
        return Err(limit(format!(
            "the program has {n_files} files, more than {MAX_FILES}; bundle them"
        )));
    }
    let mut files = BTreeMap::new();
    let mut n_bytes = 0;
    for _ in 0..n_files {
        let path = reader.read_string().map_err(fault)?;
        check_path(path)?;
        let length = reader.read_var_u32().map_err(fault)? as usize;
        let content = reader.read_bytes(length).map_err(fault)?;
        n_bytes += content.len();
        if n_bytes > max_bytes {
            return Err(limit(format!(
                "the files of the program have more than limits.source_bytes = {max_bytes} bytes; leave out what it does not need"
            )));
        }
        if files.insert(path.to_owned(), content.to_vec()).is_some() {
            return Err(damaged(&format!(
                "{FILES_SECTION}: the file {path:?} stands there twice"
            )));
        }
    }
    if reader.eof() {
        return Ok(files);
    }
    Err(damaged(&format!(
        "{FILES_SECTION}: {} bytes follow the last file",
        reader.bytes_remaining()
    )))
}

fn check_path(path: &str) -> Result<(), Error> {
    if path.len() <= MAX_PATH_BYTES {
        return Ok(());
    }
    Err(limit(format!(
        "a path of the program has {} bytes, more than {MAX_PATH_BYTES}; shorten it",
        path.len()
    )))
}

/// The digest that `sha256:` and 64 digits stand for.
///
/// # Errors
/// `invalid-program` for another text.
pub fn parse_digest(text: &str) -> Result<[u8; 32], Error> {
    let parsed = || {
        let digits = text.strip_prefix(DIGEST_PREFIX)?.as_bytes();
        let mut digest = [0; 32];
        if digits.len() != 2 * digest.len() {
            return None;
        }
        for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).ok()?;
            let is_hex = pair.bytes().all(|digit| digit.is_ascii_hexdigit());
            *byte = is_hex.then(|| u8::from_str_radix(pair, 16).ok())??;
        }
        Some(digest)
    };
    parsed().ok_or_else(|| {
        let shown: String = text.chars().take(80).collect();
        invalid(format!(
            "the runtime is named {shown:?}, which is not a digest; expected {DIGEST_PREFIX} and 64 hexadecimal digits"
        ))
    })
}

/// The name of the runtime of a digest: `sha256:` and 64 digits.
pub fn runtime_name(digest: &[u8; 32]) -> String {
    format!("{DIGEST_PREFIX}{}", hex(digest))
}

/// The digits of a digest.
pub(crate) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn damaged(fault: &str) -> Error {
    invalid(format!(
        "the built program is cut off or damaged: {fault}; build it again"
    ))
}

fn header_too_long(n_bytes: usize) -> Error {
    limit(format!(
        "the header of the built program has {n_bytes} bytes, more than {MAX_HEADER_BYTES}; shorten its manifest"
    ))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidProgram, message)
}

fn limit(message: String) -> Error {
    Error::new(ErrorCode::LimitProgram, message)
}

#[cfg(test)]
#[path = "packed_tests.rs"]
mod tests;
