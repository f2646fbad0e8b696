//! Documents that a model writes, as values of Rust types: one of each kind, and what goes wrong.

use std::collections::{BTreeMap, HashSet};

use inferlet::prelude::*;
use inferlet::schemars::{self, JsonSchema};
use inferlet::{JsonSchema as SchemaText, Regex, error_code};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Color {
    Red,
    Blue,
}

/// A part of the colours.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "its schema alone is read")]
enum Blue {
    Blue,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Point {
    x: i32,
    #[schemars(range(min = -9, max = 9))]
    y: i8,
}

/// A list that holds itself.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Node {
    color: Color,
    point: Point,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Box<Node>>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "shape", rename_all = "lowercase")]
enum Shape {
    Dot(Point),
    Circle { center: Point, radius: u8 },
    Nothing,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
enum Command {
    Stop,
    Go(u8),
    Turn { left: bool },
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Price {
    Known(u16),
    Unknown(#[schemars(length(max = 8))] String),
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Order {
    #[schemars(length(max = 3))]
    items: Vec<(Color, u8)>,
    price: Price,
    #[schemars(extend("maxProperties" = 1))]
    notes: BTreeMap<String, bool>,
    #[serde(flatten)]
    place: Point,
}

/// It takes no document at all.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "u8")]
#[schemars(with = "u8")]
struct Never(u8);

impl TryFrom<u8> for Never {
    type Error = String;

    fn try_from(given: u8) -> std::result::Result<Self, String> {
        Err(format!("{given} is not one of no numbers"))
    }
}

#[derive(Deserialize)]
struct Input {
    kind: String,
    seed: u64,
}

/// What is read of a document, and why its generation ended.
async fn read<T: JsonSchema + DeserializeOwned + Serialize>(g: &Generator) -> Result<Value> {
    let value: T = g.collect_json().await?;
    Ok(json!({ "value": value, "finish": g.finish_reason() }))
}

/// Each of its tokens is drawn in a step of its own: what may follow is never one text.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Letters(#[schemars(regex(pattern = "^[ab]{200}$"))] String);

/// A document that is given up while steps of another generation pass, and asked for again.
async fn again(model: &Model, g: &Generator) -> Result<Value> {
    let mut ctx = Context::new(model)?;
    ctx.user("Count.");
    let beside = ctx.generate(Sampler::Argmax).max_tokens(9).ignore_eos(true);
    let given_up =
        inferlet::task::select(g.collect_json::<Letters>(), beside.collect_tokens()).await;
    if let inferlet::task::Either::Left(_) = given_up {
        return Err("the document was whole before nine tokens were".into());
    }
    assert_eq!((g.tokens_generated(), g.is_done()), (0, false));
    let letters: Letters = g.collect_json().await?;
    Ok(json!(letters.0))
}

#[inferlet::main]
async fn main(input: Input) -> Result<Value> {
    let model = Model::load("default")?;
    let mut ctx = Context::new(&model)?;
    ctx.user("Answer in JSON.");
    let sampler = Sampler::top_p(1.0, 0.95);
    let g = ctx.generate(sampler).seed(input.seed).max_tokens(400);
    let read = match input.kind.as_str() {
        "struct" => read::<Point>(&g).await,
        "enum" => read::<Color>(&g).await,
        "recursive" => read::<Node>(&g).await,
        "tagged" => read::<Shape>(&g).await,
        "external" => read::<Command>(&g).await,
        "option" => read::<Option<Color>>(&g).await,
        "nested" => read::<Order>(&g).await,
        // Any JSON, beside what constrains it already.
        "any" => {
            read::<Value>(&g.constrain_with(SchemaText(r#"{"enum": [[1], null, "x"]}"#))?).await
        }
        // The documents of both: a pattern, and the numbers of a type.
        "both" => read::<u8>(&g.constrain_with(Regex("[4-6]0{1,3}"))?).await,
        // The documents of one type that are those of another.
        "two types" => read::<Color>(&g.constrain_to::<Blue>()?).await,
        "refused type" => {
            let refused = g.constrain_to::<HashSet<u8>>().err();
            Err(refused.unwrap_or_default())
        }
        "cut" => read::<Node>(&g.max_tokens(3)).await,
        "again" => return again(&model, &g).await,
        "uncaught" => return read::<Node>(&g.max_tokens(3)).await,
        "uncaught mistake" => return read::<HashSet<u8>>(&g).await,
        "refused" => read::<HashSet<u8>>(&g).await,
        "narrow" => read::<Never>(&g).await,
        "kept" => {
            ctx.append(&[4_000_000]);
            read::<Color>(&g).await
        }
        other => return Err(format!("there is no kind {other}")),
    };
    Ok(read.unwrap_or_else(
        |error| json!({ "error": error_code(&error).map(|code| code.as_str()), "message": error }),
    ))
}
