//! The snippets of the Rust reference document on text, generators, passes, constraints, decoders, tools, snapshots,
//! adapters and scheduling: one function a snippet, with what the document leaves out around it.

use inferlet::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[inferlet::main]
async fn main(snippet: String) -> Result<Value> {
    match snippet.as_str() {
        "model" => model(),
        "context" => context(),
        "generate" => generate().await,
        "typed" => typed().await,
        "by hand" => by_hand().await,
        "forward" => forward().await,
        "samplers" => samplers(),
        "probes" => probes().await,
        "schema" => schema().await,
        "constrain" => constrain().await,
        "grammar constraint" => grammar_constraint().await,
        "matcher" => matcher(),
        "speculator" => speculator().await,
        "printed traits" => printed_traits().await,
        "chat decoder" => chat_decoder(),
        "reasoning decoder" => reasoning_decoder(),
        "tools" => tools_of_a_model(),
        "snapshots" => snapshots(),
        "adapters" => adapters().await,
        "scheduling" => market().await,
        other => Err(format!("there is no snippet {other}")),
    }
}

fn filled() -> Result<Context> {
    let mut ctx = Context::new(&Model::load("default")?)?;
    ctx.append(&[41, 42]);
    ctx.check()?;
    Ok(ctx)
}

fn model() -> Result<Value> {
    use inferlet::model::Model;

    let model = Model::load("default")?;
    Ok(json!(model.name()))
}

fn context() -> Result<Value> {
    let model = Model::load("default")?;
    use inferlet::Context;

    let mut ctx = Context::new(&model)?;
    ctx.user("Hi").check()?;
    Ok(json!(ctx.page_size()))
}

async fn generate() -> Result<Value> {
    let ctx = filled()?;
    let g = ctx
        .generate(Sampler::TopP {
            temperature: 0.6,
            p: 0.95,
        })
        .max_tokens(256);
    Ok(json!(g.collect_text().await?))
}

#[derive(Deserialize, Serialize, inferlet::schemars::JsonSchema)]
#[schemars(crate = "inferlet::schemars")]
struct Output {
    #[schemars(regex(pattern = "^[ab]$"))]
    text: String,
}

async fn typed() -> Result<Value> {
    let ctx = filled()?;
    let g = ctx.generate(Sampler::Argmax);
    let output = g.collect_json::<Output>().await?;
    Ok(json!(output))
}

async fn by_hand() -> Result<Value> {
    let chosen_token = 77;
    let ctx = filled()?;
    let mut g = ctx.generate(Sampler::Argmax).max_tokens(256);

    #[allow(unused_mut, unused_variables, reason = "as it is printed")]
    while let Some(mut step) = g.next()? {
        let out = step.execute().await?;
        // Inspect or override; commit chosen tokens.
        g.accept(&[chosen_token]);
    }
    let (n_generated, reason) = (g.tokens_generated(), g.finish_reason());
    let mut same = filled()?;
    same.append(&[chosen_token; 256]);
    let [behind, expected] = [&ctx, &same].map(|it| it.generate(Sampler::Argmax).max_tokens(3));
    let is_same = behind.collect_tokens().await? == expected.collect_tokens().await?;
    Ok(json!([n_generated, reason.map(|it| it.as_str()), is_same]))
}

async fn forward() -> Result<Value> {
    let (ctx, token_ids) = (filled()?, [70, 71, 72]);
    let mut fwd = ctx.forward();
    fwd.input(&token_ids);
    let h = fwd.sample(&[0], Sampler::Argmax);
    let out = fwd.execute().await?;
    let token = out.token(h);
    Ok(json!(token))
}

fn samplers() -> Result<Value> {
    use inferlet::sample::Sampler;

    let pairs = [
        (
            Sampler::TopP {
                temperature: 0.6,
                p: 0.9,
            },
            Sampler::top_p(0.6, 0.9),
        ),
        (
            Sampler::TopK {
                temperature: 0.6,
                k: 5,
            },
            Sampler::top_k(0.6, 5),
        ),
        (
            Sampler::MinP {
                temperature: 0.6,
                p: 0.1,
            },
            Sampler::min_p(0.6, 0.1),
        ),
        (
            Sampler::TopKTopP {
                temperature: 0.6,
                k: 5,
                p: 0.9,
            },
            Sampler::top_k_top_p(0.6, 5, 0.9),
        ),
        (
            Sampler::Multinomial {
                temperature: 0.6,
                draws: 1,
            },
            Sampler::multinomial(0.6, 1),
        ),
    ];
    Ok(json!(pairs.iter().all(|(variant, made)| variant == made)))
}

