//! Written by `python tools/gen_guides.py`.

use inferlet::prelude::*;

pub(crate) async fn run(snippet: &str, server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    match snippet {
        "text/1" => text_1(server, model, ctx).await,
        "text/2" => text_2(server, model, ctx).await,
        "text/3" => text_3(server, model, ctx).await,
        "text/4" => text_4(server, model, ctx).await,
        "text/5" => text_5(server, model, ctx).await,
        "tools/1" => tools_1(server, model, ctx).await,
        "tools/2" => tools_2(server, model, ctx).await,
        "grammars/1" => grammars_1(server, model, ctx).await,
        "grammars/2" => grammars_2(server, model, ctx).await,
        "grammars/3" => grammars_3(server, model, ctx).await,
        "steps/1" => steps_1(server, model, ctx).await,
        "steps/2" => steps_2(server, model, ctx).await,
        "steps/3" => steps_3(server, model, ctx).await,
        "steps/4" => steps_4(server, model, ctx).await,
        "steps/5" => steps_5(server, model, ctx).await,
        "passes/1" => passes_1(server, model, ctx).await,
        "passes/2" => passes_2(server, model, ctx).await,
        "passes/3" => passes_3(server, model, ctx).await,
        "market/1" => market_1(server, model, ctx).await,
        "market/2" => market_2(server, model, ctx).await,
        "adapters/1" => adapters_1(server, model, ctx).await,
        "adapters/2" => adapters_2(server, model, ctx).await,
        "messages/1" => messages_1(server, model, ctx).await,
        "messages/2" => messages_2(server, model, ctx).await,
        "children/1" => children_1(server, model, ctx).await,
        "children/2" => children_2(server, model, ctx).await,
        "children/3" => children_3(server, model, ctx).await,
        "files/1" => files_1(server, model, ctx).await,
        "files/2" => files_2(server, model, ctx).await,
        "http/1" => http_1(server, model, ctx).await,
        "http/2" => http_2(server, model, ctx).await,
        "http/3" => http_3(server, model, ctx).await,
        "mcp/1" => mcp_1(server, model, ctx).await,
        "mcp/2" => mcp_2(server, model, ctx).await,
        "recipes/1" => recipes_1(server, model, ctx).await,
        "recipes/2" => recipes_2(server, model, ctx).await,
        other => Err(format!("the guide has no snippet {other}")),
    }
}

async fn text_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let tokenizer = model.tokenizer();
    let ids = tokenizer.encode("Hello, wörld!");
    assert_eq!(tokenizer.decode(&ids)?, "Hello, wörld!");
    let (every_id, every_content) = tokenizer.vocabs(); // the bytes of each token
    let (control, names) = tokenizer.special_tokens();
    let pattern = tokenizer.split_regex();
    Ok(())
}

async fn text_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    ctx.append(&chat::user(model, "And a piano?")?);
    ctx.append(&chat::cue(model)?);
    assert!(chat::stop_tokens(model)?.contains(&chat::seal(model)?[0]));
    Ok(())
}

async fn text_3(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let mut texts = ctx.generate(Sampler::argmax()).max_tokens(32).stop_texts(["\n"]).texts();
    while let Some(text) = texts.next().await {
        inferlet::session::send(&text?);
    }
    assert!(!texts.text_so_far().contains('\n'));
    Ok(())
}

async fn text_4(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use std::time::Duration;

    let mut texts = ctx.generate(Sampler::argmax()).max_tokens(64).texts();
    let reading = async {
        while let Some(text) = texts.next().await {
            text?;
        }
        Ok::<_, String>(())
    };
    if let Some(read) = inferlet::task::timeout(Duration::from_millis(500), reading).await {
        read?;
    }
    let answer = texts.text_so_far();
    Ok(())
}

async fn text_5(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let mut decoder = chat::Decoder::new(model);
    let mut g = ctx.generate(Sampler::argmax()).max_tokens(32);
    while let Some(step) = g.next()? {
        let out = step.execute().await?;
        for event in decoder.output_events(&out) {
            match event? {
                chat::Event::Delta(text) => inferlet::session::send(&text),
                chat::Event::Done(text) => println!("\nwhole: {text}"),
                chat::Event::Interrupt(token) => println!("control token {token}"),
                chat::Event::Idle => {}
            }
        }
    }
    Ok(())
}

