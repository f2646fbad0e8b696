//! The smallest program: greet the model and return what it says.

use inferlet::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Input {
    name: Option<String>,
}

#[inferlet::main]
async fn main(input: Input) -> Result<String> {
    let greeting = match input.name {
        Some(name) => format!("Hello! My name is {name}."),
        None => "Hello!".to_owned(),
    };
    let model = Model::load("default")?;
    let mut ctx = Context::new(&model)?;
    ctx.user(&greeting);
    ctx.generate(Sampler::top_p(0.6, 0.95))
        .max_tokens(64)
        .collect_text()
        .await
}
