//! What a snapshot is bound to: the model and the tokenizer that say the same with its tokens.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::folder::write_durably;
use super::format::Digest;
use crate::Error;
use crate::errors::stopped;

/// The file beside snapshots with the digests that were computed last.
const KNOWN: &str = ".binding";
/// The longest such file.
const MAX_KNOWN_BYTES: u64 = 1 << 16;
const CHUNK_BYTES: usize = 1 << 20;
/// Files of a checkpoint that say how text becomes tokens, and conversations text.
const TEXT_FILES: [&str; 6] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
];
/// The back end that computes nothing from weights: what it says depends on the name of the model.
const DUMMY: &str = "dummy";

/// What a model is, for its snapshots.
#[derive(Clone, Debug)]
pub(crate) struct ModelIdentity {
    /// Its name in the engine.
    pub(crate) name: String,
    /// The back end of its driver.
    pub(crate) backend: String,
    /// The folder of its checkpoint.
    pub(crate) folder: PathBuf,
}

/// Digests of a model and of its tokenizer, as 64 digits each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Binding {
    pub(super) model: String,
    pub(super) tokenizer: String,
}

/// The digests, and what the files were like of which they were computed.
#[derive(Serialize, Deserialize)]
struct Known {
    files: String,
    binding: Binding,
}

impl Binding {
    /// That of a model. The files of its weights are read, unless they are as they were when that was done last: then
    /// the digests stand in `beside`.
    ///
    /// # Errors
    /// `disk-error` and its like where a file of the checkpoint cannot be read; `engine-stopped` where `is_closed`
    /// becomes true.
    pub(super) fn of(
        model: &ModelIdentity,
        beside: impl Fn(&str) -> PathBuf,
        is_closed: &AtomicBool,
    ) -> Result<Self, Error> {
        let failed = |error: &io::Error| {
            super::disk_error("the checkpoint cannot be read", &model.folder, error)
        };
        let weights = weights_of(model).map_err(|error| failed(&error))?;
        let files = looks(model, &weights).map_err(|error| failed(&error))?;
        let known = beside(KNOWN);
        if let Some(known) = read_known(&known).filter(|known| known.files == files) {
            return Ok(known.binding);
        }
        let hashing = Hashing {
            folder: &model.folder,
            is_closed,
        };
        let binding = match Self::compute(model, &weights, &hashing) {
            Err(_) if is_closed.load(Ordering::Relaxed) => return Err(stopped()),
            computed => computed.map_err(|error| failed(&error))?,
        };
        let computed = Known { files, binding };
        // Where it cannot be written it is computed again the next time.
        if let Ok(bytes) = serde_json::to_vec(&computed) {
            drop(write_durably(&known, &bytes));
        }
        Ok(computed.binding)
    }

    fn compute(
        model: &ModelIdentity,
        weights: &[String],
        hashing: &Hashing<'_>,
    ) -> io::Result<Self> {
        let mut of_model = Sha256::new();
        of_model.update(b"pie-model-1");
        if model.backend == DUMMY {
            of_model.update(&model.name);
        } else {
            for name in weights {
                hashing.add_file(&mut of_model, name)?;
            }
            hashing.add_file(&mut of_model, "config.json")?;
        }
        let mut of_tokenizer = Sha256::new();
        of_tokenizer.update(b"pie-tokenizer-1");
        for name in TEXT_FILES {
            hashing.add_file(&mut of_tokenizer, name)?;
        }
        Ok(Self {
            model: hex(&of_model.finalize()),
            tokenizer: hex(&of_tokenizer.finalize()),
        })
    }

    /// Why a snapshot with these digests is none of this model; none where it is one.
    pub(super) fn refusal(&self, model: &str, tokenizer: &str) -> Option<String> {
        let remedy = "serve the model that saved it, or delete the snapshot and save it again";
        if self.model != model {
            return Some(format!(
                "it was saved with other weights or another configuration (digest {}, and those of this model have {}); \
                 {remedy}",
                short(model),
                short(&self.model)
            ));
        }
        if self.tokenizer != tokenizer {
            return Some(format!(
                "it was saved with another tokenizer or chat template (digest {}, and that of this model is {}); {remedy}",
                short(tokenizer),
                short(&self.tokenizer)
            ));
        }
        None
    }

    /// What the keys of the runs of a user begin with.
    pub(super) fn first_key(&self, owner: &str) -> Digest {
        let mut hasher = Sha256::new();
        for part in ["pie-run-1", &self.model, &self.tokenizer, owner] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().into()
    }
}

/// The files of the weights, sorted.
fn weights_of(model: &ModelIdentity) -> io::Result<Vec<String>> {
    let mut weights = Vec::new();
    if model.backend == DUMMY {
        return Ok(weights);
    }
    for entry in fs::read_dir(&model.folder)? {
        if let Ok(name) = entry?.file_name().into_string()
            && name.ends_with(".safetensors")
        {
            weights.push(name);
        }
    }
    weights.sort();
    Ok(weights)
}

