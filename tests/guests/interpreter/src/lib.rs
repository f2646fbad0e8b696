//! Runs the operations of a vector and returns their transcript; `tests/vectors/README.md` lists them.

mod decoders;
mod handles;
mod mcp;
mod operation;
mod steering;

use std::pin::Pin;
use std::time::Duration;

use inferlet::http_server::{self, BodyWriter, Request, Response};
use inferlet::inference::Matcher;
use inferlet::mcp::client;
use inferlet::prelude::*;
use inferlet::runtime::SpawnOptions;
use inferlet::{ErrorCode, FutureBlobExt, brle, error_code, scheduling, session, task};
use serde::Deserialize;
use serde_json::{Value, json};

use decoders::{call, called, every_call, every_thought, shown, thought, visible};
use handles::{Handles, event};
use operation::{Constraint, Operation, Step};
use steering::{Log, Logs};

#[derive(Deserialize)]
struct Input {
    ops: Vec<Operation>,
}

#[inferlet::main]
async fn main(input: Input) -> Result<Vec<Value>> {
    if http_server::is_serving() {
        http_server::serve(fetch).await?;
        return Ok(Vec::new());
    }
    let handles = Handles::new(Model::load("default")?);
    transcript(&handles, &input.ops).await
}

/// Each entry is a line of the answer, sent as it is made.
async fn fetch(mut request: Request) -> Result<Response> {
    let asked = json!({
        "method": request.method(), "path": request.path(), "header": request.header("x-a"),
    });
    let input: Input = request.json().await?;
    let mut handles = Handles::new(Model::load("default")?);
    handles.request = Some(asked);
    let write = move |mut body: BodyWriter| async move {
        for operation in &input.ops {
            let entry = entry(&handles, operation).await?;
            body.write(format!("{entry}\n")).await?;
        }
        Ok::<(), String>(())
    };
    Ok(Response::stream(write).header("Content-Type", "application/x-ndjson"))
}

/// One entry an operation.
fn transcript<'run>(
    handles: &'run Handles,
    operations: &'run [Operation],
) -> Pin<Box<dyn Future<Output = Result<Vec<Value>>> + 'run>> {
    Box::pin(async move {
        let mut entries = Vec::with_capacity(operations.len());
        for operation in operations {
            entries.push(entry(handles, operation).await?);
        }
        Ok(entries)
    })
}

/// The entry of an operation. One that fails gives its error code, and the program goes on; an error without a code is
/// a mistake of the vector, and fails the program.
async fn entry(handles: &Handles, operation: &Operation) -> Result<Value> {
    match run(handles, operation).await {
        Ok(entry) => Ok(entry),
        Err(error) => Ok(json!({ "error": error_code(&error).ok_or(error)?.as_str() })),
    }
}

/// Runs operations while a context bids nothing. None of them names it.
async fn idle(handles: &Handles, name: &str, within: &[Operation]) -> Result<Value> {
    let ctx = handles.take_context(name)?;
    let entries = {
        let _idle = ctx.idle();
        match ctx.suspend() {
            Ok(()) => transcript(handles, within).await,
            Err(error) => Err(error),
        }
    };
    handles.add_context(name, ctx);
    Ok(json!(entries?))
}