async fn tools_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    /// Get the price of an item.
    #[inferlet::tool]
    async fn get_price(item: String) -> Result<u32> {
        Ok(if item == "violin" { 340 } else { 0 })
    }

    let mut asked = Context::new(model)?;
    asked.equip(&[&get_price]).user("How much does a violin cost?");
    let tokens = asked.generate(Sampler::Argmax).max_tokens(64).collect_tokens().await?;
    for event in tools::Decoder::new(model).events(&tokens) {
        if let tools::Event::Call(name, args) = event? {
            asked.answer(&name, &get_price::call(&args).await?);
        }
    }
    let answer = asked.generate(Sampler::Argmax).max_tokens(64).collect_text().await?;
    Ok(())
}

async fn tools_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let said = model.tokenizer().encode("<think>Half of eight.</think>Four.");
    let mut thoughts = Vec::new();
    for event in reasoning::Decoder::new(model).events(&said) {
        if let reasoning::Event::End(text) = event? {
            thoughts.push(text);
        }
    }
    let mut shown = chat::Decoder::hiding(model, true, true);
    assert_eq!(thoughts, ["Half of eight."]);
    assert!(matches!(shown.feed(&said)?, chat::Event::Delta(text) if text == "Four."));
    Ok(())
}

async fn grammars_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::schemars::{self, JsonSchema};
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Color {
        Red,
        Blue,
    }

    #[derive(Deserialize, JsonSchema)]
    struct Ball {
        color: Color,
        inside: Option<Box<Ball>>,
    }

    let ball: Ball = ctx.generate(Sampler::Argmax).max_tokens(200).collect_json().await?;
    Ok(())
}

async fn grammars_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::Regex;

    let g = ctx.generate(Sampler::Argmax).max_tokens(40);
    let g = g.constrain_with(Regex("[0-9]{1,4} (dollars|euros)"))?;
    let text = g.collect_text().await?;
    Ok(())
}

async fn grammars_3(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::Constrain;
    use inferlet::inference::{Grammar, Matcher};

    struct Own(Matcher, Vec<u32>);

    impl Constrain for Own {
        fn step(&mut self, accepted: &[u32]) -> &[u32] {
            let went_on = self.0.accept_tokens(accepted).is_ok();
            self.1 = if went_on { self.0.next_token_logit_mask() } else { vec![1] };
            &self.1
        }
    }

    let matcher = Matcher::new(&Grammar::from_regex("[1-9][0-9]*")?, model.tokenizer());
    let g = ctx.generate(Sampler::Argmax).max_tokens(3).constrain(Own(matcher, Vec::new()));
    let digits = g.collect_text().await?;
    Ok(())
}

async fn steps_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::brle;

    let tokenizer = model.tokenizer();
    let digits = brle::allowing(&tokenizer.encode("0123456789"), tokenizer.vocab_size())?;
    let g = ctx.generate(Sampler::argmax()).max_tokens(4).logit_mask(&digits);
    let number = g.collect_text().await?;
    Ok(())
}

async fn steps_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::{Constrain, brle};

    struct Lower(Vec<u32>);

    impl Constrain for Lower {
        fn step(&mut self, _accepted: &[u32]) -> &[u32] {
            &self.0
        }
    }

    let tokenizer = model.tokenizer();
    let lower = Lower(brle::allowing(&tokenizer.encode("abc"), tokenizer.vocab_size())?);
    let text = ctx.generate(Sampler::argmax()).max_tokens(8).constrain(lower).collect_text().await?;
    Ok(())
}

async fn steps_3(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::sample::{Distribution, Entropy};

    let mut g = ctx.generate(Sampler::argmax()).max_tokens(8);
    let surprise = g.probe_each_step(0, Entropy);
    while let Some(mut step) = g.next()? {
        let top = step.probe(0, Distribution { temperature: 1.0, k: 2 });
        let out = step.execute().await?;
        let second = out.distribution(top).and_then(|(ids, _)| ids.get(1).copied());
        if let (Some(second), true) = (second, out.entropy(surprise) > Some(5.0)) {
            g.accept(&[second]);
        }
    }
    Ok(())
}

