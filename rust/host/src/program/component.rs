//! Components, as users supply them.

use std::sync::Arc;

use sha2::{Digest, Sha256};

/// A WebAssembly component of the world `pie:inferlet/inferlet`, or a built program ([`super::Packed`]).
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

    /// Its bytes, as they were given.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many they are.
    pub fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Their SHA-256.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}
