//! The dummy driver.

use crate::batch::DriverFailure;

/// The dummy driver.
#[derive(Debug)]
pub struct Driver {}

impl Driver {
    /// A driver.
    pub fn new(_model: &str, _vocab_size: u32, _n_pages: u32, _page_size: u32) -> Self {
        Self {}
    }

    /// Runs a batch: logits float32 `[R, V]`.
    ///
    /// # Errors
    /// When the arena is malformed.
    pub fn run(&mut self, _arena: &[u32]) -> Result<Vec<f32>, DriverFailure> {
        Err(DriverFailure {
            message: "this driver has no body".to_owned(),
        })
    }
}
