//! Bad input to passes: what goes wrong, by its name.

use inferlet::prelude::*;
use inferlet::sample::{Distribution, Entropy, Logprob};
use inferlet::{brle, task};
use serde_json::{Value, json};

/// The code of what goes wrong, and what the context holds afterwards.
pub async fn report(model: &Model, name: &str) -> Result<Value> {
    let mut ctx = Context::new(model)?;
    let tokens: Vec<u32> = (0..18).collect();
    ctx.append(&tokens).flush().await?;
    ctx.append(&[1, 2]);
    let error = attempt(&mut ctx, model, name).await.err();
    let code = crate::code(error);
    Ok(json!([code, ctx.seq_len(), ctx.buffer()]))
}

async fn attempt(ctx: &mut Context, model: &Model, name: &str) -> Result<()> {
    if name == "truncate" {
        return ctx.truncate(3);
    }
    let warm = Sampler::top_p(1.0, f32::NAN);
    let hot = Distribution {
        temperature: f32::NAN,
        k: 1,
    };
    let mut fwd = ctx.forward();
    match name {
        "index" => drop(fwd.input(&[3]).sample(&[1], Sampler::Argmax)),
        "buffered index" => drop(fwd.probe(2, Entropy)),
        "lengths" => drop(fwd.input_at(&[1, 2], &[1])),
        "rows" => drop(fwd.input(&[1, 2]).attention_mask(&[vec![]])),
        "token" => drop(fwd.input(&[4096])),
        "probed token" => drop(fwd.probe(0, Logprob(4096))),
        "temperature" => drop(fwd.sample(&[0], Sampler::top_p(f32::NAN, 0.9))),
        "endless temperature" => drop(fwd.sample(&[0], Sampler::top_k(f32::INFINITY, 5))),
        "share" => drop(fwd.sample(&[0], warm)),
        "probed temperature" => drop(fwd.probe(0, hot)),
        "k" => drop(fwd.sample(&[0], Sampler::top_k(1.0, 0))),
        "draws" => drop(fwd.sample(&[0], Sampler::multinomial(1.0, 0))),
        "nothing allowed" => drop(fwd.mask(&[4096])),
        "nothing seen" => drop(fwd.input(&[1]).attention_mask(&[vec![21]])),
        "long mask" => drop(fwd.mask(&[0, 4097])),
        "many runs" => drop(fwd.mask(&vec![0; 1_000_000])),
        "position" => drop(fwd.input_at(&[1], &[2048])),
        "length" => drop(fwd.input(&vec![0; 2048])),
        "perturbed" => drop(fwd.input(&[1]).zo_seed(3)),
        "in flight" => {
            let fork = ctx.fork()?;
            let passes = [1, 2].map(|token| {
                let mut fwd = fork.forward();
                fwd.input(&[token]).execute()
            });
            let done: Result<Vec<_>> = task::join_all(passes).await.into_iter().collect();
            return done.map(drop);
        }
        "adapter" => return Adapter::create(model, "a").map(drop),
        "nothing" => return Context::new(model)?.forward().execute().await.map(drop),
        "twice" => {
            let fork = ctx.fork()?;
            let mut fwd = fork.forward();
            fwd.input(&[1]).execute().await?;
            return fwd.execute().await.map(drop);
        }
        "row" => return brle::shortest(&[1], 0).map(drop),
        other => return Err(format!("nothing goes wrong by the name {other}")),
    }
    fwd.execute().await.map(drop)
}
