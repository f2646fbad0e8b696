//! Bad input to passes: what goes wrong, by its name.

use inferlet::prelude::*;
use inferlet::sample::{Distribution, Entropy, Logprob};
use inferlet::spec::Speculator;
use inferlet::{Constrain, brle, task};
use serde_json::{Value, json};

/// The code of what goes wrong, its message, and what the context and the one that errs hold afterwards, where that is
/// another one.
pub async fn report(model: &Model, name: &str) -> Result<Value> {
    let mut ctx = Context::new(model)?;
    let tokens: Vec<u32> = (0..18).collect();
    ctx.append(&tokens).flush().await?;
    ctx.append(&[1, 2]);
    let mut fork = None;
    let error = attempt(&mut ctx, model, name, &mut fork).await.err();
    let message = error.clone();
    let code = crate::code(error);
    let mut report = vec![json!(code), json!(message), state(&ctx)];
    report.extend(fork.as_ref().map(state));
    Ok(json!(report))
}

/// What a context holds; or the code of whoever asks.
fn state(ctx: &Context) -> Value {
    let held = json!([ctx.seq_len(), ctx.buffer()]);
    ctx.check()
        .map_or_else(|error| json!(crate::code(Some(error))), |()| held)
}

fn bid(ctx: &Context, value: f64) -> Result<()> {
    ctx.set_bid(value);
    ctx.check()
}

/// A constraint that answers with this mask.
struct Masked(Vec<u32>);

impl Constrain for Masked {
    fn step(&mut self, _accepted: &[u32]) -> &[u32] {
        &self.0
    }
}

/// One that never answers.
struct Hanging;

impl Constrain for Hanging {
    fn step(&mut self, _accepted: &[u32]) -> &[u32] {
        forever()
    }
}

/// One that panics.
struct Panicking;

impl Constrain for Panicking {
    fn step(&mut self, _accepted: &[u32]) -> &[u32] {
        panic!("of its own")
    }
}

/// A speculator that proposes these tokens at these positions; none: it never answers.
struct Drafts(Option<(Vec<u32>, Vec<u32>)>);

impl Speculator for Drafts {
    fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
        self.0.clone().unwrap_or_else(|| forever())
    }

    fn accept(&mut self, _accepted: &[u32]) {}
}

fn forever() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// What goes wrong in the first step of a generator.
async fn step_wrongly(ctx: &Context, name: &str) -> Result<()> {
    let drafts = |tokens: Vec<u32>, positions: Vec<u32>| Drafts(Some((tokens, positions)));
    let g = ctx.generate(Sampler::Argmax).max_tokens(2);
    let mut g = match name {
        "drafted token" => g.speculator(drafts(vec![4096], vec![20])),
        "many drafts" => g.speculator(drafts(vec![1; 100_000], (20..100_020).collect())),
        "elsewhere" => g.speculator(drafts(vec![1, 2], vec![20, 22])),
        "endless drafts" => g.speculator(Drafts(None)),
        "both" => g.system_speculation().speculator(drafts(vec![], vec![])),
        "nothing left" => g.constrain(Masked(vec![4096])),
        "throws" => g.constrain(Masked(vec![0, 4097])),
        "ten million runs of a step" => g.constrain(Masked(vec![0; 10_000_000])),
        "hangs" => g.constrain(Hanging),
        "panics" => g.constrain(Panicking),
        other => return Err(format!("nothing goes wrong by the name {other}")),
    };
    while let Some(step) = g.next()? {
        step.execute().await?;
    }
    Ok(())
}

/// Fills a context while a collector runs over it that asks a constraint.
async fn fill_meanwhile(ctx: &mut Context) -> Result<()> {
    let g = ctx.generate(Sampler::Argmax).max_tokens(2);
    let collected = g.constrain(Masked(vec![])).collect_tokens();
    let filled = async {
        ctx.append(&[5]);
        ctx.check()
    };
    match task::select(collected, filled).await {
        task::Either::Left(collected) => collected.map(drop),
        task::Either::Right(filled) => filled,
    }
}

