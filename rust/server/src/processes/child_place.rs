//! The place of a child among the processes of its user.

/// A child that lives. Dropping it ends that.
pub(crate) struct ChildPlace(Box<dyn Fn() + Send + Sync>);

impl ChildPlace {
    /// Its end is told to `release`.
    pub(super) fn new(release: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Box::new(release))
    }
}

impl Drop for ChildPlace {
    fn drop(&mut self) {
        (self.0)();
    }
}
