//! The raw resources, for what the typed API does not cover.

pub use crate::bindings::pie::core::forward::ForwardPass;
use crate::bindings::pie::core::forward::PassOutput;
pub use crate::matcher::{Grammar, Matcher};
use crate::{Result, task};

/// Runs a raw pass without blocking the program.
///
/// ```no_run
/// # use inferlet::prelude::*;
/// use inferlet::inference::ForwardPass;
///
/// # async fn prefill(ctx: &Context, ids: &[u32]) -> Result<()> {
/// let raw = ctx.inner();
/// let pass = ForwardPass::create(raw)?;
/// pass.input(ids)?;
/// pass.execute_async().await?;
/// // The pages are the program's own, to be committed or dropped.
/// raw.commit_working_pages(1)?;
/// # Ok(())
/// # }
/// ```
pub trait ForwardPassExt {
    /// Runs the pass, and leaves the pages that become full as working pages.
    ///
    /// # Errors
    /// Those of [`Forward::execute`](crate::Forward::execute).
    fn execute_async(&self) -> impl Future<Output = Result<PassOutput>>;
}

impl ForwardPassExt for ForwardPass {
    async fn execute_async(&self) -> Result<PassOutput> {
        self.leave_working_pages()?;
        task::answer(self.execute()).await
    }
}
