//! One prompt, several continuations: forks of a context that generate together.

use inferlet::prelude::*;
use inferlet::task;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(default)]
struct Input {
    prompt: String,
    branches: usize,
    max_tokens: usize,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            prompt: "Name an animal.".to_owned(),
            branches: 4,
            max_tokens: 32,
        }
    }
}

#[inferlet::main]
async fn main(input: Input) -> Result<Vec<String>> {
    let model = Model::load("default")?;
    let mut ctx = Context::new(&model)?;
    ctx.system("You are a helpful assistant.")
        .user(&input.prompt);
    ctx.flush().await?;

    // The forks share the pages of the prompt; their passes share batches.
    let branches = (0..input.branches)
        .map(|_| ctx.fork())
        .collect::<Result<Vec<_>>>()?;
    let texts = branches.iter().map(|branch| {
        branch
            .generate(Sampler::top_p(1.0, 0.95))
            .max_tokens(input.max_tokens)
            .collect_text()
    });
    task::join_all(texts).await.into_iter().collect()
}
