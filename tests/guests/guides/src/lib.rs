//! The Rust snippets of the guide, as they stand there: `python tools/gen_guides.py` writes them.

#[rustfmt::skip]
#[allow(unused, reason = "a snippet shows more than it uses")]
mod snippets;

use inferlet::prelude::*;

#[derive(serde::Deserialize)]
struct Input {
    snippet: String,
    /// The address of one that snippets ask.
    server: String,
}

/// Runs the snippet of a page and a number; `ctx` holds a question.
#[inferlet::main]
async fn main(input: Input) -> Result<()> {
    let model = Model::load("default")?;
    let mut ctx = Context::new(&model)?;
    ctx.user("How much does a violin cost?").check()?;
    snippets::run(&input.snippet, &input.server, &model, &mut ctx).await
}
