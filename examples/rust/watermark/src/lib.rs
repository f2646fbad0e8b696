//! Marks a text by the tokens that it is written with, and finds the mark again. Input: `{"prompt", "key",
//! "max_tokens"}`.

use inferlet::prelude::*;
use inferlet::{Constrain, brle};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(default)]
struct Input {
    prompt: String,
    key: u32,
    max_tokens: usize,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            prompt: "Tell me a short story about a fox.".to_owned(),
            key: 15,
            max_tokens: 32,
        }
    }
}

#[derive(Serialize)]
struct Found {
    text: String,
    green: Green,
}

#[derive(Serialize)]
struct Green {
    plain: f64,
    marked: f64,
}

/// Which half of the vocabulary may follow a token.
#[derive(Clone, Copy)]
struct Key {
    key: u32,
    vocab_size: u32,
}

impl Key {
    /// Whether the hash of a token with the one before and the key is even.
    fn is_green(self, previous: u32, token: u32) -> bool {
        let start = previous
            .wrapping_mul(2_654_435_761)
            .wrapping_add(self.key.wrapping_mul(40_503));
        (start ^ token).wrapping_mul(2_246_822_519) >> 31 == 0
    }
}

/// A constraint that allows green tokens alone.
struct Watermark {
    key: Key,
    previous: u32,
    mask: Vec<u32>,
}

impl Constrain for Watermark {
    fn step(&mut self, accepted: &[u32]) -> &[u32] {
        self.previous = accepted.last().copied().unwrap_or(self.previous);
        let ids = 0..self.key.vocab_size;
        let green: Vec<u32> = ids
            .filter(|token| self.key.is_green(self.previous, *token))
            .collect();
        self.mask = brle::allowing(&green, self.key.vocab_size).unwrap_or_default();
        &self.mask
    }
}

/// The detector: near 1 for a marked text, near a half for any other.
fn share_of_green(tokens: &[u32], first: u32, key: Key) -> f64 {
    let mut previous = first;
    let is_green = |token: &&u32| key.is_green(std::mem::replace(&mut previous, **token), **token);
    tokens.iter().filter(is_green).count() as f64 / tokens.len() as f64
}

#[inferlet::main]
async fn main(input: Input) -> Result<Found> {
    let model = Model::load("default")?;
    let key = Key {
        key: input.key,
        vocab_size: model.tokenizer().vocab_size(),
    };
    let mut ctx = Context::new(&model)?;
    ctx.user(&input.prompt).cue();
    let first = ctx.buffer().last().copied().ok_or("a prompt has tokens")?;
    let writes = |ctx: &Context| {
        let sampler = Sampler::top_p(1.0, 0.95);
        ctx.generate(sampler)
            .max_tokens(input.max_tokens)
            .ignore_eos(true)
    };
    let plain = writes(&ctx.fork()?).collect_tokens().await?;
    let watermark = Watermark {
        key,
        previous: first,
        mask: Vec::new(),
    };
    let marked = writes(&ctx).constrain(watermark).collect_tokens().await?;
    Ok(Found {
        text: model.tokenizer().decode(&marked)?,
        green: Green {
            plain: share_of_green(&plain, first, key),
            marked: share_of_green(&marked, first, key),
        },
    })
}
