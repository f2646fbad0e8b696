//! Tokenizer, chat templates and decoders: everything between text and token ids.
//!
//! - [`Tokenizer`]: a checkpoint's `tokenizer.json`; text to ids, ids to text, the raw bytes behind each id.
//! - [`ChatTemplate`]: the checkpoint's own Jinja template, evaluated as `transformers` evaluates it.
//! - [`Chat`]: a conversation built piece by piece, so that the pieces equal the whole rendering; [`ChatState`] is the
//!   turn state of one context.
//! - [`ChatDecoder`]: ids that a model says, turned into text without tearing characters apart.
//! - [`StopTexts`] and [`StopWatch`]: texts at which a generation ends, found across the borders of tokens.
//! - [`grammar`]: what a model may say, as JSON Schemas, regular expressions and grammars say it.
//!
//! Nothing here knows of contexts, instances or models' weights, and nothing waits.

mod caught;
mod chat;
mod chat_event;
mod decoder;
mod error;
mod files;
pub mod grammar;
pub mod limits;
mod reasoning;
mod shown;
mod special;
mod speech;
mod stop_texts;
mod stop_watch;
mod template;
mod tokenizer;
mod tools;
mod utf8;

pub use chat::{Addition, Answer, At, Chat, ChatState, Role};
pub use chat_event::ChatEvent;
pub use decoder::ChatDecoder;
pub use error::{Error, Result};
pub use reasoning::{ReasoningDecoder, ReasoningEvent};
pub use special::SpecialTokens;
pub use stop_texts::StopTexts;
pub use stop_watch::StopWatch;
pub use template::ChatTemplate;
pub use tokenizer::Tokenizer;
pub use tools::list::ToolList;
pub use tools::{Call, ToolChoice, ToolDecoder, ToolEvent};