async fn probes() -> Result<Value> {
    use inferlet::sample::{Distribution, Entropy, Logits, Logprob, Logprobs};

    let ctx = filled()?;
    let mut fwd = ctx.forward();
    fwd.input(&[70, 71, 72]);
    let logits = fwd.probe(2, Logits);
    let distribution = Distribution {
        temperature: 1.0,
        k: 3,
    };
    let top = fwd.probe(2, distribution);
    let one = fwd.probe(2, Logprob(7));
    let some = fwd.probe(2, Logprobs(vec![7, 8]));
    let entropy = fwd.probe(2, Entropy);
    let out = fwd.execute().await?;
    Ok(json!([
        out.logits(logits).map(<[u8]>::len),
        out.distribution(top).map(|(ids, _)| ids.len()),
        out.logprobs(one).map(|it| it[0]) == out.logprobs(some).map(|it| it[0]),
        out.entropy(entropy).is_some_and(|value| value > 0.0),
    ]))
}

async fn schema() -> Result<Value> {
    use inferlet::{AnyJson, Ebnf, JsonSchema, Regex, Schema};

    let (ctx, sampler, s) = (filled()?, Sampler::Argmax, r#"{"enum": [1]}"#);
    let g = ctx.generate(sampler).constrain_with(JsonSchema(s))?;
    let text = g.collect_text().await?;
    let model = ctx.model();
    let _: [Result<_>; 3] = [
        AnyJson.build_constraint(model),
        Regex("a").build_constraint(model),
        Ebnf("start: \"a\"").build_constraint(model),
    ];
    Ok(json!(text))
}

async fn constrain() -> Result<Value> {
    use inferlet::Constrain;

    struct Free;

    impl Constrain for Free {
        /// Advance internal state with the tokens just accepted, then return the
        /// BRLE-encoded logit mask for the next position.
        /// Returning `&[]` means "no restriction".
        fn step(&mut self, accepted: &[u32]) -> &[u32] {
            let _ = accepted;
            &[]
        }
    }

    let ctx = filled()?;
    let fork = ctx.fork()?;
    let free = fork.generate(Sampler::Argmax).max_tokens(4);
    let g = ctx.generate(Sampler::Argmax).max_tokens(4).constrain(Free);
    Ok(json!(
        free.collect_tokens().await? == g.collect_tokens().await?
    ))
}

async fn grammar_constraint() -> Result<Value> {
    use inferlet::GrammarConstraint;

    let (ctx, my_grammar) = (filled()?, "root ::= \"x\"");
    let model = ctx.model().clone();
    let gc = GrammarConstraint::from_ebnf(my_grammar, &model)?;
    let g = ctx.generate(Sampler::Argmax).constrain(gc);
    Ok(json!(g.collect_text().await?))
}

fn matcher() -> Result<Value> {
    let (model, grammar_src) = (Model::load("default")?, "root ::= \"a\" \"b\"?");
    let prefix_tokens = model.tokenizer().encode("ab");
    use inferlet::inference::{Grammar, Matcher};

    let grammar = Grammar::from_ebnf(&grammar_src)?;
    let mut m = Matcher::new(&grammar, &model.tokenizer());

    let first = m.next_token_logit_mask();
    m.accept_tokens(&prefix_tokens)?;
    let done = m.is_terminated();
    m.reset();
    let mask = m.next_token_logit_mask();
    Ok(json!([mask == first, done, m.is_terminated()]))
}

async fn speculator() -> Result<Value> {
    use inferlet::spec::Speculator;

    struct MySpec;

    impl Speculator for MySpec {
        fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
            (vec![], vec![])
        }

        fn accept(&mut self, accepted: &[u32]) {
            let _ = accepted;
        }
    }

    let spec = MySpec;
    let ctx = filled()?;
    let fork = ctx.fork()?;
    let free = fork.generate(Sampler::Argmax).max_tokens(4);
    let g = ctx.generate(Sampler::Argmax).max_tokens(4).speculator(spec);
    Ok(json!(
        free.collect_tokens().await? == g.collect_tokens().await?
    ))
}

