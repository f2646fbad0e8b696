//! A language runtime that comes with the engine.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use pie_core::ErrorCode;

use super::cache::CacheEntry;
use super::component::Component;
use super::language::Language;
use crate::Error;
use crate::sync::lock;

/// The runtime of a language.
pub(crate) struct OwnRuntime<P> {
    language: Language,
    path: Option<PathBuf>,
    /// The component, from when it is first needed until it is compiled.
    component: Mutex<Option<Component>>,
    /// Its digest, from when it was first read.
    digest: OnceLock<[u8; 32]>,
    /// Where it is, once it is compiled.
    pub(crate) entry: CacheEntry<P>,
}

impl<P> OwnRuntime<P> {
    /// The one whose component lies at `path`; none: there is none.
    pub(crate) fn new(language: Language, path: Option<PathBuf>) -> Self {
        Self {
            language,
            path,
            component: Mutex::default(),
            digest: OnceLock::new(),
            entry: CacheEntry::default(),
        }
    }

    /// The digest of the component; none where it cannot be read.
    pub(crate) fn digest(&self) -> Option<[u8; 32]> {
        if self.digest.get().is_none() {
            drop(self.read());
        }
        self.digest.get().copied()
    }

    /// It is compiled: the component is not needed any more.
    pub(crate) fn done(&self) {
        *lock(&self.component) = None;
    }

    /// Reads the component once.
    ///
    /// # Errors
    /// `invalid-config` where none is configured, or it cannot be read.
    pub(crate) fn read(&self) -> Result<Component, Error> {
        let mut component = lock(&self.component);
        if let Some(component) = &*component {
            return Ok(component.clone());
        }
        let invalid = |message: String| Error::new(ErrorCode::InvalidConfig, message);
        let Some(path) = &self.path else {
            return Err(invalid(format!(
                "no runtime for {} is configured; set the path of its component",
                self.language.name()
            )));
        };
        let bytes = std::fs::read(path).map_err(|error| {
            invalid(format!(
                "the {} runtime cannot be read: {error}; install the package again, or build it with make",
                self.language.name()
            ))
        })?;
        let component = component.insert(Component::new(bytes)).clone();
        self.digest.get_or_init(|| component.digest);
        Ok(component)
    }
}
