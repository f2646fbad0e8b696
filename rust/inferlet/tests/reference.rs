//! The snippets of the reference compile as they are printed there. What they do is tested with the engine, which a
//! native build has not.

#![allow(dead_code, reason = "most of it is only compiled")]
#![allow(unused_mut, reason = "some snippets declare more than they use")]

/// The entry point.
// rows: RS-001..003
mod entry {
    use inferlet::Result;
    use serde::{Deserialize, Serialize};

    #[derive(Deserialize)]
    struct Input {
        prompt: String,
    }

    #[derive(Serialize)]
    struct Output {
        text: String,
    }

    #[inferlet::main]
    async fn main(input: Input) -> Result<Output> {
        Ok(Output { text: input.prompt })
    }
}

// rows: RS-006..008 RS-011 RS-014..015
mod prelude {
    use inferlet::prelude::*;

    mod program {
        use inferlet::prelude::{Result, main};

        #[main]
        async fn main(question: String) -> Result<String> {
            Ok(question)
        }
    }

    async fn waits() -> Option<String> {
        inferlet::session::receive().wait_async().await
    }

    async fn hears(sub: &messaging::Subscription) -> Option<String> {
        sub.get_async().await
    }

    fn names(
        _: &Context,
        _: &Model,
        _: Generator,
        _: GenStep,
        _: Output,
        _: Sampler,
    ) -> Result<()> {
        runtime::models();
        let model = Model::load("default")?;
        chat::Decoder::new(&model);
        reasoning::Decoder::new(&model);
        tools::Decoder::new(&model);
        Ok(())
    }
}

// rows: RS-020 RS-025 RS-027 RS-032
mod model_and_tokenizer {
    use inferlet::Tokenizer;
    use inferlet::model::Model;
    use inferlet::runtime;

    fn names() -> inferlet::Result<()> {
        let _: (Vec<String>, String, String, String) = (
            runtime::models(),
            runtime::version(),
            runtime::instance_id(),
            runtime::username(),
        );
        let model = Model::load("default")?;
        let tok: &Tokenizer = model.tokenizer();
        let ids: Vec<u32> = tok.encode("text");
        let _: String = tok.decode(&ids)?;
        let _: (Vec<u32>, Vec<Vec<u8>>) = tok.vocabs();
        let _: (Vec<u32>, Vec<Vec<u8>>) = tok.special_tokens();
        let _: &str = tok.split_regex();
        Ok(())
    }
}

// rows: RS-033 RS-050 RS-053
mod context {
    use inferlet::Context;
    use inferlet::model::Model;

    async fn names(model: Model) -> inferlet::Result<()> {
        let mut ctx = Context::new(&model)?;
        ctx.system("s")
            .user("u")
            .assistant("a")
            .cue()
            .seal()
            .append(&[1]);
        ctx.flush().await?;
        ctx.truncate(1)?;
        let _: Context = ctx.fork()?;
        let _: &Model = ctx.model();
        let _: (u32, u32, &[u32]) = (ctx.page_size(), ctx.seq_len(), ctx.buffer());
        Ok(())
    }
}

// rows: RS-063 RS-111 RS-169
mod generator {
    use inferlet::sample::Sampler;
    use inferlet::{Context, chat};

    async fn collect(ctx: &mut Context) -> inferlet::Result<(String, Vec<u32>)> {
        let g = ctx
            .generate(Sampler::TopP {
                temperature: 0.6,
                p: 0.95,
            })
            .max_tokens(256);
        let text = g.collect_text().await?;
        let tokens = ctx
            .generate(Sampler::Argmax)
            .stop(&[1])
            .add_stop(&[2])
            .seed(0)
            .collect_tokens()
            .await?;
        Ok((text, tokens))
    }

    async fn step_by_step(ctx: &mut Context) -> inferlet::Result<usize> {
        let mut g = ctx.generate(Sampler::Argmax).max_tokens(256);

        while let Some(mut step) = g.next()? {
            let out = step.execute().await?;
            // The context is not borrowed while a generator lives.
            ctx.append(&out.tokens);
        }
        let (_, n): (bool, usize) = (g.is_done(), g.tokens_generated());
        Ok(n)
    }

    fn decode(model: inferlet::Model, tokens: Vec<u32>) -> inferlet::Result<()> {
        let mut dec = chat::Decoder::new(&model);
        match dec.feed(&tokens)? {
            chat::Event::Delta(s) => drop::<String>(s),
            chat::Event::Done(s) => drop::<String>(s),
            chat::Event::Idle => {}
            chat::Event::Interrupt(token_id) => assert!(token_id < 5),
        }
        dec.reset();
        Ok(())
    }
}