async fn steps_4(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::sample::Distribution;

    let mut g = ctx.generate(Sampler::argmax()).max_tokens(8);
    while let Some(mut step) = g.next()? {
        step.clear_sampler();
        let top = step.probe(0, Distribution { temperature: 1.0, k: 20 });
        let out = step.execute().await?;
        let (ids, weights) = out.distribution(top).unwrap_or_default();
        // The least likely of those that are half as likely as the first.
        let n = weights.iter().take_while(|weight| **weight >= weights[0] / 2.0).count();
        g.accept(&ids[n.saturating_sub(1)..n]);
    }
    Ok(())
}

async fn steps_5(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    /// Proposes that the text goes on as it did after the same token before.
    struct Repeat {
        start: u32,
        seen: Vec<u32>,
    }

    impl Speculator for Repeat {
        fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
            let (newest, before) = self.seen.split_last().unwrap_or((&0, &[]));
            let at = before.iter().rposition(|token| token == newest);
            let tokens = at.map_or(&[][..], |at| &self.seen[at + 1..]);
            let tokens: Vec<u32> = tokens.iter().take(4).copied().collect();
            let start = self.start + self.seen.len() as u32;
            let positions = (start..).take(tokens.len()).collect();
            (tokens, positions)
        }

        fn accept(&mut self, accepted: &[u32]) {
            self.seen.extend(accepted);
        }
    }

    ctx.cue();
    let start = ctx.seq_len() + ctx.buffer().len() as u32; // where the first token will stand
    let fork = ctx.fork()?;
    let plain = fork.generate(Sampler::argmax()).max_tokens(16).collect_tokens().await?;
    let g = ctx.generate(Sampler::argmax()).max_tokens(16).speculator(Repeat { start, seen: Vec::new() });
    assert_eq!(g.collect_tokens().await?, plain);
    Ok(())
}

async fn passes_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::sample::{Distribution, Logits};

    let token_ids = model.tokenizer().encode("a piano");
    let mut fwd = ctx.forward();
    fwd.input(&token_ids);
    let token = fwd.sample(&[token_ids.len() as u32 - 1], Sampler::Argmax);
    let row = fwd.probe(0, Logits);
    let likely = fwd.probe(0, Distribution { temperature: 1.0, k: 5 });
    let out = fwd.execute().await?;
    let (ids, probabilities) = out.distribution(likely).ok_or("a handle of this pass")?;
    assert!(out.token(token).is_some() && out.logits(row).is_some());
    Ok(())
}

async fn passes_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::brle;

    ctx.flush().await?;
    let ids = model.tokenizer().encode("piano");
    let start = ctx.forward().start_position();
    let mut fwd = ctx.forward();
    fwd.input(&ids);
    fwd.attention_mask(&brle::window(start, ids.len() as u32, 16, 4)?); // the first 4 slots, and the last 16
    fwd.execute().await?;
    Ok(())
}

async fn passes_3(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::task;

    let branches = [ctx.fork()?, ctx.fork()?, ctx.fork()?];
    let passes = (10..).zip(&branches).map(|(token, branch)| {
        let mut fwd = branch.forward();
        fwd.input(&[token]);
        let handle = fwd.sample(&[0], Sampler::Argmax);
        let executed = fwd.execute();
        async move { Ok(executed.await?.token(handle)) }
    });
    let tokens: Result<Vec<_>> = task::join_all(passes).await.into_iter().collect();
    assert_eq!(tokens?.len(), 3);
    Ok(())
}

async fn market_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    ctx.set_bid(2.5); // for the next pass
    {
        let _idle = ctx.idle(); // bids nothing in here
        ctx.flush().await?;
    }
    let g = ctx.generate(Sampler::argmax()).max_tokens(8).horizon(8).rebid_each_step(false);
    let text = g.collect_text().await?;
    Ok(())
}

async fn market_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::scheduling;

    let before = scheduling::balance(model);
    ctx.flush().await?;
    let spent = before - scheduling::balance(model);
    if scheduling::rent(ctx) > 0.0 {
        // Pages are short.
        ctx.suspend()?;
    }
    let told = [scheduling::price(), scheduling::dividend(model), scheduling::latency(ctx)];
    Ok(())
}