async fn run(handles: &Handles, operation: &Operation) -> Result<Value> {
    let model = &handles.model;
    match operation {
        Operation::Context { r#as, model: name } => {
            let ctx = match name {
                Some(name) => Context::new(&Model::load(name)?)?,
                None => Context::new(model)?,
            };
            handles.add_context(r#as, ctx);
        }
        Operation::Fork { ctx, r#as } => {
            let fork = handles.context(ctx, |ctx| ctx.fork())??;
            handles.add_context(r#as, fork);
        }
        Operation::Save { ctx, name } => handles.context(ctx, |ctx| ctx.save(name))??,
        Operation::Open { name, r#as } => return opened(handles, r#as, Context::open(model, name)),
        Operation::Take { name, r#as } => return opened(handles, r#as, Context::take(model, name)),
        Operation::Delete { name } => Context::delete(model, name)?,
        Operation::Snapshots {} => return Ok(json!(Context::snapshots(model)?)),
        Operation::Snapshot { ctx, r#as } => {
            let name = handles.context(ctx, |ctx| ctx.snapshot())??;
            return opened(handles, r#as, Context::take(model, &name));
        }
        Operation::Suspend { ctx } => handles.context(ctx, |ctx| ctx.suspend())??,
        Operation::SetBid { ctx, bid } => handles.context(ctx, |ctx| {
            ctx.set_bid(*bid);
            ctx.check()
        })??,
        Operation::Idle { ctx, within } => return idle(handles, ctx, within).await,
        Operation::Balance {} => return Ok(json!(scheduling::balance(model))),
        Operation::Dividend {} => return Ok(json!(scheduling::dividend(model))),
        Operation::Price {} => return Ok(json!(scheduling::price())),
        // By the context itself, and by the one of the engine behind it.
        Operation::Rent { ctx } => {
            return handles.context(ctx, |ctx| json!(scheduling::rent(ctx)));
        }
        Operation::Latency { ctx } => {
            return handles.context(ctx, |ctx| json!(scheduling::latency(ctx.inner()) >= 0.0));
        }
        Operation::Release { ctx } => handles.context(ctx, |ctx| ctx.release())?,
        Operation::System { ctx, text } => {
            handles.context(ctx, |ctx| ctx.system(text).check())??
        }
        Operation::User { ctx, text } => handles.context(ctx, |ctx| ctx.user(text).check())??,
        Operation::Assistant { ctx, text } => {
            handles.context(ctx, |ctx| ctx.assistant(text).check())??
        }
        Operation::Cue { ctx } => handles.context(ctx, |ctx| ctx.cue().check())??,
        Operation::Seal { ctx } => handles.context(ctx, |ctx| ctx.seal().check())??,
        Operation::Append { ctx, tokens } => {
            handles.context(ctx, |ctx| ctx.append(tokens).check())??
        }
        Operation::AppendText { ctx, text } => {
            handles.context(ctx, |ctx| ctx.append_text(text).check())??
        }
        Operation::Flush { ctx } => handles.context(ctx, |ctx| ctx.flush())?.await?,
        Operation::Truncate { ctx, n } => handles.context(ctx, |ctx| ctx.truncate(*n))??,
        Operation::SeqLen { ctx } => {
            return handles.context(ctx, |ctx| checked(ctx.seq_len(), ctx.check()))?;
        }
        Operation::CachedTokens { ctx } => {
            return handles.context(ctx, |ctx| checked(ctx.cached_tokens(), ctx.check()))?;
        }
        Operation::PageSize { ctx } => return handles.context(ctx, |ctx| json!(ctx.page_size())),
        Operation::Buffer { ctx } => {
            return handles.context(ctx, |ctx| checked(ctx.buffer(), ctx.check()))?;
        }
        Operation::Forward { ctx, r#as } => {
            let pass = handles.context(ctx, |ctx| ctx.forward().into_owned())?;
            pass.check()?;
            handles.add_pass(r#as, pass);
        }
        Operation::Input { fwd, tokens } => {
            handles.pass(fwd, |pass| pass.input(tokens).check())??
        }
        Operation::InputAt {
            fwd,
            tokens,
            positions,
        } => handles.pass(fwd, |pass| pass.input_at(tokens, positions).check())??,
        Operation::AttentionMask { fwd, masks } => {
            handles.pass(fwd, |pass| pass.attention_mask(masks).check())??
        }
        Operation::Mask { fwd, mask } => handles.pass(fwd, |pass| pass.mask(mask).check())??,
        Operation::Sample {
            fwd,
            r#as,
            indices,
            sampler,
        } => {
            let handle = handles.pass(fwd, |pass| {
                let handle = pass.sample(indices, sampler.sampler());
                pass.check().map(|()| handle)
            })??;
            handles.add_handle(r#as, handle);
        }
        Operation::Probe {
            fwd,
            r#as,
            index,
            probe,
        } => {
            let handle = handles.pass(fwd, |pass| {
                let handle = pass.probe(*index, probe.probe());
                pass.check().map(|()| handle)
            })??;
            handles.add_handle(r#as, handle);
        }
        Operation::PassZoSeed { fwd, seed } => {
            handles.pass(fwd, |pass| pass.zo_seed(*seed).check())??
        }
        Operation::PassAdapter { fwd, adapter } => {
            let adapter = handles.adapter(adapter)?;
            handles.pass(fwd, |pass| pass.adapter(&adapter).check())??
        }
        Operation::Adapter {
            r#as,
            name,
            rank,
            alpha,
        } => {
            let made = match (rank, alpha) {
                (None, None) => Adapter::create(model, name)?,
                _ => Adapter::create_with(model, name, rank.unwrap_or(8), alpha.unwrap_or(16.0))?,
            };
            handles.add_adapter(r#as, made);
        }
        Operation::AdapterOpen { name, r#as } => {
            let found = Adapter::open(model, name);
            let is_there = found.is_some();
            if let Some(found) = found {
                handles.add_adapter(r#as, found);
            }
            return Ok(json!(is_there));
        }
        Operation::AdapterNames {} => return Ok(json!(Adapter::names(model)?)),
        Operation::AdapterFork {
            adapter,
            name,
            r#as,
        } => {
            let fork = handles.adapter(adapter)?.fork(name);
            fork.check()?;
            handles.add_adapter(r#as, fork);
        }
        Operation::AdapterChange {
            adapter,
            changes,
            sigma,
        } => handles.adapter(adapter)?.change(changes, *sigma)?,
        Operation::AdapterSave { adapter, path } => handles.adapter(adapter)?.save(path)?,
        Operation::AdapterLoad { adapter, path } => handles.adapter(adapter)?.load(path)?,
        Operation::AdapterDestroy { adapter } => handles.adapter(adapter)?.destroy(),
        Operation::UseAdapter { r#gen, adapter } => {
            let adapter = handles.adapter(adapter)?;
            handles.rebuild(r#gen, |generator| generator.adapter(&adapter))?
        }
        Operation::StartPosition { fwd } => {
            return handles.pass(fwd, |pass| checked(pass.start_position(), pass.check()))?;
        }
        Operation::Execute { fwd, r#as } => {
            let output = handles.pass(fwd, |pass| pass.execute())?.await?;
            handles.add_output(r#as, output);
        }
        Operation::Read { out, handle } => return Ok(handles.read(out, handle)),
        Operation::MaskOfBools { allowed } => return Ok(json!(brle::from_bools(allowed)?)),
        Operation::MaskShortest { mask, length } => {
            return Ok(json!(brle::shortest(mask, *length)?));
        }
        Operation::MaskAnd { masks, length } => {
            return Ok(json!(brle::intersection(masks, *length)?));
        }
        Operation::MaskAllowing { elements, length } => {
            return Ok(json!(brle::allowing(elements, *length)?));
        }
        Operation::MaskAllowed { mask, length } => {
            return Ok(json!(brle::allowed(mask, *length)?));
        }
        Operation::MaskPack { mask, length } => return Ok(json!(brle::pack(mask, *length)?)),
        Operation::MaskUnpack { bits, length } => return Ok(json!(brle::unpack(bits, *length)?)),
        Operation::MaskWindow {
            start,
            n,
            window,
            sinks,
        } => return Ok(json!(brle::window(*start, *n, *window, *sinks)?)),
        Operation::MaskCausal { start, n } => return Ok(json!(brle::causal(*start, *n)?)),
        Operation::Generate(request) => {
            let adapter = request.adapter.as_deref();
            let adapter = adapter.map(|name| handles.adapter(name)).transpose()?;
            let started = handles.context(&request.ctx, |ctx| request.start(ctx, adapter.as_ref()));
            let (generator, logs) = started??;
            generator.check()?;
            handles.add_logs(&request.r#as, logs);
            handles.add_generator(&request.r#as, generator);
        }
        Operation::SetMaxTokens { r#gen, n } => {
            handles.rebuild(r#gen, |generator| generator.max_tokens(*n))?
        }
        Operation::Stop { r#gen, tokens } => {
            handles.rebuild(r#gen, |generator| generator.stop(tokens))?
        }
        Operation::AddStop { r#gen, tokens } => {
            handles.rebuild(r#gen, |generator| tokens.add_to(generator))?
        }
        Operation::IgnoreEos { r#gen, value } => {
            handles.rebuild(r#gen, |generator| generator.ignore_eos(*value))?
        }
        Operation::LogitMask { r#gen, mask } => {
            handles.rebuild(r#gen, |generator| generator.logit_mask(mask))?
        }
        Operation::SystemSpeculation { r#gen, model } => {
            handles.rebuild(r#gen, |generator| match model {
                Some(model) => generator.draft_model(model),
                None => generator.system_speculation(),
            })?
        }
        Operation::SetSeed { r#gen, seed } => {
            handles.rebuild(r#gen, |generator| generator.seed(*seed))?
        }
        Operation::ProbeEachStep {
            r#gen,
            r#as,
            index,
            probe,
        } => {
            let handle = handles.generator(r#gen, |generator| {
                let handle = generator.probe_each_step(*index, probe.probe());
                generator.check().map(|()| handle)
            })??;
            handles.add_handle(r#as, handle);
        }
        Operation::Horizon { r#gen, n } => {
            handles.rebuild(r#gen, |generator| generator.horizon(*n))?
        }
        Operation::RebidEachStep { r#gen, value } => {
            handles.rebuild(r#gen, |generator| generator.rebid_each_step(*value))?
        }
        Operation::ZoSeed { r#gen, seed } => {
            handles.rebuild(r#gen, |generator| generator.zo_seed(*seed))?
        }
        Operation::Constrain { r#gen, constrain } => {
            for constraint in constrain {
                match constraint {
                    Constraint::Masks { masks } => {
                        let constraint = handles.logs(r#gen, |logs| logs.constraint(masks))?;
                        handles.rebuild(r#gen, |generator| generator.constrain(constraint))?;
                    }
                    Constraint::Grammar(source) => {
                        let constraint = source.constraint(model)?;
                        handles.rebuild(r#gen, |generator| generator.constrain(constraint))?;
                    }
                }
            }
        }
        Operation::Accept { r#gen, tokens } => {
            return handles.generator(r#gen, |generator| {
                checked(generator.accept(tokens), generator.check())
            })?;
        }
        Operation::ConstraintLog { r#gen } => {
            let told = |logs: &mut Logs| logs.constraints.iter().map(Log::told).collect();
            let told: Vec<Vec<Value>> = handles.logs(r#gen, told)?;
            return Ok(json!(told));
        }
        Operation::SpeculatorLog { r#gen } => {
            return Ok(json!(handles.logs(r#gen, |logs| logs.speculator.told())?));
        }
        Operation::Step(step) => return run_step(handles, step).await,
        Operation::CollectTokens { r#gen } => {
            return Ok(json!(
                handles
                    .generator(r#gen, |generator| generator.collect_tokens())?
                    .await?
            ));
        }
        Operation::CollectText { r#gen } => {
            return Ok(json!(
                handles
                    .generator(r#gen, |generator| generator.collect_text())?
                    .await?
            ));
        }
        Operation::CollectJson { r#gen } => {
            let document = handles.generator(r#gen, |generator| generator.collect_json::<Value>());
            return document?.await;
        }
        Operation::GiveUp {
            r#gen,
            how,
            beside,
            seen,
        } => return give_up(handles, (r#gen, how), beside, seen).await,
        Operation::Grammar { r#as, source } => handles.add_grammar(r#as, source.grammar()?),
        Operation::Matcher { r#as, grammar } => handles.start_matcher(r#as, grammar)?,
        Operation::MatcherMask { matcher } => {
            return handles.matcher(matcher, |matcher| json!(matcher.next_token_logit_mask()));
        }
        Operation::MatcherAccept { matcher, tokens } => {
            handles.matcher(matcher, |matcher| matcher.accept_tokens(tokens))??
        }
        Operation::MatcherForced { matcher } => {
            return handles.matcher(matcher, |matcher| json!(matcher.forced_tokens()));
        }
        Operation::MatcherEnded { matcher } => {
            return handles.matcher(matcher, |matcher| json!(matcher.is_terminated()));
        }
        Operation::MatcherReset { matcher } => {
            handles.matcher(matcher, |matcher| matcher.reset())?
        }
        Operation::MatcherFork { matcher, r#as } => {
            let fork = handles.matcher(matcher, |matcher| matcher.fork())?;
            handles.add_matcher(r#as, fork);
        }
        Operation::TokensGenerated { r#gen } => {
            return handles.generator(r#gen, |generator| {
                checked(generator.tokens_generated(), generator.check())
            })?;
        }
        Operation::IsDone { r#gen } => {
            return handles.generator(r#gen, |generator| {
                checked(generator.is_done(), generator.check())
            })?;
        }
        Operation::FinishReason { r#gen } => {
            return handles.generator(r#gen, |generator| {
                checked(generator.finish_reason(), generator.check())
            })?;
        }
        Operation::Encode { text } => return Ok(json!(model.tokenizer().encode(text))),
        Operation::Decode { tokens } => return Ok(json!(model.tokenizer().decode(tokens)?)),
        Operation::Models {} => return Ok(json!(runtime::models())),
        Operation::Version {} => return Ok(json!(runtime::version())),
        Operation::Request {} => return Ok(json!(handles.request)),
        Operation::Username {} => return Ok(json!(runtime::username())),
        Operation::InstanceId {} => {
            let id = runtime::instance_id();
            return Ok(json!(!id.is_empty() && id == runtime::instance_id()));
        }
        Operation::Args {} => return Ok(json!(runtime::args())),
        Operation::LaunchSeed {} => return Ok(json!(runtime::launch_seed())),
        Operation::ModelName {} => return Ok(json!(model.name())),
        Operation::VocabSize {} => return Ok(json!(model.tokenizer().vocab_size())),
        Operation::Vocabs { tokens } => {
            let (ids, contents) = model.tokenizer().vocabs();
            let content = |token| {
                ids.iter()
                    .position(|id| id == token)
                    .map(|at| &contents[at])
            };
            let found: Vec<_> = tokens.iter().map(content).collect();
            return Ok(json!([ids.len(), found]));
        }
        Operation::SpecialTokens {} => {
            let (ids, contents) = model.tokenizer().special_tokens();
            return Ok(json!(ids.iter().zip(&contents).collect::<Vec<_>>()));
        }
        Operation::SplitRegex {} => return Ok(json!(model.tokenizer().split_regex())),
        Operation::MessageTokens { role, text } => {
            let tokens = match role.as_str() {
                "system" => chat::system(model, text),
                "user" => chat::user(model, text),
                _ => chat::assistant(model, text),
            };
            return Ok(json!(tokens?));
        }
        Operation::CueTokens {} => return Ok(json!(chat::cue(model)?)),
        Operation::SealTokens {} => return Ok(json!(chat::seal(model)?)),
        Operation::StopTokens {} => return Ok(json!(chat::stop_tokens(model)?)),
        Operation::Send { text } => session::send(text),
        Operation::SendJson { value } => session::send_json(value)?,
        Operation::Message { text } => session::message(text),
        Operation::Receive {} => return Ok(json!(session::receive().try_wait_async().await?)),
        Operation::Push { topic, message } => messaging::push(topic, message)?,
        Operation::Pull { topic } => {
            return Ok(json!(messaging::pull(topic).try_wait_async().await?));
        }
        Operation::Broadcast { topic, message, n } => {
            for _ in 0..*n {
                messaging::broadcast(topic, message)?;
            }
        }
        Operation::McpServers {} => return Ok(json!(client::available_servers())),
        Operation::McpConnect {
            r#as,
            server,
            later,
        } => {
            let session = match later {
                true => client::connect_async(server).await?,
                false => client::connect(server)?,
            };
            handles.add_session(r#as, session);
        }
        Operation::McpAsk(ask) => return mcp::asked(handles, ask).await,
        Operation::McpGiveUp { ask, meanwhile } => {
            return mcp::give_up(handles, ask, meanwhile).await;
        }
        Operation::McpEquip { ctx, session } => {
            let session = handles.session(session)?;
            let listed = mcp::tools(&session)?;
            let tools: Vec<&dyn tools::Tool> = listed.iter().map(|each| each as _).collect();
            handles.context(ctx, |ctx| ctx.equip(&tools).check())??;
        }
        Operation::McpClose { session } => handles.drop_session(session),
        Operation::Subscribe { topic, r#as } => {
            handles.add_subscription(r#as, messaging::try_subscribe(topic)?);
        }
        Operation::Next { sub } => {
            return Ok(json!(handles.subscription(sub)?.get_async().await));
        }
        Operation::Get { sub } => return Ok(json!(handles.subscription(sub)?.get())),
        Operation::Lagged { sub } => return Ok(json!(handles.subscription(sub)?.lagged())),
        Operation::Unsubscribe { sub } => handles.subscription(sub)?.unsubscribe(),
        Operation::Spawn {
            r#as,
            program,
            input,
            output,
            detached,
            seed,
            token_budget,
            credits,
        } => {
            let options = SpawnOptions {
                output: *output,
                detached: *detached,
                seed: *seed,
                token_budget: *token_budget,
                credits: *credits,
                ..SpawnOptions::default()
            };
            handles.add_child(r#as, runtime::spawn_with(program, input, &options)?);
        }
        Operation::Wait { child } => return handles.child(child)?.wait().await,
        Operation::WaitsInVain { child } => {
            let child = handles.child(child)?;
            return Ok(json!(child.wait::<Value>().await.is_err()));
        }
        Operation::Cancel { child } => handles.child(child)?.cancel(),
        Operation::Pid { child } => return Ok(json!(handles.child(child)?.pid() > 0)),
        Operation::HashOfSeed {} => return Ok(json!(format!("{:016x}", runtime::launch_seed()))),
        Operation::SendFile { data } => session::send_file(data),
        Operation::ReceiveFile {} => {
            return Ok(json!(session::receive_file().try_wait_async().await?));
        }
        Operation::All { ops } => {
            let branches =
                task::join_all(ops.iter().map(|branch| transcript(handles, branch))).await;
            return Ok(json!(branches.into_iter().collect::<Result<Vec<_>>>()?));
        }
        Operation::ChatFeed { r#as, tokens } => {
            return Ok(event(
                handles.decoder(r#as, |decoder| decoder.feed(tokens))?,
            ));
        }
        Operation::ChatFinish { r#as } => {
            return Ok(event(handles.decoder(r#as, |decoder| decoder.finish())));
        }
        Operation::ChatReset { r#as } => handles.decoder(r#as, |decoder| decoder.reset()),
        Operation::ChatStream { r#gen } => {
            let (mut decoder, mut events) = (chat::Decoder::new(model), Vec::new());
            while let Some(step) = handles.generator(r#gen, |generator| generator.next())?? {
                let out = step.execute().await?;
                for found in decoder.output_events(&out) {
                    events.push(event(found?));
                }
            }
            return Ok(json!(events));
        }
        Operation::TextStream { r#gen } => {
            let mut texts = handles.generator(r#gen, |generator| generator.texts())?;
            let mut pieces = Vec::new();
            while let Some(text) = texts.next().await {
                pieces.push(text?);
            }
            return Ok(json!([pieces, texts.text_so_far()]));
        }
        Operation::ChatAll { r#as, pieces } => {
            return handles.decoder(r#as, |it| shown(it, pieces));
        }
        Operation::Equip { ctx, schemas } => {
            let tools: Vec<&dyn tools::Tool> = schemas.iter().map(|each| each as _).collect();
            handles.context(ctx, |ctx| ctx.equip(&tools).check())??;
        }
        Operation::Answer {
            ctx,
            name,
            value,
            id,
        } => handles.context(ctx, |ctx| {
            match id {
                Some(id) => ctx.answer_call(name, value, id),
                None => ctx.answer(name, value),
            }
            .check()
        })??,
        Operation::EquipTokens { schemas } => {
            return Ok(json!(tools::equip_prefix(model, schemas)?));
        }
        Operation::AnswerTokens { name, value } => {
            return Ok(json!(tools::answer_prefix(model, name, value)));
        }
        Operation::ParseCall { text } => {
            let call = tools::parse_call(model, text);
            return Ok(json!(call.map(|(name, args)| called(&name, &args))));
        }
        Operation::NativeGrammar {
            schemas,
            choice,
            texts,
        } => {
            // The choice of the reference has functions of its own.
            let matcher = || match choice.choice() {
                tools::Choice::Required => Ok(tools::native_matcher(model, schemas)),
                choice => tools::native_grammar_for(model, schemas, &choice)
                    .map(|it| it.map(|grammar| Matcher::new(&grammar, model.tokenizer()))),
            };
            let missing = || "the model has no native grammar".to_owned();
            matcher()?.ok_or_else(missing)?;
            let is_text = |text: &String| {
                let mut matcher = matcher()?.ok_or_else(missing)?;
                match matcher.accept_tokens(&model.tokenizer().encode(text)) {
                    Ok(()) => Ok(matcher.is_terminated()),
                    Err(error) if error_code(&error) == Some(ErrorCode::GrammarMismatch) => {
                        Ok(false)
                    }
                    Err(error) => Err(error),
                }
            };
            let whole: Result<Vec<bool>> = texts.iter().map(is_text).collect();
            return Ok(json!(whole?));
        }
        Operation::ThoughtsFeed { r#as, tokens } => {
            return Ok(thought(handles.thoughts(r#as, |it| it.feed(tokens))?));
        }
        Operation::ThoughtsFinish { r#as } => {
            return Ok(thought(handles.thoughts(r#as, |it| it.finish())));
        }
        Operation::ThoughtsReset { r#as } => handles.thoughts(r#as, |it| it.reset()),
        Operation::ThoughtsAll { r#as, pieces } => {
            return handles.thoughts(r#as, |it| every_thought(it, pieces));
        }
        Operation::ThoughtsStream { r#gen } => {
            let (mut decoder, mut events) = (reasoning::Decoder::new(model), Vec::new());
            while let Some(step) = handles.generator(r#gen, |generator| generator.next())?? {
                let out = step.execute().await?;
                for found in decoder.output_events(&out) {
                    events.push(thought(found?));
                }
            }
            return Ok(json!(events));
        }
        Operation::CallsFeed { r#as, tokens } => {
            return Ok(call(handles.calls(r#as, |it| it.feed(tokens))?));
        }
        Operation::CallsFinish { r#as } => {
            return Ok(call(handles.calls(r#as, |it| it.finish())));
        }
        Operation::CallsReset { r#as } => handles.calls(r#as, |it| it.reset()),
        Operation::CallsAll { r#as, pieces } => {
            return handles.calls(r#as, |it| every_call(it, pieces));
        }
        Operation::CallsStream { r#gen } => {
            let (mut decoder, mut events) = (tools::Decoder::new(model), Vec::new());
            while let Some(step) = handles.generator(r#gen, |generator| generator.next())?? {
                let out = step.execute().await?;
                for found in decoder.output_events(&out) {
                    events.push(call(found?));
                }
            }
            return Ok(json!(events));
        }
        Operation::Visible { tokens } => return visible(model, tokens),
        Operation::Sleep { ms } => task::sleep(Duration::from_millis(*ms)).await,
    }
    Ok(Value::Null)
}

/// The next step; null after the end.
async fn run_step(handles: &Handles, given: &Step) -> Result<Value> {
    let Some(mut step) = handles.generator(&given.r#gen, |generator| generator.next())?? else {
        return Ok(Value::Null);
    };
    if given.clear {
        step.clear_sampler();
    }
    for one in &given.probes {
        handles.add_handle(&one.r#as, step.probe(one.index, one.probe.probe()));
    }
    let out = step.execute().await?;
    let answer = json!({ "tokens": out.tokens, "finish": out.finish_reason });
    if let Some(name) = &given.r#as {
        handles.add_output(name, out);
    }
    Ok(answer)
}

/// Gives a collection up where another generator is at its end; what was seen while it went on.
async fn give_up(
    handles: &Handles,
    (r#gen, how): (&str, &str),
    beside: &str,
    seen: &[Operation],
) -> Result<Value> {
    let collecting = async {
        match how {
            "collect_tokens" => handles
                .generator(r#gen, |generator| generator.collect_tokens())?
                .await
                .map(|tokens| json!(tokens)),
            "collect_text" => handles
                .generator(r#gen, |generator| generator.collect_text())?
                .await
                .map(|text| json!(text)),
            _ => {
                handles
                    .generator(r#gen, |generator| generator.collect_json::<Value>())?
                    .await
            }
        }
    };
    let steps = async {
        while let Some(step) = handles.generator(beside, |generator| generator.next())?? {
            step.execute().await?;
        }
        transcript(handles, seen).await
    };
    match task::select(collecting, steps).await {
        task::Either::Left(ended) => Err(format!("it ended before it was given up: {ended:?}")),
        task::Either::Right(seen) => Ok(json!(seen?)),
    }
}

/// Whether there was such a snapshot, which the other languages answer by a context or none.
fn opened(handles: &Handles, name: &str, opened: Result<Context>) -> Result<Value> {
    match opened {
        Ok(ctx) => handles.add_context(name, ctx),
        Err(error) if error_code(&error) == Some(ErrorCode::SnapshotMissing) => {
            return Ok(json!(false));
        }
        Err(error) => return Err(error),
    }
    Ok(json!(true))
}

/// The value of a call that keeps its error, unless it kept one.
fn checked(value: impl serde::Serialize, kept: Result<()>) -> Result<Value> {
    kept.map(|()| json!(value))
}