// rows: RS-004 RS-201 SES-014 SES-032
mod session {
    use inferlet::pie::core::session;
    use inferlet::{FutureBlobExt, FutureStringExt};

    async fn blobs(pdf_bytes: Vec<u8>) -> inferlet::Result<()> {
        session::send_file(&pdf_bytes); // binary
        let blob: Vec<u8> = session::receive_file()
            .wait_async()
            .await
            .ok_or("client disconnected")?;
        session::send_file(&blob);
        Ok(())
    }

    async fn talk() -> inferlet::Result<String> {
        session::send("hello"); // text
        let next = session::receive();
        if next.wait_async().await.as_deref() == Some("stop") {
            return Ok("stopped".into());
        }
        let message = session::receive()
            .wait_async()
            .await
            .ok_or("client disconnected")?;
        Ok(message)
    }
}

// rows: RS-209 RS-211..218
mod messages {
    use inferlet::messaging;
    use inferlet::{FutureStringExt, SubscriptionExt};

    async fn names(topic: &str, msg: &str) -> inferlet::Result<()> {
        messaging::broadcast(topic, msg)?;
        let sub: messaging::Subscription = messaging::subscribe(topic);
        messaging::push(topic, msg)?;
        let next = messaging::pull(topic);
        let _pulled: Option<String> = next.wait_async().await;
        let pollable = sub.pollable();
        pollable.block();
        let _heard: Option<String> = sub.get();
        let _heard: Option<String> = sub.get_async().await;
        sub.unsubscribe();
        Ok(())
    }
}

// rows: RS-016..019
#[test]
fn arguments_are_parsed() {
    use inferlet::{Arguments, parse_args};

    let raw_argv = vec!["--n".to_owned(), "7".to_owned()];
    let mut args: Arguments = parse_args(raw_argv);
    let n: usize = args.value_from_str("--n").unwrap_or(4);
    let m: usize = args.value_from_str("--m").unwrap_or(4);
    assert_eq!((n, m), (7, 4));
}

// rows: RS-009..010 RS-012..013
mod prelude_of_passes {
    use inferlet::prelude::*;

    struct Nothing;

    impl Speculator for Nothing {
        fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
            (vec![], vec![])
        }

        fn accept(&mut self, accepted: &[u32]) {
            drop(accepted.to_vec());
        }
    }

    fn names(_: Forward<'_>, _: Output, _: SampleHandle, _: Adapter) {}

    fn generic<P: Probe>(fwd: &mut Forward<'_>, probe: P) -> ProbeHandle<P> {
        fwd.probe(0, probe)
    }

    fn schemas(_: &impl Schema) {}

    async fn raw(pass: inferlet::inference::ForwardPass) -> Result<()> {
        pass.execute_async().await?;
        Ok(())
    }
}

/// Page operations.
// rows: RS-054..062
mod pages {
    use inferlet::{Context, RawContext};

    fn names(ctx: &Context) -> inferlet::Result<()> {
        let raw: &RawContext = ctx.inner();
        let (n, k) = (2_u32, 1_u32);
        let _: () = raw.reserve_working_pages(n)?;
        let _: () = raw.commit_working_pages(k)?;
        raw.release_working_pages(n);
        raw.truncate_working_page_tokens(n);
        let _: () = raw.drop_committed_pages(n)?;
        let _: u32 = raw.committed_page_count();
        let _: u32 = raw.working_page_count();
        let _: u32 = raw.working_page_token_count();
        Ok(())
    }
}

/// A generator that is driven by the program.
// rows: RS-071 RS-073..078 RS-081 RS-083..086 RS-136 RS-155..160 RS-167
mod steering {
    use inferlet::adapter::Adapter;
    use inferlet::sample::{Entropy, Logits};
    use inferlet::spec::Speculator;
    use inferlet::{Constrain, Context, Sampler};

    struct Mask(Vec<u32>);

    impl Constrain for Mask {
        fn step(&mut self, accepted: &[u32]) -> &[u32] {
            self.0.truncate(accepted.len());
            &self.0
        }
    }

    struct Spec;

    impl Speculator for Spec {
        fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
            (vec![], vec![])
        }

        fn accept(&mut self, _accepted: &[u32]) {}

        fn rollback(&mut self, n: u32) {
            let _ = n;
        }

