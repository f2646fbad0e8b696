//! An agent: the model calls tools until it can answer in words.

use inferlet::prelude::*;
use inferlet::session;
use serde::Deserialize;
use serde_json::{Map, Value, json};

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
    /// Whether the first turn must be a call.
    tool_choice: Option<String>,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            prompt: "How much does a violin cost?".to_owned(),
            max_turns: 4,
            tool_choice: None,
        }
    }
}

/// Get the price of an item.
#[inferlet::tool]
fn get_price(item: String) -> Result<String> {
    match PRICES.iter().find(|(name, _)| *name == item) {
        // JSON with a space after the colon, as the embedded model was trained on.
        Some((_, price)) => Ok(format!(r#"{{"price": {price}}}"#)),
        None => Ok(failure(&format!("there is no {item}"))),
    }
}

/// Get the time in a city.
#[inferlet::tool]
fn get_time(city: String) -> Result<String> {
    Ok(failure(&format!("there is no clock in {city}")))
}

/// What the model is told of what went wrong, and answers with.
fn failure(why: &str) -> String {
    format!(r#"{{"error": {}}}"#, json!(why))
}

/// What a tool answers; what the model got wrong is answered too.
async fn answer(name: &str, args: &str) -> String {
    let answered = match name {
        "get_price" => get_price::call(args).await,
        "get_time" => get_time::call(args).await,
        _ => Err(format!("there is no tool {name}")),
    };
    answered.unwrap_or_else(|error| failure(&error))
}

#[inferlet::main]
async fn main(input: Input) -> Result<String> {
    let model = Model::load("default")?;
    let mut ctx = Context::new(&model)?;
    ctx.equip(&[&get_price, &get_time]).user(&input.prompt);

    for turn in 0..input.max_turns {
        let mut generator = ctx.generate(Sampler::Argmax).max_tokens(64);
        // The choice is for the first turn: behind an answer the model may speak.
        if turn == 0 && input.tool_choice.as_deref() == Some("required") {
            generator = generator.tool_choice(tools::Choice::Required);
        }
        let tokens = generator.collect_tokens().await?;
        let mut calls = Vec::new();
        for event in tools::Decoder::new(&model).events(&tokens) {
            if let tools::Event::Call(name, args) = event? {
                calls.push((name, args));
            }
        }
        if calls.is_empty() {
            return words(&model, &tokens);
        }
        for (name, args) in calls {
            let mut sent = Map::new();
            sent.insert("calls".to_owned(), json!(name));
            let given: Map<String, Value> =
                serde_json::from_str(&args).map_err(|error| error.to_string())?;
            sent.extend(given);
            session::send(&Value::Object(sent).to_string());
            let value = answer(&name, &args).await;
            ctx.answer(&name, &value);
        }
    }
    Err("the model calls tools and does not answer; allow it more turns with max_turns".into())
}

/// What the model said.
fn words(model: &Model, tokens: &[u32]) -> Result<String> {
    let mut text = String::new();
    for event in chat::Decoder::new(model).events(tokens) {
        if let chat::Event::Delta(part) = event? {
            text.push_str(&part);
        }
    }
    Ok(text)
}
