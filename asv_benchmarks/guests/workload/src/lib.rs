//! What the benchmarks have a Rust program do: the input names it. `asv_benchmarks/programs` holds the same in Python
//! and JavaScript.

mod kernels;

use inferlet::prelude::*;
use inferlet::session;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    /// Ends at once.
    Nothing,
    /// Says that it runs, then waits for a message.
    Idle,
    /// Sends back what it is sent, until its client has gone.
    Echo,
    /// Has the engine generate so many tokens.
    Collect { prompt: Vec<u32>, tokens: usize },
    /// Generates so many tokens and takes part in each step.
    Step { prompt: Vec<u32>, tokens: usize },
    /// Computes: the kernel by its name, so many rounds of it.
    Compute {
        kernel: kernels::Kernel,
        rounds: u32,
    },
    /// Computes for ever.
    Spin,
}

/// Returns the number of tokens, or the checksum of a kernel.
#[inferlet::main]
async fn main(work: Work) -> Result<u64> {
    match work {
        Work::Nothing => {}
        Work::Idle => {
            session::send("idle");
            session::receive().wait_async().await;
        }
        Work::Echo => {
            while let Some(message) = session::receive().wait_async().await {
                session::send(&message);
            }
        }
        Work::Collect { prompt, tokens } => {
            let (_context, generator) = generator(&prompt, tokens)?;
            return Ok(generator.collect_tokens().await?.len() as u64);
        }
        Work::Step { prompt, tokens } => {
            let (_context, mut generator) = generator(&prompt, tokens)?;
            let mut n_tokens = 0;
            while let Some(step) = generator.next()? {
                n_tokens += step.execute().await?.tokens.len() as u64;
            }
            return Ok(n_tokens);
        }
        Work::Compute { kernel, rounds } => return Ok(kernels::run(kernel, rounds)),
        Work::Spin => loop {
            std::hint::black_box(kernels::run(kernels::Kernel::Hash, 1));
        },
    }
    Ok(0)
}

/// A greedy generation that ends by its length alone, with its context, which is released when it is dropped.
fn generator(prompt: &[u32], tokens: usize) -> Result<(Context, inferlet::Generator)> {
    let model = Model::load("default")?;
    let mut context = Context::new(&model)?;
    context.append(prompt);
    let generator = context
        .generate(Sampler::Argmax)
        .max_tokens(tokens)
        .ignore_eos(true);
    Ok((context, generator))
}
