//! What the model thinks before it answers.

use crate::bindings::pie::instruct::reasoning as raw;
pub use crate::bindings::pie::instruct::reasoning::ReasoningEvent as Event;
use crate::decoding::decoder;

decoder! {
    /// Tells what the model thinks, between the markers of its template, from what it says. A thought ends with its
    /// turn at the latest. Of a model without thoughts every event is [`Event::Idle`].
    raw::ReasoningDecoder, std::convert::identity
}
