//! The events of the decoders as the vectors write them.

use inferlet::prelude::*;
use serde_json::{Value, json};

use crate::handles::event;

/// An event of a thought.
pub fn thought(event: reasoning::Event) -> Value {
    match event {
        reasoning::Event::Idle => json!({ "type": "idle" }),
        reasoning::Event::Start => json!({ "type": "start" }),
        reasoning::Event::Delta(text) => json!({ "type": "delta", "text": text }),
        reasoning::Event::End(text) => json!({ "type": "end", "text": text }),
    }
}

/// An event of a call.
pub fn call(event: tools::Event) -> Value {
    match event {
        tools::Event::Idle => json!({ "type": "idle" }),
        tools::Event::Start => json!({ "type": "start" }),
        tools::Event::Call(name, args) => {
            let mut call = called(&name, &args);
            call["type"] = json!("call");
            call
        }
        tools::Event::Malformed(text) => json!({ "type": "malformed", "text": text }),
    }
}

/// A call. Rust has no second name for its arguments, and no id beside them.
pub fn called(name: &str, args: &str) -> Value {
    json!({ "name": name, "args": args, "arguments": args, "id": null })
}

/// Every event of tokens in pieces, to the end of the turn.
pub fn every_thought(decoder: &mut reasoning::Decoder, pieces: &[Vec<u32>]) -> Result<Value> {
    let mut events = Vec::new();
    for piece in pieces {
        for event in decoder.events(piece) {
            add(&mut events, thought(event?));
        }
    }
    let mut event = decoder.finish();
    while !matches!(event, reasoning::Event::Idle) {
        add(&mut events, thought(event));
        event = decoder.feed(&[])?;
    }
    Ok(json!(events))
}

/// The same of calls.
pub fn every_call(decoder: &mut tools::Decoder, pieces: &[Vec<u32>]) -> Result<Value> {
    let mut events = Vec::new();
    for piece in pieces {
        for event in decoder.events(piece) {
            add(&mut events, call(event?));
        }
    }
    let mut event = decoder.finish();
    while event != tools::Event::Idle {
        add(&mut events, call(event));
        event = decoder.feed(&[])?;
    }
    Ok(json!(events))
}

/// What is shown without thoughts and calls.
pub fn visible(model: &Model, tokens: &[u32]) -> Result<Value> {
    shown(
        &mut chat::Decoder::hiding(model, true, true),
        &[tokens.to_vec()],
    )
}

/// Every event of the text of tokens in pieces, to the end of the turn.
pub fn shown(decoder: &mut chat::Decoder, pieces: &[Vec<u32>]) -> Result<Value> {
    let mut events = Vec::new();
    for piece in pieces {
        for found in decoder.events(piece) {
            add(&mut events, event(found?));
        }
    }
    let mut last = decoder.finish();
    while !matches!(last, chat::Event::Idle) {
        add(&mut events, event(last));
        last = decoder.feed(&[])?;
    }
    Ok(json!(events))
}

/// Adds an event; deltas that stand beside each other are one.
fn add(events: &mut Vec<Value>, event: Value) {
    match events.last_mut() {
        Some(last) if last["type"] == "delta" && event["type"] == "delta" => {
            let text =
                [&last["text"], &event["text"]].map(|text| text.as_str().unwrap_or_default());
            last["text"] = json!(text.concat());
        }
        _ => events.push(event),
    }
}