/// What the files look like from outside: who changed one changed this.
fn looks(model: &ModelIdentity, weights: &[String]) -> io::Result<String> {
    let mut hasher = Sha256::new();
    for part in [&model.backend, &model.name] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let others = TEXT_FILES.into_iter().chain(["config.json"]);
    for name in weights.iter().map(String::as_str).chain(others) {
        let path = model.folder.join(name);
        let status = match fs::metadata(&path) {
            Ok(status) => status,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        for number in [status.dev(), status.ino(), status.len()] {
            hasher.update(number.to_le_bytes());
        }
        for number in [
            status.mtime(),
            status.mtime_nsec(),
            status.ctime(),
            status.ctime_nsec(),
        ] {
            hasher.update(number.to_le_bytes());
        }
    }
    Ok(hex(&hasher.finalize()))
}

/// The files of a checkpoint that are hashed, as long as the engine runs.
struct Hashing<'a> {
    folder: &'a Path,
    is_closed: &'a AtomicBool,
}

impl Hashing<'_> {
    /// Adds the name, the length and the bytes of a file, where there is one.
    fn add_file(&self, hasher: &mut Sha256, name: &str) -> io::Result<()> {
        let path = self.folder.join(name);
        // Before it is opened: a pipe would wait for whoever writes.
        match fs::metadata(&path) {
            Ok(status) if status.is_file() => {}
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
        let mut file = File::open(path)?;
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update(file.metadata()?.len().to_le_bytes());
        let mut chunk = vec![0; CHUNK_BYTES];
        while !self.is_closed.load(Ordering::Relaxed) {
            match file.read(&mut chunk)? {
                0 => return Ok(()),
                n_bytes => hasher.update(&chunk[..n_bytes]),
            }
        }
        Err(io::Error::other("the engine stops"))
    }
}

fn read_known(path: &Path) -> Option<Known> {
    let file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_KNOWN_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Bytes as digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a text cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

fn short(digits: &str) -> String {
    digits.chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of an engine that does not stop.
    static RUNS: AtomicBool = AtomicBool::new(false);

    fn model(folder: &Path, backend: &str, name: &str) -> ModelIdentity {
        ModelIdentity {
            name: name.to_owned(),
            backend: backend.to_owned(),
            folder: folder.to_owned(),
        }
    }

    #[test]
    fn a_model_is_its_weights_its_configuration_and_its_tokenizer() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        let of = |backend: &str, name: &str| {
            let beside = tempfile::tempdir().unwrap();
            let beside = |file: &str| beside.path().join(file);
            Binding::of(&model(dir.path(), backend, name), beside, &RUNS).unwrap()
        };
        write("model.safetensors", "weights");
        write("config.json", "{}");
        write("tokenizer.json", "{}");
        let first = of("cpu", "tiny");
        assert_eq!(of("reference", "other"), first);
        write("README.md", "nothing");
        assert_eq!(of("cpu", "tiny"), first);
        assert!(first.refusal(&first.model, &first.tokenizer).is_none());
        for (file, is_of_model) in [
            ("model.safetensors", true),
            ("config.json", true),
            ("chat_template.jinja", false),
        ] {
            let before = fs::read_to_string(dir.path().join(file)).unwrap_or_default();
            write(file, "changed");
            let changed = of("cpu", "tiny");
            assert_eq!(changed.model != first.model, is_of_model, "{file}");
            assert_eq!(changed.tokenizer == first.tokenizer, is_of_model, "{file}");
            let refusal = changed.refusal(&first.model, &first.tokenizer).unwrap();
            assert!(
                refusal.contains("serve the model that saved it"),
                "{refusal}"
            );
            write(file, &before);
        }
        assert_ne!(of("dummy", "one").model, of("dummy", "two").model);
    }

    #[test]
    fn an_engine_that_stops_reads_no_weights() {
        let [dir, beside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        fs::write(dir.path().join("model.safetensors"), "weights").unwrap();
        let place = |file: &str| beside.path().join(file);
        let model = model(dir.path(), "cpu", "tiny");
        let refused = Binding::of(&model, place, &AtomicBool::new(true)).unwrap_err();
        assert_eq!(refused.code, pie_core::ErrorCode::EngineStopped);
        assert!(!beside.path().join(KNOWN).exists());
        Binding::of(&model, place, &RUNS).unwrap();
    }

    #[test]
    fn the_digests_are_computed_again_where_a_file_changed() {
        let [dir, beside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let weights = dir.path().join("model.safetensors");
        fs::write(&weights, "weights").unwrap();
        let of = || {
            let place = |file: &str| beside.path().join(file);
            Binding::of(&model(dir.path(), "cpu", "tiny"), place, &RUNS).unwrap()
        };
        let first = of();
        assert!(beside.path().join(KNOWN).is_file());
        assert_eq!(of(), first);
        fs::write(&weights, "other weights").unwrap();
        assert_ne!(of().model, first.model);
        for text in ["", "{", "[1]"] {
            fs::write(beside.path().join(KNOWN), text).unwrap();
            assert_ne!(of().model, first.model);
        }
    }
}