/// The traits as they are printed.
mod printed {
    pub trait Constrain: Send {
        /// Advance internal state with the tokens just accepted, then return the
        /// BRLE-encoded logit mask for the next position.
        /// Returning `&[]` means "no restriction".
        fn step(&mut self, accepted: &[u32]) -> &[u32];
    }

    pub trait Speculator: Send {
        /// Produce draft tokens and their absolute positions for the next
        /// forward pass. Empty vec = "no speculation this step."
        fn draft(&mut self) -> (Vec<u32>, Vec<u32>);

        /// Called with the verifier's accepted token sequence. The first
        /// accepted token corresponds to the anchor's own next-token
        /// prediction; the rest (if any) are matched drafts.
        fn accept(&mut self, accepted: &[u32]);

        /// Roll back the last `n` drafted tokens. Default impl is a no-op.
        fn rollback(&mut self, n: u32) {
            let _ = n;
        }

        /// Reset to initial state. Default impl is a no-op.
        fn reset(&mut self) {}
    }
}

/// What has a printed trait, as what has that of the SDK.
struct Ours<T>(T);

impl<T: printed::Constrain> inferlet::Constrain for Ours<T> {
    fn step(&mut self, accepted: &[u32]) -> &[u32] {
        self.0.step(accepted)
    }
}

impl<T: printed::Speculator> inferlet::spec::Speculator for Ours<T> {
    fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
        self.0.draft()
    }

    fn accept(&mut self, accepted: &[u32]) {
        self.0.accept(accepted);
    }

    fn rollback(&mut self, n: u32) {
        self.0.rollback(n);
    }

    fn reset(&mut self) {
        self.0.reset();
    }
}

/// What has a trait of the SDK, as what has the printed one.
struct Printed<T>(T);

impl<T: inferlet::Constrain> printed::Constrain for Printed<T> {
    fn step(&mut self, accepted: &[u32]) -> &[u32] {
        self.0.step(accepted)
    }
}

impl<T: inferlet::spec::Speculator> printed::Speculator for Printed<T> {
    fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
        self.0.draft()
    }

    fn accept(&mut self, accepted: &[u32]) {
        self.0.accept(accepted);
    }

    fn rollback(&mut self, n: u32) {
        self.0.rollback(n);
    }

    fn reset(&mut self) {
        self.0.reset();
    }
}

/// One of each that has no more than it needs.
struct Least;

impl printed::Constrain for Least {
    fn step(&mut self, _accepted: &[u32]) -> &[u32] {
        &[]
    }
}

impl printed::Speculator for Least {
    fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
        (vec![], vec![])
    }

    fn accept(&mut self, _accepted: &[u32]) {}
}

/// The traits of the SDK are the printed ones: each is had by whatever has the other.
async fn printed_traits() -> Result<Value> {
    let ctx = filled()?;
    let fork = ctx.fork()?;
    let free = fork.generate(Sampler::Argmax).max_tokens(4);
    let g = ctx.generate(Sampler::Argmax).max_tokens(4);
    let g = g.constrain(Ours(Printed(Ours(Least))));
    let g = g.speculator(Ours(Printed(Ours(Least))));
    Ok(json!(
        free.collect_tokens().await? == g.collect_tokens().await?
    ))
}

fn chat_decoder() -> Result<Value> {
    let model = Model::load("default")?;
    let tokens = model.tokenizer().encode("Hello");
    let mut seen = String::new();
    use inferlet::chat;

    let mut dec = chat::Decoder::new(&model);
    match dec.feed(&tokens)? {
        chat::Event::Delta(s) => seen.push_str(&s),
        chat::Event::Done(s) => seen.push_str(&s),
        chat::Event::Idle => { /* no semantic boundary */ }
        chat::Event::Interrupt(token_id) => return Ok(json!(token_id)),
    }
    dec.reset();
    Ok(json!(seen))
}

