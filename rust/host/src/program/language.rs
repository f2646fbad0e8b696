//! The languages that have runtimes.

use pie_core::ErrorCode;

use crate::Error;

/// A language that has a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Python.
    Python,
    /// JavaScript, and TypeScript, whose types are removed.
    JavaScript,
}

impl Language {
    /// The language of a name as programs and settings write it.
    ///
    /// # Errors
    /// `invalid-argument` for a name without a runtime.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        match name {
            "python" => Ok(Self::Python),
            "javascript" => Ok(Self::JavaScript),
            _ => Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("there is no runtime for the language {name:?}; use python or javascript"),
            )),
        }
    }

    /// The name, as programs and settings write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
        }
    }
}
