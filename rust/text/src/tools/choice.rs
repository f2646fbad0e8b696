//! Whether the model is to call a tool.

/// Whether the model is to call a tool, and which one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes: what it says may end with calls.
    Auto,
    /// It calls none.
    None,
    /// It calls one at least, and says nothing else but its thoughts.
    Required,
    /// It calls the tool of this name once, and says nothing else but its thoughts.
    Named(String),
}
