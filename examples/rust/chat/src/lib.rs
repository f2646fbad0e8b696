//! A chat turn whose text is sent to the client as it comes.

use inferlet::prelude::*;
use inferlet::{FinishReason, session};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(default)]
struct Input {
    prompt: String,
    max_tokens: usize,
    temperature: f32,
    top_p: f32,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            prompt: "Tell me a short story about a fox.".to_owned(),
            max_tokens: 128,
            temperature: 0.8,
            top_p: 0.95,
        }
    }
}

#[derive(Serialize)]
struct Answer {
    tokens: usize,
    finish: Option<FinishReason>,
}

#[inferlet::main]
async fn main(input: Input) -> Result<Answer> {
    let model = Model::load("default")?;
    let mut ctx = Context::new(&model)?;
    ctx.system("You are a helpful assistant.")
        .user(&input.prompt);

    let g = ctx
        .generate(Sampler::top_p(input.temperature, input.top_p))
        .max_tokens(input.max_tokens);
    let mut texts = g.texts();
    while let Some(text) = texts.next().await {
        session::send(&text?);
    }
    Ok(Answer {
        tokens: g.tokens_generated(),
        finish: g.finish_reason(),
    })
}
