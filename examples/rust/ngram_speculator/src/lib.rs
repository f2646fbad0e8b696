//! Proposes what followed the newest two tokens before: less passes where a text repeats itself. Input: `{"prompt",
//! "max_tokens"}`. Speculation changes no token.

use std::collections::HashMap;

use inferlet::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(default)]
struct Input {
    prompt: String,
    max_tokens: usize,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            prompt: "Tell me a short story about a fox.".to_owned(),
            max_tokens: 48,
        }
    }
}

#[derive(Default, Serialize)]
struct Report {
    text: String,
    same: bool,
    steps: u32,
    drafted: u32,
    accepted: u32,
}

const WIDTH: usize = 4;

/// A speculator that looks the newest two tokens up in what was said.
#[derive(Default)]
struct NGrams {
    prompt: Vec<u32>,
    tokens: Vec<u32>,
    seen: HashMap<Vec<u32>, usize>,
}

impl NGrams {
    fn pair(&self) -> &[u32] {
        &self.tokens[self.tokens.len().saturating_sub(2)..]
    }
}

impl Speculator for NGrams {
    fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
        let n = self.tokens.len();
        let start = self.seen.get(self.pair()).copied().unwrap_or(n);
        let tokens = self.tokens[start..n.min(start + WIDTH)].to_vec();
        let positions = (n as u32..).take(tokens.len()).collect();
        (tokens, positions)
    }

    fn accept(&mut self, accepted: &[u32]) {
        for token in accepted {
            // Where a pair was seen is told once something follows it.
            self.seen.insert(self.pair().to_vec(), self.tokens.len());
            self.tokens.push(*token);
        }
    }

    fn reset(&mut self) {
        let prompt = std::mem::take(&mut self.prompt);
        self.tokens.clear();
        self.seen.clear();
        self.accept(&prompt);
        self.prompt = prompt;
    }
}

#[inferlet::main]
async fn main(input: Input) -> Result<Report> {
    let model = Model::load("default")?;
    let mut ctx = Context::new(&model)?;
    ctx.user(&input.prompt).cue();
    let writes = |ctx: &Context| {
        let generator = ctx.generate(Sampler::Argmax);
        generator.max_tokens(input.max_tokens).ignore_eos(true)
    };
    let speculator = NGrams {
        prompt: ctx.buffer().to_vec(),
        ..NGrams::default()
    };
    let fork = ctx.fork()?;
    let mut g = writes(&fork).speculator(speculator);
    let (mut report, mut tokens) = (Report::default(), Vec::new());
    while let Some(step) = g.next()? {
        let out = step.execute().await?;
        tokens.extend(&out.tokens);
        report.drafted += out.raw().speculative.drafted;
        report.accepted += out.raw().speculative.accepted;
        report.steps += 1;
    }
    report.same = tokens == writes(&ctx).collect_tokens().await?;
    report.text = model.tokenizer().decode(&tokens)?;
    Ok(report)
}
