//! The template of a model that has none.

use crate::error::Result;
use crate::special::SpecialTokens;
use crate::template::ChatTemplate;

/// Who speaks stands before each message, and an empty line behind it. Tools are described in the first lines.
const SOURCE: &str = include_str!("plain.jinja");

/// The plain template.
///
/// # Errors
/// None: it is tested that it compiles.
pub(super) fn template() -> Result<ChatTemplate> {
    ChatTemplate::new(SOURCE, SpecialTokens::default())
}