async fn adapters_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let terse = Adapter::create_with(model, "terse", 4, 16.0)?;
    let fork = ctx.fork()?;
    let g = fork.generate(Sampler::Argmax).max_tokens(8).adapter(&terse);
    println!("{}", g.collect_text().await?);
    terse.save("adapters/terse")?;
    let copy = terse.fork("terse-copy");
    let again = match Adapter::open(model, "terse-too") {
        Some(there) => there,
        None => Adapter::create(model, "terse-too")?,
    };
    again.load("adapters/terse")?;
    assert!(Adapter::names(model)?.contains(&"terse".to_owned()));
    assert!(Adapter::open(model, "terse").is_some() && Adapter::open(model, "poet").is_none());
    terse.destroy();
    copy.destroy();
    again.destroy();
    Ok(())
}

async fn adapters_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let adapter = Adapter::create(model, "trained")?;
    for seed in [1, 2] {
        let fork = ctx.fork()?;
        let g = fork.generate(Sampler::Argmax).max_tokens(8).adapter(&adapter).zo_seed(seed);
        println!("{}", g.collect_text().await?);
    }
    adapter.change(&[(1, 0.01), (2, -0.01)], Some(0.05))?;
    adapter.destroy();
    Ok(())
}

async fn messages_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    messaging::push("jobs", "count the words")?;
    messaging::push("jobs", "find the names")?;
    let first = messaging::pull("jobs").await;
    let second = messaging::pull("jobs").await;
    assert_eq!([first.as_deref(), second.as_deref()], [Some("count the words"), Some("find the names")]);
    Ok(())
}

async fn messages_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let sub = messaging::subscribe("news");
    messaging::broadcast("news", "it rains")?;
    messaging::broadcast("news", "it snows")?;
    while let Some(news) = sub.get_async().await {
        if news == "it snows" {
            break;
        }
    }
    assert_eq!((sub.get(), sub.lagged()), (None, 0));
    sub.unsubscribe();
    Ok(())
}

async fn children_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let child = runtime::spawn("count", serde_json::json!({ "text": "one two three" }))?;
    assert!(child.pid() > 0);
    assert_eq!(child.wait::<u32>().await?, 3);
    Ok(())
}

async fn children_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let texts = ["a", "b c", "d e f"].map(|text| serde_json::json!({ "text": text }));
    let children = texts.map(|text| runtime::spawn("count", text));
    let mut counts = Vec::new();
    for child in children {
        counts.push(child?.wait::<u32>().await?);
    }
    assert_eq!(counts, [1, 2, 3]);
    Ok(())
}

async fn children_3(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let child = runtime::spawn("count", serde_json::json!({ "words": 3 }))?;
    let error = child.wait::<u32>().await.unwrap_err();
    assert_eq!(inferlet::error_code(&error), Some(inferlet::ErrorCode::ProgramError));
    child.cancel();
    Ok(())
}

async fn files_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use std::fs;

    let failed = |error: std::io::Error| error.to_string();
    fs::create_dir_all("/scratch/notes").map_err(failed)?;
    fs::write("/scratch/notes/today.txt", "a violin costs 340\n").map_err(failed)?;
    let today = fs::read_to_string("/scratch/notes/today.txt").map_err(failed)?;
    assert_eq!(today, "a violin costs 340\n");
    assert_eq!(fs::read_dir("/scratch/notes").map_err(failed)?.count(), 1);
    Ok(())
}

async fn files_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let file = std::fs::File::create("/scratch/large.bin").map_err(|error| error.to_string())?;
    if file.set_len(1 << 45).is_err() {
        let refusal = inferlet::files::refusal().unwrap_or_default();
        assert!(refusal.starts_with("[limit-files] "), "{refusal}");
    }
    Ok(())
}

async fn http_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::http::{self, Request};
    use serde_json::{Value, json};

    let items: Value = http::fetch(format!("{server}/items?page=2")).await?.json().await?;
    assert_eq!(items["path"], "/items?page=2");

    let request = Request::post(format!("{server}/items")).header("X-Shop", "7");
    let answer = http::fetch(request.json(&json!({ "name": "violin" }))?).await?;
    assert_eq!((answer.status(), answer.ok()), (200, true));
    assert_eq!(answer.header("Content-Type"), Some("application/json"));
    let seen: Value = answer.json().await?;
    assert_eq!(seen["body"], r#"{"name":"violin"}"#);
    Ok(())
}

