//! Forward passes and pages as the reference documents print them: one function a snippet, with what the document
//! leaves out completed.

mod bad;

use inferlet::inference::{ForwardPass, Grammar, Matcher};
use inferlet::prelude::*;
use inferlet::sample::{Distribution, Entropy, Logits, Logprob, Logprobs, Slot};
use inferlet::{AnyJson, Constrain, Ebnf, GrammarConstraint, JsonSchema, Regex, brle, task};
use serde_json::{Value, json};

const TOKEN_IDS: [u32; 3] = [70, 71, 72];

#[inferlet::main]
async fn main(snippet: String) -> Result<Value> {
    let model = Model::load("default")?;
    match snippet.as_str() {
        "forward" => forward(&model).await,
        "probes" => probes(&model).await,
        "masks" => masks(&model).await,
        "together" => together(&model).await,
        "cancelled" => cancelled(&model).await,
        "pages" => pages(&model).await,
        "page limits" => page_limits(&model).await,
        "raw pass" => raw_pass(&model).await,
        "schema" => schema(&model),
        "grammars" => grammars(&model).await,
        "matcher" => matcher(&model),
        "wrapped" => wrapped(&model).await,
        "late speculation" => late_speculation(&model).await,
        "both propose" => both_propose(&model),
        other => match other.strip_prefix("bad ") {
            Some(name) => bad::report(&model, name).await,
            None => Err(format!("there is no snippet {other}")),
        },
    }
}

/// The code of an error.
fn code(error: Option<String>) -> Option<&'static str> {
    Some(inferlet::error_code(&error?)?.as_str())
}

fn context(model: &Model) -> Result<Context> {
    let mut ctx = Context::new(model)?;
    ctx.append(&[60, 61]);
    Ok(ctx)
}

/// The first token of the pass decides what is drawn behind it.
async fn forward(model: &Model) -> Result<Value> {
    let token_ids = TOKEN_IDS;
    let ctx = context(model)?;
    let mut fwd = ctx.forward();
    fwd.input(&token_ids);
    let h = fwd.sample(&[0], Sampler::Argmax);
    let out = fwd.execute().await?;
    let token = out.token(h);

    let mut same = context(model)?;
    same.append(&token_ids[..1]);
    let generator = same.generate(Sampler::Argmax).max_tokens(1);
    let expected = generator.collect_tokens().await?[0];
    Ok(json!({ "token": token, "expected": expected }))
}

async fn probes(model: &Model) -> Result<Value> {
    let ctx = context(model)?;
    let mut fwd = ctx.forward();
    fwd.input(&TOKEN_IDS);
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

    let bytes = out.logits(logits).ok_or("no logits")?;
    let is_aligned = bytes.as_ptr().addr().is_multiple_of(align_of::<f32>());
    let row = bytes.as_chunks::<4>().0.iter();
    let row: Vec<f32> = row.map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let likeliest = (0..row.len())
        .rev()
        .max_by(|a, b| row[*a].total_cmp(&row[*b]));
    let (ids, _) = out.distribution(top).ok_or("no distribution")?;
    let both = out.logprobs(some).ok_or("no logarithms")?;
    Ok(json!({
        "likeliest": likeliest,
        "top": ids,
        "difference": both[0] - both[1] - (row[7] - row[8]),
        "one": out.logprobs(one) == Some(&both[..1]),
        "entropy": out.entropy(entropy).is_some_and(|value| value > 0.0),
        "aligned": is_aligned,
    }))
}

/// A mask leaves one token.
async fn masks(model: &Model) -> Result<Value> {
    let ctx = context(model)?;
    let mask = brle::from_bools(&[false, false, true, true, true, false])?;
    let mut fwd = ctx.forward();
    fwd.input(&TOKEN_IDS).mask(&[1234, 1]);
    let h = fwd.sample(&[0, 2], Sampler::top_p(0.6, 0.95));
    let drawn = fwd.execute().await?.tokens_at(h);
    Ok(json!({ "mask": mask, "allowed": brle::allowed(&[2, 3, 1], 6)?, "drawn": drawn }))
}

/// Passes of several contexts that run at once.
async fn together(model: &Model) -> Result<Value> {
    let contexts = (0..3).map(|_| context(model)).collect::<Result<Vec<_>>>()?;
    let passes = (1..).zip(&contexts).map(|(token, ctx)| {
        let mut fwd = ctx.forward();
        fwd.input(&[token]);
        let h = fwd.sample(&[0], Sampler::Argmax);
        let output = fwd.execute();
        async move { Ok(output.await?.token(h)) }
    });
    let tokens: Result<Vec<_>> = task::join_all(passes).await.into_iter().collect();
    Ok(json!(tokens?))
}