        fn reset(&mut self) {}
    }

    async fn by_hand(ctx: &mut Context, chosen_token: u32) -> inferlet::Result<()> {
        let mut g = ctx.generate(Sampler::Argmax).max_tokens(256);

        while let Some(mut step) = g.next()? {
            let out = step.execute().await?;
            // Inspect or override; commit chosen tokens.
            g.accept(&[chosen_token]);
            drop(out);
        }
        Ok(())
    }

    async fn options(ctx: &Context, a: Adapter) -> inferlet::Result<()> {
        let mut g = ctx
            .generate(Sampler::Argmax)
            .constrain(Mask(vec![0, 1]))
            .adapter(&a)
            .zo_seed(-1_i64)
            .horizon(100);
        let h = g.probe_each_step(0, Entropy);
        let speculating = ctx.generate(Sampler::Argmax).speculator(Spec);
        let system = ctx.generate(Sampler::Argmax).system_speculation();
        drop((speculating, system));
        while let Some(mut step) = g.next()? {
            step.clear_sampler();
            let own = step.probe(0, Logits);
            let out = step.execute().await?;
            let _: (Option<f32>, Option<&[u8]>) = (out.entropy(h), out.logits(own));
            g.accept(&[1]);
        }
        Ok(())
    }
}

/// The market for pages. Beside a generator, which does not borrow its context.
// rows: RS-190..192 RS-194..199
mod market {
    use inferlet::context::Idle;
    use inferlet::scheduling;
    use inferlet::{Context, Sampler};

    fn hooks(ctx: &Context) -> inferlet::Result<()> {
        let g = ctx.generate(Sampler::Argmax).rebid_each_step(false);
        ctx.set_bid(2.5); // override the next-step bid
        let _g = ctx.idle(); // RAII guard: bid 0 until `_g` drops
        ctx.suspend()?; // return all pages to the pool; resume later
        let _: Idle<'_> = ctx.idle();
        drop(g);
        Ok(())
    }

    fn told(ctx: &Context) -> [f64; 7] {
        let model = ctx.model();
        [
            scheduling::price(),
            scheduling::rent(ctx),
            scheduling::rent(ctx.inner()),
            scheduling::dividend(model),
            scheduling::latency(ctx),
            scheduling::latency(ctx.inner()),
            scheduling::balance(model),
        ]
    }

    fn told_by_owner(ctx: Context, model: inferlet::Model) -> f64 {
        scheduling::rent(&ctx) + scheduling::balance(&model)
    }
}

/// Forward passes.
// rows: RS-087..105 RS-107..109 RS-119..126
mod forward {
    use inferlet::adapter::Adapter;
    use inferlet::generation::RawOutput;
    use inferlet::sample::{Distribution, Entropy, Logits, Logprob, Logprobs};
    use inferlet::{Context, Forward, ProbeHandle, SampleHandle, Sampler};

    async fn sample(ctx: &mut Context, token_ids: Vec<u32>) -> inferlet::Result<Option<u32>> {
        let mut fwd = ctx.forward();
        fwd.input(&token_ids);
        let h = fwd.sample(&[0], Sampler::Argmax);
        let out = fwd.execute().await?;
        let token = out.token(h);
        Ok(token)
    }

    async fn every_name(ctx: &Context, adapter: &Adapter) -> inferlet::Result<()> {
        let (tokens, positions, brle) = (vec![1, 2], vec![5, 6], vec![0, 4]);
        let mut fwd: Forward<'_> = ctx.forward();
        fwd.input(&tokens)
            .input_at(&tokens, &positions)
            .attention_mask(&[brle.clone(), brle.clone()])
            .mask(&brle)
            .adapter(adapter)
            .zo_seed(3_i64);
        let several: SampleHandle = fwd.sample(&[0, 1], Sampler::top_p(0.6, 0.95));
        let logits: ProbeHandle<Logits> = fwd.probe(0, Logits);
        let distribution = Distribution {
            temperature: 1.0,
            k: 5,
        };
        let top: ProbeHandle<Distribution> = fwd.probe(0, distribution);
        let one: ProbeHandle<Logprob> = fwd.probe(1, Logprob(3));
        let some: ProbeHandle<Logprobs> = fwd.probe(1, Logprobs(vec![3, 4]));
        let entropy: ProbeHandle<Entropy> = fwd.probe(1, Entropy);
        let _: (u32, u32) = (fwd.start_position(), fwd.page_size());
        let out = fwd.execute().await?;
        let _: Vec<u32> = out.tokens_at(several);
        let _: Option<(&[u32], &[f32])> = out.distribution(top);
        let _: Option<&[u8]> = out.logits(logits);
        let _: (Option<&[f32]>, Option<&[f32]>) = (out.logprobs(one), out.logprobs(some));
        let _: Option<f32> = out.entropy(entropy);
        let _: &[u32] = &out.tokens;
        let _: Option<SampleHandle> = out.auto_sampler();
        let _: &RawOutput = out.raw();
        // A sampler slot through a probe handle, or vice versa.
        assert!(out.token(logits).is_none() && out.logits(several).is_none());
        Ok(())
    }
}