fn reasoning_decoder() -> Result<Value> {
    let model = Model::load("default")?;
    let tokens = model.tokenizer().encode("<think>hm</think>4");
    let mut seen = Vec::new();
    use inferlet::reasoning;

    let mut dec = reasoning::Decoder::new(&model);
    for event in dec.events(&tokens) {
        seen.push(match event? {
            reasoning::Event::Idle => "idle".to_owned(),
            reasoning::Event::Start => "start".to_owned(),
            reasoning::Event::Delta(s) | reasoning::Event::End(s) => s,
        });
    }
    Ok(json!(seen))
}

fn tools_of_a_model() -> Result<Value> {
    use inferlet::tools;

    let model = Model::load("default")?;
    let schema = r#"{"name": "get_price", "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}}"#;
    let text = r#"<tool_call>{"name": "get_price", "arguments": {"item": "violin"}}</tool_call>"#;
    let mut ctx = Context::new(&model)?;
    let equipped = tools::equip_prefix(&model, &[schema])?;
    ctx.append(&equipped).user("How much?").cue();
    ctx.append_text(text);
    ctx.append(&tools::answer_prefix(
        &model,
        "get_price",
        r#"{"price":340}"#,
    ));
    let Some((name, args)) = tools::parse_call(&model, text) else {
        return Ok(Value::Null);
    };
    let told = model.tokenizer().decode(ctx.buffer())?;
    Ok(json!([name, args, told.contains(r#"{"price":340}"#)]))
}

fn snapshots() -> Result<Value> {
    let model = Model::load("default")?;
    let (ctx, name) = (filled()?, "of the Rust reference");
    ctx.save(name)?;
    let opened = Context::open(&model, name)?;
    let taken = Context::take(&model, name)?;
    let is_gone = Context::open(&model, name).is_err() && Context::delete(&model, name).is_err();
    let kept = Context::take(&model, &ctx.snapshot()?)?;
    let same = [&opened, &taken, &kept].map(|it| it.buffer() == ctx.buffer());
    ctx.save(name)?;
    Context::delete(&model, name)?;
    Ok(json!([same, is_gone]))
}

async fn adapters() -> Result<Value> {
    let (model, ctx) = (Model::load("default")?, filled()?);
    use inferlet::adapter::Adapter;

    let adapter = Adapter::create(&model, "my-adapter")?;
    let fork = adapter.fork("my-copy");
    adapter.save("rust-reference")?;
    fork.load("rust-reference")?;
    let (first, second) = (ctx.fork()?, ctx.fork()?);
    let free = first.generate(Sampler::Argmax).max_tokens(4);
    let g = second.generate(Sampler::Argmax).max_tokens(4);
    let g = g.adapter(&adapter);
    let is_same = free.collect_tokens().await? == g.collect_tokens().await?;
    let mut drawn = Vec::new();
    for adapter in [None, Some(&fork)] {
        let ctx = ctx.fork()?;
        let mut fwd = ctx.forward();
        fwd.input(&[70, 71, 72]);
        if let Some(adapter) = adapter {
            fwd.adapter(adapter);
        }
        let h = fwd.sample(&[2], Sampler::Argmax);
        drawn.push(fwd.execute().await?.token(h));
    }
    let names = ["my-adapter", "my-copy", "nobody has it"];
    let is_there = names.map(|name| Adapter::open(&model, name).is_some());
    adapter.destroy();
    fork.destroy();
    let is_drawn = drawn[0].is_some() && drawn[0] == drawn[1];
    Ok(json!([[is_same, is_drawn], is_there]))
}

async fn market() -> Result<Value> {
    let (model, ctx) = (Model::load("default")?, filled()?);
    ctx.set_bid(2.5); // override the next-step bid
    let _g = ctx.idle(); // RAII guard: bid 0 until `_g` drops
    ctx.suspend()?; // return all pages to the pool; resume later
    ctx.flush().await?;
    use inferlet::scheduling;

    let numbers = [
        scheduling::price(),
        scheduling::rent(&ctx),
        scheduling::dividend(&model),
    ];
    let has_some = scheduling::balance(&model) > 0.0;
    let is_timed = scheduling::latency(&ctx) >= 0.0;
    Ok(json!([numbers, has_some, is_timed, ctx.seq_len()]))
}
