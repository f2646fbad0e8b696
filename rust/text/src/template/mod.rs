//! The chat template of a checkpoint.
use crate::error::Result;
use std::path::Path;

/// The special tokens that a template sees as variables.
#[derive(Debug, Clone, Default)]
pub struct SpecialTokens {}

/// The chat template of a checkpoint.
pub struct ChatTemplate {}

impl ChatTemplate {
    /// Reads the template of a model directory; `None` when it has none.
    pub fn from_dir(_dir: &Path) -> Result<Option<Self>> {
        todo!()
    }
    /// Compiles a template.
    pub fn new(_source: &str, _special: SpecialTokens) -> Result<Self> {
        todo!()
    }
}
