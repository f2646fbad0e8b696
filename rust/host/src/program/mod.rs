//! Programs: what can be launched.

pub(crate) mod artefact;
pub(crate) mod disk;
pub(crate) mod nesting;
pub(crate) mod preparation;
pub(crate) mod source;
pub(crate) mod store;
pub(crate) mod typescript;

use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use preparation::Preparation;
use source::LazySource;
pub use source::{Language, SourceBundle};

/// What can be launched, any number of times. What has to be done once for it is done at its first launch.
#[derive(Clone, Debug)]
pub struct Program(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Component(Component),
    Source(Arc<LazySource>),
}

/// A WebAssembly component of the world `pie:inferlet/inferlet`.
#[derive(Clone, Debug)]
pub struct Component {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) digest: [u8; 32],
}

impl Component {
    /// A component, unchecked until it is compiled.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let digest = Sha256::digest(&bytes).into();
        Self { bytes, digest }
    }
}

impl From<Component> for Program {
    fn from(component: Component) -> Self {
        Self(Kind::Component(component))
    }
}

impl From<SourceBundle> for Program {
    fn from(bundle: SourceBundle) -> Self {
        Self(Kind::Source(Arc::new(LazySource::new(bundle))))
    }
}