/// A pass that is dropped is given up, and its context is as before.
async fn cancelled(model: &Model) -> Result<Value> {
    let ctx = context(model)?;
    let executed = {
        let mut fwd = ctx.forward();
        fwd.input(&TOKEN_IDS);
        fwd.execute()
    };
    let first = match task::select(executed, async { "timer" }).await {
        task::Either::Left(_) => "pass",
        task::Either::Right(first) => first,
    };
    let (length, buffer) = (ctx.seq_len(), ctx.buffer());
    ctx.flush().await?;
    let flushed = ctx.seq_len();
    Ok(json!({ "first": first, "length": length, "buffer": buffer, "flushed": flushed }))
}

/// A loop of one's own over pages: room is made, tokens are computed, rolled back, computed again and committed.
async fn pages(model: &Model) -> Result<Value> {
    let ctx = Context::new(model)?;
    let raw = ctx.inner();
    let size = ctx.page_size();
    let mut seen = Vec::new();
    let mut look = || {
        seen.push([
            raw.committed_page_count(),
            raw.working_page_count(),
            raw.working_page_token_count(),
            ctx.seq_len(),
        ]);
    };
    raw.reserve_working_pages(3)?;
    look();
    let pass = ForwardPass::create(raw)?;
    pass.input(&vec![5; 2 * size as usize + 3])?;
    pass.execute_async().await?;
    look();
    raw.truncate_working_page_tokens(size);
    look();
    raw.commit_working_pages(1)?;
    look();
    raw.release_working_pages(1);
    look();
    raw.release_working_pages(9);
    look();
    raw.drop_committed_pages(1)?;
    look();
    raw.check()?;
    Ok(json!({ "size": size, "seen": seen }))
}

/// What does not fit has a code, and changes nothing.
async fn page_limits(model: &Model) -> Result<Value> {
    let mut ctx = Context::new(model)?;
    let size = ctx.page_size();
    ctx.append(&vec![5; size as usize + 1]);
    ctx.flush().await?;
    let raw = ctx.inner();
    let errors = [
        raw.commit_working_pages(1),
        raw.drop_committed_pages(1),
        raw.drop_committed_pages(2),
    ];
    let codes: Vec<_> = errors
        .into_iter()
        .map(|result| code(result.err()))
        .collect();
    let state = (raw.committed_page_count(), raw.working_page_count());
    let is_whole = state == (1, 1) && ctx.seq_len() == size + 1;
    let truncated = ctx.truncate(2).err();
    ctx.release();
    let after = ctx.inner().reserve_working_pages(1).err();
    Ok(
        json!({ "codes": codes, "whole": is_whole, "truncate": code(truncated), "released": code(after) }),
    )
}

/// The raw resource gives slots without handles.
async fn raw_pass(model: &Model) -> Result<Value> {
    let ctx = context(model)?;
    let pass = ForwardPass::create(ctx.inner())?;
    pass.input(&TOKEN_IDS)?;
    pass.probe(0, &inferlet::sample::Probe::to_raw(&Logprob(7)))?;
    let output = pass.execute_async().await?;
    let is_read = matches!(&output.slots[..], [Slot::Logprobs(values)] if values.len() == 1);
    let again = pass.execute_async().await.err();
    Ok(json!({ "read": is_read, "again": code(again) }))
}

struct Everything;

impl Constrain for Everything {
    fn step(&mut self, _accepted: &[u32]) -> &[u32] {
        &[]
    }
}

struct Chosen(bool);

impl Schema for Chosen {
    fn build_constraint(&self, model: &Model) -> Result<GrammarConstraint> {
        match self.0 {
            true => Ok(GrammarConstraint::of(Everything)),
            false => Err(format!("this schema makes nothing for {}", model.name())),
        }
    }
}

/// A schema makes a constraint of the generator's model, or says why not.
fn schema(model: &Model) -> Result<Value> {
    let ctx = context(model)?;
    let error = ctx
        .generate(Sampler::Argmax)
        .constrain_with(Chosen(false))
        .err();
    Ok(json!(error))
}

