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

// rows: RS-006..007 RS-015
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

    fn names(
        _: &Context,
        _: &Model,
        _: Generator,
        _: GenStep,
        _: Output,
        _: Sampler,
    ) -> Result<()> {
        runtime::models();
        chat::Decoder::new(&Model::load("default")?);
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
