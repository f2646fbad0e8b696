//! An agent: the model calls a function until it can answer in words.

use inferlet::prelude::*;
use inferlet::session;
use serde::Deserialize;
use serde_json::json;

/// In the words that the embedded model was trained on; another model wants those of its own chat template.
const FUNCTIONS: &str = r#"# Tools

You can call these functions:
<tools>
{"name": "get_price", "description": "Get the price of an item.", "parameters": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}}
</tools>

To call one, write:
<tool_call>
{"name": <name>, "arguments": <object>}
</tool_call>"#;

const PRICES: [(&str, u32); 4] = [
    ("guitar", 180),
    ("hammer", 12),
    ("jacket", 59),
    ("violin", 340),
];

#[derive(Deserialize)]
#[serde(default)]
struct Input {
    prompt: String,
    max_turns: usize,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            prompt: "How much does a violin cost?".to_owned(),
            max_turns: 4,
        }
    }
}

#[derive(Deserialize)]
struct Call {
    arguments: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    item: String,
}

/// JSON with a space after the colon, as the embedded model was trained on.
fn get_price(item: &str) -> String {
    match PRICES.iter().find(|(name, _)| *name == item) {
        Some((_, price)) => format!(r#"{{"price": {price}}}"#),
        // The model is told what went wrong, and answers with it.
        None => format!(r#"{{"error": {}}}"#, json!(format!("there is no {item}"))),
    }
}

/// The arguments of the call that the model wrote; none where it answered in words.
fn find_call(text: &str) -> Result<Option<Arguments>> {
    let Some((_, rest)) = text.split_once("<tool_call>") else {
        return Ok(None);
    };
    let call = rest.split("</tool_call>").next().unwrap_or(rest);
    let call: Call = serde_json::from_str(call).map_err(|error| error.to_string())?;
    Ok(Some(call.arguments))
}

#[inferlet::main]
async fn main(input: Input) -> Result<String> {
    let mut ctx = Context::new(&Model::load("default")?)?;
    ctx.system(FUNCTIONS).user(&input.prompt);

    for _ in 0..input.max_turns {
        let generator = ctx.generate(Sampler::Argmax).max_tokens(64);
        let text = generator.collect_text().await?;
        let Some(Arguments { item }) = find_call(&text)? else {
            return Ok(text);
        };
        session::send(&json!({ "calls": "get_price", "item": item }).to_string());
        let returned = get_price(&item);
        ctx.user(&format!("<tool_response>\n{returned}\n</tool_response>"));
    }
    Err("the model calls functions and does not answer; allow it more turns with max_turns".into())
}
