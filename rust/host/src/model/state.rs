//! Where the driver of a model stands.

/// Where the driver of a model stands. One that lives in the process of the engine serves from the beginning to the
/// end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ModelState {
    /// Batches are run.
    #[default]
    Serving,
    /// The driver was lost, for this reason, and is started again: what is asked waits.
    Restarting(String),
    /// The driver was lost too often, or cannot be started, for this reason: what is asked is refused with
    /// `model-unavailable`.
    Failed(String),
}

impl ModelState {
    /// The state in a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Restarting(_) => "restarting",
            Self::Failed(_) => "failed",
        }
    }

    /// Why it does not serve; empty where it does.
    pub fn reason(&self) -> &str {
        match self {
            Self::Serving => "",
            Self::Restarting(reason) | Self::Failed(reason) => reason,
        }
    }
}