/// What is wanted of a step that is over, after which the next one was opened. The type of a step does not let it be
/// executed twice, so that it is the generator which is used too early.
async fn step_over(fork: &Context) -> Result<()> {
    let mut g = fork.generate(Sampler::Argmax);
    if let Some(step) = g.next()? {
        step.execute().await?;
    }
    let Some(step) = g.next()? else {
        return Ok(());
    };
    drop(step.execute());
    g.next().map(drop)
}

async fn attempt(
    ctx: &mut Context,
    model: &Model,
    name: &str,
    fork: &mut Option<Context>,
) -> Result<()> {
    if name == "truncate" {
        return ctx.truncate(3);
    }
    if name == "filled" {
        return fill_meanwhile(ctx).await;
    }
    let warm = Sampler::top_p(1.0, f32::NAN);
    let hot = Distribution {
        temperature: f32::NAN,
        k: 1,
    };
    let wide = Distribution {
        temperature: 1.0,
        k: u32::MAX,
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
        "probed k" => drop(fwd.probe(0, wide)),
        "k" => drop(fwd.sample(&[0], Sampler::top_k(1.0, 0))),
        "draws" => drop(fwd.sample(&[0], Sampler::multinomial(1.0, 0))),
        "nothing allowed" => drop(fwd.mask(&[4096])),
        "nothing seen" => drop(fwd.input(&[1]).attention_mask(&[vec![21]])),
        "long mask" => drop(fwd.mask(&[0, 4097])),
        "many runs" => drop(fwd.mask(&vec![0; 1_000_000])),
        "position" => drop(fwd.input_at(&[1], &[2048])),
        "length" => drop(fwd.input(&vec![0; 2048])),
        "perturbed" => drop(fwd.input(&[1]).zo_seed(3)),
        "long row" => return fwd.input(&[1]).attention_mask(&[vec![0, 2049]]).check(),
        "many runs of a row" => return fwd.input(&[1]).attention_mask(&[vec![0; 2050]]).check(),
        "ten million runs of a row" => {
            return fwd.attention_mask(&[vec![], vec![0; 10_000_000]]).check();
        }
        "in flight" => {
            let fork = fork.insert(ctx.fork()?);
            let passes = [1, 2].map(|token| {
                let mut fwd = fork.forward();
                fwd.input(&[token]).execute()
            });
            let done: Result<Vec<_>> = task::join_all(passes).await.into_iter().collect();
            return done.map(drop);
        }
        "adapter" => return Adapter::create_with(model, "a", 0, 1.0).map(drop),
        "wide adapter" => return Adapter::create_with(model, "a", 100_000, 1.0).map(drop),
        "bid of no number" => return bid(ctx, f64::NAN),
        "endless bid" => return bid(ctx, f64::INFINITY),
        "negative bid" => return bid(ctx, -0.5),
        "bid beyond all" => return bid(ctx, 9_223_372_036_854_775_808.0),
        "nothing" => return Context::new(model)?.forward().execute().await.map(drop),
        "twice" => {
            let fork = fork.insert(ctx.fork()?);
            let mut fwd = fork.forward();
            fwd.input(&[1]).execute().await?;
            return fwd.execute().await.map(drop);
        }
        "row" => return brle::shortest(&[1], 0).map(drop),
        "long text" => {
            let text = "x".repeat((4 << 20) + 1);
            return model.tokenizer().try_encode(&text).map(drop);
        }
        "ten million runs of nothing" => {
            return brle::shortest(&vec![0; 10_000_000], 4096).map(drop);
        }
        "ten million runs" => drop(fwd.mask(&vec![0; 10_000_000])),
        "released" => {
            let fork = fork.insert(ctx.fork()?);
            fork.release();
            return fork.forward().input(&[1]).execute().await.map(drop);
        }
        "stale" => return step_over(fork.insert(ctx.fork()?)).await,
        other => return step_wrongly(ctx, other).await,
    }
    fwd.execute().await.map(drop)
}