/// What is written under each kind of schema, with why it ended.
async fn grammars(model: &Model) -> Result<Value> {
    let ebnf = Grammar::from_ebnf("root ::= \"a\" root \"b\" | \"ab\"")?;
    let schema = r#"{"type": "object", "properties": {"a": {"type": "integer", "maximum": 9, "minimum": 0}}, "required": ["a"], "additionalProperties": false}"#;
    let mut written = Vec::new();
    let schemas: [Box<dyn Schema>; 4] = [
        Box::new(JsonSchema(schema)),
        Box::new(Regex("[a-c]{3}")),
        Box::new(Ebnf("start: \"x\" | \"yy\"")),
        Box::new(AnyJson),
    ];
    let sampler = Sampler::multinomial(1.5, 1);
    for schema in schemas {
        let ctx = context(model)?;
        let g = ctx
            .generate(sampler)
            .seed(5)
            .max_tokens(60)
            .constrain_with(schema)?;
        let tokens = g.collect_tokens().await?;
        written.push(json!([
            model.tokenizer().decode(&tokens)?,
            g.finish_reason().map(|it| it.as_str())
        ]));
    }
    let constraints = [
        GrammarConstraint::json(model),
        GrammarConstraint::from_grammar(&ebnf, model),
        GrammarConstraint::from_json_schema(schema, model)?,
        GrammarConstraint::from_regex("[a-c]{3}", model)?,
        GrammarConstraint::from_ebnf("root ::= [0-9]", model)?,
        GrammarConstraint::new(Matcher::new(&Grammar::json()?, &model.tokenizer())),
    ];
    for constraint in constraints {
        let ctx = context(model)?;
        let g = ctx
            .generate(sampler)
            .seed(5)
            .max_tokens(60)
            .constrain(constraint);
        written.push(json!(model.tokenizer().decode(&g.collect_tokens().await?)?));
    }
    let ctx = context(model)?;
    let borrowed = ctx
        .generate(sampler)
        .seed(5)
        .max_tokens(60)
        .constrain_with(&ebnf)?;
    written.push(json!(
        model
            .tokenizer()
            .decode(&borrowed.collect_tokens().await?)?
    ));
    let refused = Grammar::from_json_schema(r#"{"contains": {}}"#).err();
    written.push(json!(code(refused)));
    Ok(json!(written))
}

/// A matcher by hand.
fn matcher(model: &Model) -> Result<Value> {
    let tokenizer = model.tokenizer();
    let mut m = Matcher::new(&Grammar::from_regex("ab?")?, &tokenizer);
    let first = brle::allowed(&m.next_token_logit_mask(), tokenizer.vocab_size())?;
    m.accept_tokens(&tokenizer.encode("a"))?;
    let begun = m.is_terminated();
    let copy = m.fork();
    m.accept_tokens(&tokenizer.encode("b"))?;
    let refused = m.accept_tokens(&tokenizer.encode("b")).err();
    let ended = m.is_terminated();
    m.reset();
    Ok(json!([
        first.len(),
        begun,
        ended,
        m.is_terminated(),
        copy.is_terminated(),
        code(refused)
    ]))
}

/// A constraint of one's own that wraps a grammar, and lets the first token be any.
struct Late(GrammarConstraint);

impl Constrain for Late {
    fn step(&mut self, accepted: &[u32]) -> &[u32] {
        let mask = self.0.step(accepted);
        if accepted.is_empty() { &[] } else { mask }
    }
}

/// Why a text cannot go on is what the step returns.
async fn wrapped(model: &Model) -> Result<Value> {
    let constraint = GrammarConstraint::from_regex("abc", model)?;
    let ctx = context(model)?;
    let g = ctx
        .generate(Sampler::Argmax)
        .max_tokens(5)
        .constrain(Late(constraint));
    Ok(json!(code(g.collect_tokens().await.err())))
}

/// What the engine makes a generator with is told before its first step.
async fn late_speculation(model: &Model) -> Result<Value> {
    let ctx = context(model)?;
    let mut generator = ctx.generate(Sampler::Argmax).max_tokens(2);
    let step = generator.next()?.ok_or("there is a step")?;
    step.execute().await?;
    let error = generator.system_speculation().check().err();
    Ok(json!(code(error)))
}

struct Nothing;

impl Speculator for Nothing {
    fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
        (vec![], vec![])
    }

    fn accept(&mut self, _accepted: &[u32]) {}
}

/// A speculator of the program and the engine cannot both propose.
fn both_propose(model: &Model) -> Result<Value> {
    let ctx = context(model)?;
    let one = ctx
        .generate(Sampler::Argmax)
        .speculator(Nothing)
        .system_speculation();
    let first = one.check().err();
    Ok(json!(code(first)))
}