async fn http_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::http;

    let mut response = http::fetch(format!("{server}/stream")).await?;
    let mut text = Vec::new();
    while let Some(part) = response.chunk().await? {
        text.extend(part);
    }
    assert_eq!(text, b"data: one\ndata: two\n");
    Ok(())
}

async fn http_3(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::http;
    use inferlet::ErrorCode;

    let refused = http::fetch("http://169.254.169.254/latest/meta-data").await.unwrap_err();
    assert_eq!(inferlet::error_code(&refused), Some(ErrorCode::NetDenied));
    assert!(refused.contains("--allow-net 169.254.169.254:80"), "{refused}");
    Ok(())
}

async fn mcp_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::mcp;
    use serde_json::{Value, json};

    assert_eq!(mcp::client::available_servers(), ["prices"]);
    let prices = mcp::client::connect("prices")?;
    let offered: Value = serde_json::from_str(&prices.list_tools()?).map_err(|error| error.to_string())?;
    assert_eq!(offered["tools"][0]["name"], "get_price");

    let arguments = json!({ "item": "violin" }).to_string();
    let answer: Value =
        serde_json::from_str(&prices.call_tool("get_price", &arguments)?).map_err(|error| error.to_string())?;
    assert_eq!(answer["content"][0]["text"], r#"{"price": 340}"#);
    Ok(())
}

async fn mcp_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use serde_json::Value;

    let prices = inferlet::mcp::client::connect("prices")?;
    let listed: Value = serde_json::from_str(&prices.list_tools()?).map_err(|error| error.to_string())?;
    let schemas: Vec<String> = listed["tools"].as_array().into_iter().flatten().map(Value::to_string).collect();
    let offered: Vec<&dyn tools::Tool> = schemas.iter().map(|each| each as _).collect();
    let mut asked = Context::new(model)?;
    asked.equip(&offered).user("How much does a violin cost?");
    let tokens = asked.generate(Sampler::Argmax).max_tokens(64).collect_tokens().await?;
    for event in tools::Decoder::new(model).events(&tokens) {
        if let tools::Event::Call(name, args) = event? {
            let result: Value = serde_json::from_str(&prices.call_tool(&name, &args)?).map_err(|error| error.to_string())?;
            asked.answer(&name, result["content"][0]["text"].as_str().unwrap_or_default());
        }
    }
    let answer = asked.generate(Sampler::Argmax).max_tokens(64).collect_text().await?;
    Ok(())
}

async fn recipes_1(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    let line = ctx.generate(Sampler::argmax()).max_tokens(64).stop_texts(["\n"]).collect_text().await?;
    assert!(!line.contains('\n'));
    Ok(())
}

async fn recipes_2(server: &str, model: &Model, ctx: &mut Context) -> Result<()> {
    use inferlet::sample::Logprob;

    ctx.flush().await?;
    let mut best = (f32::NEG_INFINITY, Vec::new());
    for _ in 0..4 {
        let branch = ctx.fork()?;
        let tokens = branch.generate(Sampler::top_p(1.0, 0.95)).max_tokens(32).collect_tokens().await?;
        let mut scored = ctx.fork()?;
        let before = scored.cue().buffer().len() as u32;
        scored.append(&tokens);
        let mut fwd = scored.forward();
        let places = (before - 1..).zip(&tokens);
        let probes: Vec<_> = places.map(|(at, token)| fwd.probe(at, Logprob(*token))).collect();
        let out = fwd.execute().await?;
        let mut sum = 0.0;
        for probe in probes {
            sum += out.logprobs(probe).ok_or("a handle of this pass")?[0];
        }
        let score = sum / tokens.len() as f32;
        if score > best.0 {
            best = (score, tokens);
        }
    }
    let stops = chat::stop_tokens(model)?;
    best.1.retain(|token| !stops.contains(token));
    let answer = model.tokenizer().decode(&best.1)?;
    Ok(())
}
