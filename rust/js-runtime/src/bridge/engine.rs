//! Generated from wit/ by tools/gen_js_bridge.py; do not edit. The engine, as `pie:host` lends it.

use rquickjs::{Class, Ctx, Function, Object, Result, Value};

use super::Export;
use super::resource::{Resource, awaited, handle, wait};
use super::values::{Read, Write, field, listed, listed_in, read, unknown, variant};
use crate::bindings::pie::core::{
    adapter, context, files, forward, futures, generation, grammar, http, http_server, masks,
    messaging, model, runtime, sampling, scheduling, session, tokenizer,
};
use crate::bindings::pie::instruct::{chat, reasoning, tools};
use crate::bindings::pie::mcp::client;
use crate::event_loop::WaitHandle;

pub(super) const EXPORTS: &[Export] = &[
    super::export!("models", models),
    super::export!("version", version),
    super::export!("instanceId", instance_id),
    super::export!("username", username),
    super::export!("args", args),
    super::export!("launchSeed", launch_seed),
    super::export!("spawn", spawn),
    super::export!("modelLoad", model_load),
    super::export!("contextCreate", context_create),
    super::export!("contextOpen", context_open),
    super::export!("contextTake", context_take),
    super::export!("contextDelete", context_delete),
    super::export!("contextSnapshots", context_snapshots),
    super::export!("adapterCreate", adapter_create),
    super::export!("adapterOpen", adapter_open),
    super::export!("adapterNames", adapter_names),
    super::export!("shortest", shortest),
    super::export!("intersection", intersection),
    super::export!("allowing", allowing),
    super::export!("allowed", allowed),
    super::export!("pack", pack),
    super::export!("unpack", unpack),
    super::export!("window", window),
    super::export!("causal", causal),
    super::export!("grammarCreate", grammar_create),
    super::export!("forwardPassCreate", forward_pass_create),
    super::export!("generatorCreate", generator_create),
    super::export!("balance", balance),
    super::export!("rent", rent),
    super::export!("dividend", dividend),
    super::export!("latency", latency),
    super::export!("price", price),
    super::export!("send", send),
    super::export!("sendJson", send_json),
    super::export!("print", print),
    super::export!("message", message),
    super::export!("receive", receive),
    super::export!("sendFile", send_file),
    super::export!("receiveFile", receive_file),
    super::export!("push", push),
    super::export!("pull", pull),
    super::export!("broadcast", broadcast),
    super::export!("subscribe", subscribe),
    super::export!("check", check),
    super::export!("exchangeStart", exchange_start),
    super::export!("refusal", refusal),
    super::export!("isServing", is_serving),
    super::export!("nextRequest", next_request),
    super::export!("fill", fill),
    super::export!("cue", cue),
    super::export!("seal", seal),
    super::export!("messageTokens", message_tokens),
    super::export!("cueTokens", cue_tokens),
    super::export!("sealTokens", seal_tokens),
    super::export!("stopTokens", stop_tokens),
    super::export!("decoderCreate", decoder_create),
    super::export!("decoderCreateHiding", decoder_create_hiding),
    super::export!("decoderCreateFor", decoder_create_for),
    super::export!("reasoningDecoderCreate", reasoning_decoder_create),
    super::export!("equip", equip),
    super::export!("answer", answer),
    super::export!("equipTokens", equip_tokens),
    super::export!("answerTokens", answer_tokens),
    super::export!("parseCall", parse_call),
    super::export!("nativeGrammar", native_grammar),
    super::export!("choiceGrammar", choice_grammar),
    super::export!("toolDecoderCreate", tool_decoder_create),
    super::export!("availableServers", available_servers),
    super::export!("connect", connect),
];

awaited!(futures::FutureUnit);

awaited!(futures::FutureString);

awaited!(futures::FutureBlob);

handle!(ChildHandle, runtime::Child);

#[rquickjs::methods(rename_all = "camelCase")]
impl ChildHandle {
    fn pid<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.pid().write(&ctx)
    }

    fn wait<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(&ctx, self.held.raw.wait(), self.held.clone(), settle)
    }

    fn cancel<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.cancel().write(&ctx)
    }
}

handle!(TokenizerHandle, tokenizer::Tokenizer);

#[rquickjs::methods(rename_all = "camelCase")]
impl TokenizerHandle {
    fn encode<'js>(&self, ctx: Ctx<'js>, text: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .encode(&read::<String>(&ctx, text)?)
            .write(&ctx)
    }

    fn try_encode<'js>(&self, ctx: Ctx<'js>, text: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .try_encode(&read::<String>(&ctx, text)?)
            .write(&ctx)
    }

    fn decode<'js>(&self, ctx: Ctx<'js>, tokens: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .decode(&read::<Vec<u32>>(&ctx, tokens)?)
            .write(&ctx)
    }

    fn vocab_size<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.vocab_size().write(&ctx)
    }

    fn vocabs<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.vocabs().write(&ctx)
    }

    fn special_tokens<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.special_tokens().write(&ctx)
    }

    fn split_regex<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.split_regex().write(&ctx)
    }
}

handle!(ModelHandle, model::Model);

#[rquickjs::methods(rename_all = "camelCase")]
impl ModelHandle {
    fn name<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.name().write(&ctx)
    }

    fn tokenizer<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.tokenizer().write(&ctx)
    }
}

handle!(ContextHandle, context::Context);

#[rquickjs::methods(rename_all = "camelCase")]
impl ContextHandle {
    fn fork<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.fork().write(&ctx)
    }

    fn save<'js>(&self, ctx: Ctx<'js>, name: Value<'js>) -> Result<Value<'js>> {
        self.held.raw.save(&read::<String>(&ctx, name)?).write(&ctx)
    }

    fn snapshot<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.snapshot().write(&ctx)
    }

    fn suspend<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.suspend().write(&ctx)
    }

    fn set_bid<'js>(&self, ctx: Ctx<'js>, bid: Value<'js>) -> Result<Value<'js>> {
        self.held.raw.set_bid(read::<f64>(&ctx, bid)?).write(&ctx)
    }

    fn begin_idle<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.begin_idle().write(&ctx)
    }

    fn end_idle<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.end_idle().write(&ctx)
    }

    fn release<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.release().write(&ctx)
    }

    fn append<'js>(&self, ctx: Ctx<'js>, tokens: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .append(&read::<Vec<u32>>(&ctx, tokens)?)
            .write(&ctx)
    }

    fn append_text<'js>(&self, ctx: Ctx<'js>, text: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .append_text(&read::<String>(&ctx, text)?)
            .write(&ctx)
    }

    fn flush<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(&ctx, self.held.raw.flush(), self.held.clone(), settle)
    }

    fn truncate<'js>(&self, ctx: Ctx<'js>, n: Value<'js>) -> Result<Value<'js>> {
        self.held.raw.truncate(read::<u32>(&ctx, n)?).write(&ctx)
    }

    fn seq_len<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.seq_len().write(&ctx)
    }

    fn cached_tokens<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.cached_tokens().write(&ctx)
    }

    fn page_size<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.page_size().write(&ctx)
    }

    fn buffer<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.buffer().write(&ctx)
    }

    fn reserve_working_pages<'js>(&self, ctx: Ctx<'js>, n: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .reserve_working_pages(read::<u32>(&ctx, n)?)
            .write(&ctx)
    }

    fn commit_working_pages<'js>(&self, ctx: Ctx<'js>, n: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .commit_working_pages(read::<u32>(&ctx, n)?)
            .write(&ctx)
    }

    fn release_working_pages<'js>(&self, ctx: Ctx<'js>, n: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .release_working_pages(read::<u32>(&ctx, n)?)
            .write(&ctx)
    }

    fn truncate_working_page_tokens<'js>(
        &self,
        ctx: Ctx<'js>,
        n: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .truncate_working_page_tokens(read::<u32>(&ctx, n)?)
            .write(&ctx)
    }

    fn drop_committed_pages<'js>(&self, ctx: Ctx<'js>, n: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .drop_committed_pages(read::<u32>(&ctx, n)?)
            .write(&ctx)
    }

    fn committed_page_count<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.committed_page_count().write(&ctx)
    }

    fn working_page_count<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.working_page_count().write(&ctx)
    }

    fn working_page_token_count<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.working_page_token_count().write(&ctx)
    }
}

handle!(AdapterHandle, adapter::Adapter);

#[rquickjs::methods(rename_all = "camelCase")]
impl AdapterHandle {
    fn fork<'js>(&self, ctx: Ctx<'js>, name: Value<'js>) -> Result<Value<'js>> {
        self.held.raw.fork(&read::<String>(&ctx, name)?).write(&ctx)
    }

    fn save<'js>(&self, ctx: Ctx<'js>, path: Value<'js>) -> Result<Value<'js>> {
        self.held.raw.save(&read::<String>(&ctx, path)?).write(&ctx)
    }

    fn load<'js>(&self, ctx: Ctx<'js>, path: Value<'js>) -> Result<Value<'js>> {
        self.held.raw.load(&read::<String>(&ctx, path)?).write(&ctx)
    }

    fn change<'js>(
        &self,
        ctx: Ctx<'js>,
        changes: Value<'js>,
        sigma: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .change(
                &read::<Vec<adapter::Change>>(&ctx, changes)?,
                read::<Option<f32>>(&ctx, sigma)?,
            )
            .write(&ctx)
    }

    fn destroy<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.destroy().write(&ctx)
    }
}

handle!(GrammarHandle, grammar::Grammar);

#[rquickjs::methods(rename_all = "camelCase")]
impl GrammarHandle {
    fn matcher<'js>(
        &self,
        ctx: Ctx<'js>,
        tokenizer: Class<'js, TokenizerHandle>,
    ) -> Result<Value<'js>> {
        let tokenizer = tokenizer.borrow().held.clone();
        self.held.raw.matcher(&tokenizer.raw).write(&ctx)
    }
}

handle!(MatcherHandle, grammar::Matcher);

#[rquickjs::methods(rename_all = "camelCase")]
impl MatcherHandle {
    fn mask<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.mask().write(&ctx)
    }

    fn accept<'js>(&self, ctx: Ctx<'js>, tokens: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .accept(&read::<Vec<u32>>(&ctx, tokens)?)
            .write(&ctx)
    }

    fn forced<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.forced().write(&ctx)
    }

    fn is_terminated<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.is_terminated().write(&ctx)
    }

    fn reset<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.reset().write(&ctx)
    }

    fn fork<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.fork().write(&ctx)
    }
}

awaited!(forward::FuturePassOutput);

handle!(ForwardPassHandle, forward::ForwardPass);

#[rquickjs::methods(rename_all = "camelCase")]
impl ForwardPassHandle {
    fn input<'js>(&self, ctx: Ctx<'js>, tokens: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .input(&read::<Vec<u32>>(&ctx, tokens)?)
            .write(&ctx)
    }

    fn input_at<'js>(
        &self,
        ctx: Ctx<'js>,
        tokens: Value<'js>,
        positions: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .input_at(
                &read::<Vec<u32>>(&ctx, tokens)?,
                &read::<Vec<u32>>(&ctx, positions)?,
            )
            .write(&ctx)
    }

    fn attention_mask<'js>(&self, ctx: Ctx<'js>, masks: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .attention_mask(&read::<Vec<Vec<u32>>>(&ctx, masks)?)
            .write(&ctx)
    }

    fn logit_mask<'js>(&self, ctx: Ctx<'js>, mask: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .logit_mask(&read::<Vec<u32>>(&ctx, mask)?)
            .write(&ctx)
    }

    fn sample<'js>(
        &self,
        ctx: Ctx<'js>,
        indices: Value<'js>,
        sampler: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .sample(
                &read::<Vec<u32>>(&ctx, indices)?,
                read::<sampling::Sampler>(&ctx, sampler)?,
            )
            .write(&ctx)
    }

    fn probe<'js>(
        &self,
        ctx: Ctx<'js>,
        index: Value<'js>,
        probe: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .probe(
                read::<u32>(&ctx, index)?,
                &read::<sampling::Probe>(&ctx, probe)?,
            )
            .write(&ctx)
    }

    fn set_adapter<'js>(
        &self,
        ctx: Ctx<'js>,
        adapter: Class<'js, AdapterHandle>,
    ) -> Result<Value<'js>> {
        let adapter = adapter.borrow().held.clone();
        self.held.raw.set_adapter(&adapter.raw).write(&ctx)
    }

    fn set_zo_seed<'js>(&self, ctx: Ctx<'js>, seed: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .set_zo_seed(read::<i64>(&ctx, seed)?)
            .write(&ctx)
    }

    fn leave_working_pages<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.leave_working_pages().write(&ctx)
    }

    fn start_position<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.start_position().write(&ctx)
    }

    fn execute<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(&ctx, self.held.raw.execute(), self.held.clone(), settle)
    }
}

awaited!(generation::FutureOutput);

awaited!(generation::FutureTokens);

awaited!(generation::FutureText);

handle!(GeneratorHandle, generation::Generator);

#[rquickjs::methods(rename_all = "camelCase")]
impl GeneratorHandle {
    fn set_max_tokens<'js>(&self, ctx: Ctx<'js>, n: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .set_max_tokens(read::<u32>(&ctx, n)?)
            .write(&ctx)
    }

    fn set_stop<'js>(&self, ctx: Ctx<'js>, tokens: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .set_stop(&read::<Vec<u32>>(&ctx, tokens)?)
            .write(&ctx)
    }

    fn add_stop<'js>(&self, ctx: Ctx<'js>, tokens: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .add_stop(&read::<Vec<u32>>(&ctx, tokens)?)
            .write(&ctx)
    }

    fn set_stop_texts<'js>(&self, ctx: Ctx<'js>, texts: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .set_stop_texts(&read::<Vec<String>>(&ctx, texts)?)
            .write(&ctx)
    }

    fn add_stop_texts<'js>(&self, ctx: Ctx<'js>, texts: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .add_stop_texts(&read::<Vec<String>>(&ctx, texts)?)
            .write(&ctx)
    }

    fn ignore_eos<'js>(&self, ctx: Ctx<'js>, ignore: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .ignore_eos(read::<bool>(&ctx, ignore)?)
            .write(&ctx)
    }

    fn set_seed<'js>(&self, ctx: Ctx<'js>, seed: Value<'js>) -> Result<Value<'js>> {
        self.held.raw.set_seed(read::<u64>(&ctx, seed)?).write(&ctx)
    }

    fn set_logit_mask<'js>(&self, ctx: Ctx<'js>, mask: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .set_logit_mask(&read::<Vec<u32>>(&ctx, mask)?)
            .write(&ctx)
    }

    fn set_drafting<'js>(&self, ctx: Ctx<'js>, drafting: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .set_drafting(&read::<generation::Drafting>(&ctx, drafting)?)
            .write(&ctx)
    }

    fn set_adapter<'js>(
        &self,
        ctx: Ctx<'js>,
        adapter: Class<'js, AdapterHandle>,
    ) -> Result<Value<'js>> {
        let adapter = adapter.borrow().held.clone();
        self.held.raw.set_adapter(&adapter.raw).write(&ctx)
    }

    fn set_zo_seed<'js>(&self, ctx: Ctx<'js>, seed: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .set_zo_seed(read::<i64>(&ctx, seed)?)
            .write(&ctx)
    }

    fn set_horizon<'js>(&self, ctx: Ctx<'js>, n: Value<'js>) -> Result<Value<'js>> {
        self.held.raw.set_horizon(read::<u32>(&ctx, n)?).write(&ctx)
    }

    fn rebid_each_step<'js>(&self, ctx: Ctx<'js>, rebid: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .rebid_each_step(read::<bool>(&ctx, rebid)?)
            .write(&ctx)
    }

    fn probe_each_step<'js>(
        &self,
        ctx: Ctx<'js>,
        index: Value<'js>,
        probe: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .probe_each_step(
                read::<u32>(&ctx, index)?,
                &read::<sampling::Probe>(&ctx, probe)?,
            )
            .write(&ctx)
    }

    fn constrain<'js>(
        &self,
        ctx: Ctx<'js>,
        matcher: Class<'js, MatcherHandle>,
    ) -> Result<Value<'js>> {
        let matcher = matcher.borrow().held.clone();
        self.held.raw.constrain(&matcher.raw).write(&ctx)
    }

    fn ask_masks<'js>(&self, ctx: Ctx<'js>, ask: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .ask_masks(read::<bool>(&ctx, ask)?)
            .write(&ctx)
    }

    fn next_step<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.next_step().write(&ctx)
    }

    fn probe<'js>(
        &self,
        ctx: Ctx<'js>,
        index: Value<'js>,
        probe: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .probe(
                read::<u32>(&ctx, index)?,
                &read::<sampling::Probe>(&ctx, probe)?,
            )
            .write(&ctx)
    }

    fn clear_sampler<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.clear_sampler().write(&ctx)
    }

    fn draft<'js>(
        &self,
        ctx: Ctx<'js>,
        tokens: Value<'js>,
        positions: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .draft(
                &read::<Vec<u32>>(&ctx, tokens)?,
                &read::<Vec<u32>>(&ctx, positions)?,
            )
            .write(&ctx)
    }

    fn step<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(&ctx, self.held.raw.step(), self.held.clone(), settle)
    }

    fn give_mask<'js>(&self, ctx: Ctx<'js>, mask: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .give_mask(&read::<Vec<u32>>(&ctx, mask)?)
            .write(&ctx)
    }

    fn accept<'js>(&self, ctx: Ctx<'js>, tokens: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .accept(&read::<Vec<u32>>(&ctx, tokens)?)
            .write(&ctx)
    }

    fn collect_tokens<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(
            &ctx,
            self.held.raw.collect_tokens(),
            self.held.clone(),
            settle,
        )
    }

    fn collect_text<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(
            &ctx,
            self.held.raw.collect_text(),
            self.held.clone(),
            settle,
        )
    }

    fn collect_document<'js>(
        &self,
        ctx: Ctx<'js>,
        matcher: Class<'js, MatcherHandle>,
        settle: Function<'js>,
    ) -> Result<WaitHandle> {
        let matcher = matcher.borrow().held.clone();
        wait(
            &ctx,
            self.held.raw.collect_document(&matcher.raw),
            (self.held.clone(), matcher),
            settle,
        )
    }

    fn tokens_generated<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.tokens_generated().write(&ctx)
    }

    fn finish_reason<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.finish_reason().write(&ctx)
    }
}

handle!(SubscriptionHandle, messaging::Subscription);

#[rquickjs::methods(rename_all = "camelCase")]
impl SubscriptionHandle {
    fn get<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.get().write(&ctx)
    }

    fn next<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(&ctx, self.held.raw.next(), self.held.clone(), settle)
    }

    fn lagged<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.lagged().write(&ctx)
    }

    fn unsubscribe<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.unsubscribe().write(&ctx)
    }
}

awaited!(messaging::FutureMessage);

handle!(ExchangeHandle, http::Exchange);

#[rquickjs::methods(rename_all = "camelCase")]
impl ExchangeHandle {
    fn write_part<'js>(
        &self,
        ctx: Ctx<'js>,
        part: Value<'js>,
        settle: Function<'js>,
    ) -> Result<WaitHandle> {
        wait(
            &ctx,
            self.held.raw.write_part(&read::<Vec<u8>>(&ctx, part)?),
            self.held.clone(),
            settle,
        )
    }

    fn finish<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.finish().write(&ctx)
    }

    fn head<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(&ctx, self.held.raw.head(), self.held.clone(), settle)
    }

    fn read<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(&ctx, self.held.raw.read(), self.held.clone(), settle)
    }

    fn cancel<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.cancel().write(&ctx)
    }
}

awaited!(http::FutureWritten);

awaited!(http::FutureHead);

awaited!(http::FuturePart);

handle!(IncomingRequestHandle, http_server::IncomingRequest);

#[rquickjs::methods(rename_all = "camelCase")]
impl IncomingRequestHandle {
    fn head<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.head().write(&ctx)
    }

    fn read<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(&ctx, self.held.raw.read(), self.held.clone(), settle)
    }

    fn respond<'js>(
        &self,
        ctx: Ctx<'js>,
        status: Value<'js>,
        headers: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .respond(
                read::<u32>(&ctx, status)?,
                &read::<Vec<http::Header>>(&ctx, headers)?,
            )
            .write(&ctx)
    }

    fn write_part<'js>(
        &self,
        ctx: Ctx<'js>,
        part: Value<'js>,
        settle: Function<'js>,
    ) -> Result<WaitHandle> {
        wait(
            &ctx,
            self.held.raw.write_part(&read::<Vec<u8>>(&ctx, part)?),
            self.held.clone(),
            settle,
        )
    }

    fn finish<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.finish().write(&ctx)
    }

    fn abandon<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.abandon().write(&ctx)
    }

    fn gone<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(&ctx, self.held.raw.gone(), self.held.clone(), settle)
    }
}

awaited!(http_server::FutureRequest);

awaited!(http_server::FutureGone);

handle!(DecoderHandle, chat::Decoder);

#[rquickjs::methods(rename_all = "camelCase")]
impl DecoderHandle {
    fn feed<'js>(&self, ctx: Ctx<'js>, tokens: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .feed(&read::<Vec<u32>>(&ctx, tokens)?)
            .write(&ctx)
    }

    fn feed_output<'js>(
        &self,
        ctx: Ctx<'js>,
        tokens: Value<'js>,
        finish: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .feed_output(
                &read::<Vec<u32>>(&ctx, tokens)?,
                read::<Option<generation::FinishReason>>(&ctx, finish)?,
            )
            .write(&ctx)
    }

    fn finish<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.finish().write(&ctx)
    }

    fn reset<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.reset().write(&ctx)
    }
}

handle!(ReasoningDecoderHandle, reasoning::ReasoningDecoder);

#[rquickjs::methods(rename_all = "camelCase")]
impl ReasoningDecoderHandle {
    fn feed<'js>(&self, ctx: Ctx<'js>, tokens: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .feed(&read::<Vec<u32>>(&ctx, tokens)?)
            .write(&ctx)
    }

    fn feed_output<'js>(
        &self,
        ctx: Ctx<'js>,
        tokens: Value<'js>,
        finish: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .feed_output(
                &read::<Vec<u32>>(&ctx, tokens)?,
                read::<Option<generation::FinishReason>>(&ctx, finish)?,
            )
            .write(&ctx)
    }

    fn finish<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.finish().write(&ctx)
    }

    fn reset<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.reset().write(&ctx)
    }
}

handle!(ToolDecoderHandle, tools::ToolDecoder);

#[rquickjs::methods(rename_all = "camelCase")]
impl ToolDecoderHandle {
    fn feed<'js>(&self, ctx: Ctx<'js>, tokens: Value<'js>) -> Result<Value<'js>> {
        self.held
            .raw
            .feed(&read::<Vec<u32>>(&ctx, tokens)?)
            .write(&ctx)
    }

    fn feed_output<'js>(
        &self,
        ctx: Ctx<'js>,
        tokens: Value<'js>,
        finish: Value<'js>,
    ) -> Result<Value<'js>> {
        self.held
            .raw
            .feed_output(
                &read::<Vec<u32>>(&ctx, tokens)?,
                read::<Option<generation::FinishReason>>(&ctx, finish)?,
            )
            .write(&ctx)
    }

    fn finish<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.finish().write(&ctx)
    }

    fn reset<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.reset().write(&ctx)
    }
}

handle!(McpSessionHandle, client::McpSession);

#[rquickjs::methods(rename_all = "camelCase")]
impl McpSessionHandle {
    fn hello<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(&ctx, self.held.raw.hello(), self.held.clone(), settle)
    }

    fn list_tools<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(&ctx, self.held.raw.list_tools(), self.held.clone(), settle)
    }

    fn call_tool<'js>(
        &self,
        ctx: Ctx<'js>,
        name: Value<'js>,
        args: Value<'js>,
        settle: Function<'js>,
    ) -> Result<WaitHandle> {
        wait(
            &ctx,
            self.held
                .raw
                .call_tool(&read::<String>(&ctx, name)?, &read::<String>(&ctx, args)?),
            self.held.clone(),
            settle,
        )
    }

    fn list_resources<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(
            &ctx,
            self.held.raw.list_resources(),
            self.held.clone(),
            settle,
        )
    }

    fn read_resource<'js>(
        &self,
        ctx: Ctx<'js>,
        uri: Value<'js>,
        settle: Function<'js>,
    ) -> Result<WaitHandle> {
        wait(
            &ctx,
            self.held.raw.read_resource(&read::<String>(&ctx, uri)?),
            self.held.clone(),
            settle,
        )
    }

    fn list_prompts<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        wait(
            &ctx,
            self.held.raw.list_prompts(),
            self.held.clone(),
            settle,
        )
    }

    fn get_prompt<'js>(
        &self,
        ctx: Ctx<'js>,
        name: Value<'js>,
        args: Value<'js>,
        settle: Function<'js>,
    ) -> Result<WaitHandle> {
        wait(
            &ctx,
            self.held
                .raw
                .get_prompt(&read::<String>(&ctx, name)?, &read::<String>(&ctx, args)?),
            self.held.clone(),
            settle,
        )
    }

    fn close<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        self.held.raw.close().write(&ctx)
    }
}

fn models<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    runtime::models().write(&ctx)
}

fn version<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    runtime::version().write(&ctx)
}

fn instance_id<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    runtime::instance_id().write(&ctx)
}

fn username<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    runtime::username().write(&ctx)
}

fn args<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    runtime::args().write(&ctx)
}

fn launch_seed<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    runtime::launch_seed().write(&ctx)
}

fn spawn<'js>(
    ctx: Ctx<'js>,
    program: Value<'js>,
    input: Value<'js>,
    args: Value<'js>,
    options: Value<'js>,
) -> Result<Value<'js>> {
    runtime::spawn(
        &read::<String>(&ctx, program)?,
        &read::<String>(&ctx, input)?,
        &read::<Vec<String>>(&ctx, args)?,
        read::<runtime::SpawnOptions>(&ctx, options)?,
    )
    .write(&ctx)
}

fn model_load<'js>(ctx: Ctx<'js>, name: Value<'js>) -> Result<Value<'js>> {
    model::Model::load(&read::<String>(&ctx, name)?).write(&ctx)
}

fn context_create<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    let made = context::Context::create(&model.raw).map(|made| Resource::of(made, model));
    made.write(&ctx)
}

fn context_open<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    name: Value<'js>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    let made = context::Context::open(&model.raw, &read::<String>(&ctx, name)?)
        .map(|made| Resource::of(made, model));
    made.write(&ctx)
}

fn context_take<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    name: Value<'js>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    let made = context::Context::take(&model.raw, &read::<String>(&ctx, name)?)
        .map(|made| Resource::of(made, model));
    made.write(&ctx)
}

fn context_delete<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    name: Value<'js>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    context::Context::delete(&model.raw, &read::<String>(&ctx, name)?).write(&ctx)
}

fn context_snapshots<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    context::Context::snapshots(&model.raw).write(&ctx)
}

fn adapter_create<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    name: Value<'js>,
    rank: Value<'js>,
    alpha: Value<'js>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    let made = adapter::Adapter::create(
        &model.raw,
        &read::<String>(&ctx, name)?,
        read::<u32>(&ctx, rank)?,
        read::<f32>(&ctx, alpha)?,
    )
    .map(|made| Resource::of(made, model));
    made.write(&ctx)
}

fn adapter_open<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    name: Value<'js>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    let made = adapter::Adapter::open(&model.raw, &read::<String>(&ctx, name)?)
        .map(|made| Resource::of(made, model));
    made.write(&ctx)
}

fn adapter_names<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    adapter::Adapter::names(&model.raw).write(&ctx)
}

fn shortest<'js>(ctx: Ctx<'js>, mask: Value<'js>, len: Value<'js>) -> Result<Value<'js>> {
    masks::shortest(&read::<Vec<u32>>(&ctx, mask)?, read::<u32>(&ctx, len)?).write(&ctx)
}

fn intersection<'js>(ctx: Ctx<'js>, masks: Value<'js>, len: Value<'js>) -> Result<Value<'js>> {
    masks::intersection(
        &read::<Vec<Vec<u32>>>(&ctx, masks)?,
        read::<u32>(&ctx, len)?,
    )
    .write(&ctx)
}

fn allowing<'js>(ctx: Ctx<'js>, elements: Value<'js>, len: Value<'js>) -> Result<Value<'js>> {
    masks::allowing(&read::<Vec<u32>>(&ctx, elements)?, read::<u32>(&ctx, len)?).write(&ctx)
}

fn allowed<'js>(ctx: Ctx<'js>, mask: Value<'js>, len: Value<'js>) -> Result<Value<'js>> {
    masks::allowed(&read::<Vec<u32>>(&ctx, mask)?, read::<u32>(&ctx, len)?).write(&ctx)
}

fn pack<'js>(ctx: Ctx<'js>, mask: Value<'js>, len: Value<'js>) -> Result<Value<'js>> {
    masks::pack(&read::<Vec<u32>>(&ctx, mask)?, read::<u32>(&ctx, len)?).write(&ctx)
}

fn unpack<'js>(ctx: Ctx<'js>, bits: Value<'js>, len: Value<'js>) -> Result<Value<'js>> {
    masks::unpack(&read::<Vec<u8>>(&ctx, bits)?, read::<u32>(&ctx, len)?).write(&ctx)
}

fn window<'js>(
    ctx: Ctx<'js>,
    start: Value<'js>,
    n: Value<'js>,
    window: Value<'js>,
    sinks: Value<'js>,
) -> Result<Value<'js>> {
    masks::window(
        read::<u32>(&ctx, start)?,
        read::<u32>(&ctx, n)?,
        read::<u32>(&ctx, window)?,
        read::<u32>(&ctx, sinks)?,
    )
    .write(&ctx)
}

fn causal<'js>(ctx: Ctx<'js>, start: Value<'js>, n: Value<'js>) -> Result<Value<'js>> {
    masks::causal(read::<u32>(&ctx, start)?, read::<u32>(&ctx, n)?).write(&ctx)
}

fn grammar_create<'js>(ctx: Ctx<'js>, source: Value<'js>) -> Result<Value<'js>> {
    grammar::Grammar::create(&read::<grammar::Source>(&ctx, source)?).write(&ctx)
}

fn forward_pass_create<'js>(
    ctx: Ctx<'js>,
    context: Class<'js, ContextHandle>,
) -> Result<Value<'js>> {
    let context = context.borrow().held.clone();
    let made = forward::ForwardPass::create(&context.raw).map(|made| Resource::of(made, context));
    made.write(&ctx)
}

fn generator_create<'js>(
    ctx: Ctx<'js>,
    context: Class<'js, ContextHandle>,
    sampler: Value<'js>,
    options: Value<'js>,
) -> Result<Value<'js>> {
    let context = context.borrow().held.clone();
    let made = generation::Generator::create(
        &context.raw,
        read::<sampling::Sampler>(&ctx, sampler)?,
        &read::<generation::Options>(&ctx, options)?,
    )
    .map(|made| Resource::of(made, context));
    made.write(&ctx)
}

fn balance<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    scheduling::balance(&model.raw).write(&ctx)
}

fn rent<'js>(ctx: Ctx<'js>, context: Class<'js, ContextHandle>) -> Result<Value<'js>> {
    let context = context.borrow().held.clone();
    scheduling::rent(&context.raw).write(&ctx)
}

fn dividend<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    scheduling::dividend(&model.raw).write(&ctx)
}

fn latency<'js>(ctx: Ctx<'js>, context: Class<'js, ContextHandle>) -> Result<Value<'js>> {
    let context = context.borrow().held.clone();
    scheduling::latency(&context.raw).write(&ctx)
}

fn price<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    scheduling::price().write(&ctx)
}

fn send<'js>(ctx: Ctx<'js>, message: Value<'js>) -> Result<Value<'js>> {
    session::send(&read::<String>(&ctx, message)?).write(&ctx)
}

fn send_json<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<Value<'js>> {
    session::send_json(&read::<String>(&ctx, value)?).write(&ctx)
}

fn print<'js>(ctx: Ctx<'js>, text: Value<'js>) -> Result<Value<'js>> {
    session::print(&read::<String>(&ctx, text)?).write(&ctx)
}

fn message<'js>(ctx: Ctx<'js>, text: Value<'js>) -> Result<Value<'js>> {
    session::message(&read::<String>(&ctx, text)?).write(&ctx)
}

fn receive<'js>(ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
    wait(&ctx, session::receive(), (), settle)
}

fn send_file<'js>(ctx: Ctx<'js>, data: Value<'js>) -> Result<Value<'js>> {
    session::send_file(&read::<Vec<u8>>(&ctx, data)?).write(&ctx)
}

fn receive_file<'js>(ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
    wait(&ctx, session::receive_file(), (), settle)
}

fn push<'js>(ctx: Ctx<'js>, topic: Value<'js>, message: Value<'js>) -> Result<Value<'js>> {
    messaging::push(
        &read::<String>(&ctx, topic)?,
        &read::<String>(&ctx, message)?,
    )
    .write(&ctx)
}

fn pull<'js>(ctx: Ctx<'js>, topic: Value<'js>, settle: Function<'js>) -> Result<WaitHandle> {
    wait(
        &ctx,
        messaging::pull(&read::<String>(&ctx, topic)?),
        (),
        settle,
    )
}

fn broadcast<'js>(ctx: Ctx<'js>, topic: Value<'js>, message: Value<'js>) -> Result<Value<'js>> {
    messaging::broadcast(
        &read::<String>(&ctx, topic)?,
        &read::<String>(&ctx, message)?,
    )
    .write(&ctx)
}

fn subscribe<'js>(ctx: Ctx<'js>, topic: Value<'js>) -> Result<Value<'js>> {
    messaging::subscribe(&read::<String>(&ctx, topic)?).write(&ctx)
}

fn check<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    files::check().write(&ctx)
}

fn exchange_start<'js>(ctx: Ctx<'js>, request: Value<'js>) -> Result<Value<'js>> {
    http::Exchange::start(&read::<http::Request>(&ctx, request)?).write(&ctx)
}

fn refusal<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    http::refusal().write(&ctx)
}

fn is_serving<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    http_server::is_serving().write(&ctx)
}

fn next_request<'js>(ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
    wait(&ctx, http_server::next_request(), (), settle)
}

fn fill<'js>(
    ctx: Ctx<'js>,
    context: Class<'js, ContextHandle>,
    role: Value<'js>,
    text: Value<'js>,
) -> Result<Value<'js>> {
    let context = context.borrow().held.clone();
    chat::fill(
        &context.raw,
        read::<chat::Role>(&ctx, role)?,
        &read::<String>(&ctx, text)?,
    )
    .write(&ctx)
}

fn cue<'js>(ctx: Ctx<'js>, context: Class<'js, ContextHandle>) -> Result<Value<'js>> {
    let context = context.borrow().held.clone();
    chat::cue(&context.raw).write(&ctx)
}

fn seal<'js>(ctx: Ctx<'js>, context: Class<'js, ContextHandle>) -> Result<Value<'js>> {
    let context = context.borrow().held.clone();
    chat::seal(&context.raw).write(&ctx)
}

fn message_tokens<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    role: Value<'js>,
    text: Value<'js>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    chat::message_tokens(
        &model.raw,
        read::<chat::Role>(&ctx, role)?,
        &read::<String>(&ctx, text)?,
    )
    .write(&ctx)
}

fn cue_tokens<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    chat::cue_tokens(&model.raw).write(&ctx)
}

fn seal_tokens<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    chat::seal_tokens(&model.raw).write(&ctx)
}

fn stop_tokens<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    chat::stop_tokens(&model.raw).write(&ctx)
}

fn decoder_create<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    let made = chat::Decoder::create(&model.raw);
    Resource::of(made, model).write(&ctx)
}

fn decoder_create_hiding<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    thoughts: Value<'js>,
    calls: Value<'js>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    let made = chat::Decoder::create_hiding(
        &model.raw,
        read::<bool>(&ctx, thoughts)?,
        read::<bool>(&ctx, calls)?,
    );
    Resource::of(made, model).write(&ctx)
}

fn decoder_create_for<'js>(
    ctx: Ctx<'js>,
    generator: Class<'js, GeneratorHandle>,
    thoughts: Value<'js>,
    calls: Value<'js>,
) -> Result<Value<'js>> {
    let generator = generator.borrow().held.clone();
    let made = chat::Decoder::create_for(
        &generator.raw,
        read::<bool>(&ctx, thoughts)?,
        read::<bool>(&ctx, calls)?,
    );
    Resource::of(made, generator).write(&ctx)
}

fn reasoning_decoder_create<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    let made = reasoning::ReasoningDecoder::create(&model.raw);
    Resource::of(made, model).write(&ctx)
}

fn equip<'js>(
    ctx: Ctx<'js>,
    context: Class<'js, ContextHandle>,
    schemas: Value<'js>,
) -> Result<Value<'js>> {
    let context = context.borrow().held.clone();
    tools::equip(&context.raw, &read::<Vec<String>>(&ctx, schemas)?).write(&ctx)
}

fn answer<'js>(
    ctx: Ctx<'js>,
    context: Class<'js, ContextHandle>,
    name: Value<'js>,
    value: Value<'js>,
    id: Value<'js>,
) -> Result<Value<'js>> {
    let context = context.borrow().held.clone();
    tools::answer(
        &context.raw,
        &read::<String>(&ctx, name)?,
        &read::<String>(&ctx, value)?,
        read::<Option<String>>(&ctx, id)?.as_deref(),
    )
    .write(&ctx)
}

fn equip_tokens<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    schemas: Value<'js>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    tools::equip_tokens(&model.raw, &read::<Vec<String>>(&ctx, schemas)?).write(&ctx)
}

fn answer_tokens<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    name: Value<'js>,
    value: Value<'js>,
    id: Value<'js>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    tools::answer_tokens(
        &model.raw,
        &read::<String>(&ctx, name)?,
        &read::<String>(&ctx, value)?,
        read::<Option<String>>(&ctx, id)?.as_deref(),
    )
    .write(&ctx)
}

fn parse_call<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    text: Value<'js>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    tools::parse_call(&model.raw, &read::<String>(&ctx, text)?).write(&ctx)
}

fn native_grammar<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    schemas: Value<'js>,
    choice: Value<'js>,
) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    tools::native_grammar(
        &model.raw,
        &read::<Vec<String>>(&ctx, schemas)?,
        &read::<tools::ToolChoice>(&ctx, choice)?,
    )
    .write(&ctx)
}

fn choice_grammar<'js>(
    ctx: Ctx<'js>,
    context: Class<'js, ContextHandle>,
    choice: Value<'js>,
) -> Result<Value<'js>> {
    let context = context.borrow().held.clone();
    tools::choice_grammar(&context.raw, &read::<tools::ToolChoice>(&ctx, choice)?).write(&ctx)
}

fn tool_decoder_create<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<Value<'js>> {
    let model = model.borrow().held.clone();
    let made = tools::ToolDecoder::create(&model.raw);
    Resource::of(made, model).write(&ctx)
}

fn available_servers<'js>(ctx: Ctx<'js>) -> Result<Value<'js>> {
    client::available_servers().write(&ctx)
}

fn connect<'js>(ctx: Ctx<'js>, name: Value<'js>) -> Result<Value<'js>> {
    client::connect(&read::<String>(&ctx, name)?).write(&ctx)
}

impl Read for runtime::SpawnOptions {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        Ok(Self {
            output: field(ctx, &object, "output")?,
            detached: field(ctx, &object, "detached")?,
            seed: field(ctx, &object, "seed")?,
            token_budget: field(ctx, &object, "tokenBudget")?,
            credits: field(ctx, &object, "credits")?,
        })
    }
}

impl Read for adapter::Change {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        Ok(Self {
            seed: field(ctx, &object, "seed")?,
            factor: field(ctx, &object, "factor")?,
        })
    }
}

impl Read for grammar::Source {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        match &*field::<String>(ctx, &object, "type")? {
            "json-schema" => Ok(Self::JsonSchema(field(ctx, &object, "value")?)),
            "any-json" => Ok(Self::AnyJson),
            "regex" => Ok(Self::Regex(field(ctx, &object, "value")?)),
            "ebnf" => Ok(Self::Ebnf(field(ctx, &object, "value")?)),
            other => Err(unknown(
                ctx,
                "source",
                other,
                &["json-schema", "any-json", "regex", "ebnf"],
            )),
        }
    }
}

impl Read for sampling::Sampler {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        Ok(Self {
            temperature: field(ctx, &object, "temperature")?,
            top_k: field(ctx, &object, "topK")?,
            top_p: field(ctx, &object, "topP")?,
            min_p: field(ctx, &object, "minP")?,
            draws: field(ctx, &object, "draws")?,
            seed: field(ctx, &object, "seed")?,
        })
    }
}

impl Read for sampling::Distribution {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        Ok(Self {
            temperature: field(ctx, &object, "temperature")?,
            k: field(ctx, &object, "k")?,
        })
    }
}

impl Read for sampling::Probe {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        match &*field::<String>(ctx, &object, "type")? {
            "logits" => Ok(Self::Logits),
            "distribution" => Ok(Self::Distribution(field(ctx, &object, "value")?)),
            "logprobs" => Ok(Self::Logprobs(field(ctx, &object, "value")?)),
            "entropy" => Ok(Self::Entropy),
            "embedding" => Ok(Self::Embedding),
            other => Err(unknown(
                ctx,
                "probe",
                other,
                &["logits", "distribution", "logprobs", "entropy", "embedding"],
            )),
        }
    }
}

impl Read for generation::Drafting {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        match &*field::<String>(ctx, &object, "type")? {
            "none" => Ok(Self::None),
            "n-gram" => Ok(Self::NGram),
            "model" => Ok(Self::Model(field(ctx, &object, "value")?)),
            other => Err(unknown(
                ctx,
                "drafting",
                other,
                &["none", "n-gram", "model"],
            )),
        }
    }
}

impl Read for generation::Options {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        Ok(Self {
            max_tokens: field(ctx, &object, "maxTokens")?,
            stop: field(ctx, &object, "stop")?,
            stop_texts: field(ctx, &object, "stopTexts")?,
            seed: field(ctx, &object, "seed")?,
            auto_flush: field(ctx, &object, "autoFlush")?,
            ignore_eos: field(ctx, &object, "ignoreEos")?,
            logit_mask: field(ctx, &object, "logitMask")?,
            drafting: field(ctx, &object, "drafting")?,
        })
    }
}

impl Read for http::Header {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        Ok(Self {
            name: field(ctx, &object, "name")?,
            value: field(ctx, &object, "value")?,
        })
    }
}

impl Read for http::Body {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        match &*field::<String>(ctx, &object, "type")? {
            "none" => Ok(Self::None),
            "whole" => Ok(Self::Whole(field(ctx, &object, "value")?)),
            "streamed" => Ok(Self::Streamed),
            other => Err(unknown(ctx, "body", other, &["none", "whole", "streamed"])),
        }
    }
}

impl Read for http::Redirects {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        match &*read::<String>(ctx, value)? {
            "follow" => Ok(Self::Follow),
            "fail" => Ok(Self::Fail),
            "keep" => Ok(Self::Keep),
            other => Err(unknown(
                ctx,
                "redirects",
                other,
                &["follow", "fail", "keep"],
            )),
        }
    }
}

impl Read for http::Timeouts {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        Ok(Self {
            connect_ms: field(ctx, &object, "connectMs")?,
            first_byte_ms: field(ctx, &object, "firstByteMs")?,
            idle_ms: field(ctx, &object, "idleMs")?,
            whole_ms: field(ctx, &object, "wholeMs")?,
        })
    }
}

impl Read for http::Request {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        Ok(Self {
            method: field(ctx, &object, "method")?,
            url: field(ctx, &object, "url")?,
            headers: field(ctx, &object, "headers")?,
            body: field(ctx, &object, "body")?,
            redirects: field(ctx, &object, "redirects")?,
            timeouts: field(ctx, &object, "timeouts")?,
        })
    }
}

impl Read for chat::Role {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        match &*read::<String>(ctx, value)? {
            "system" => Ok(Self::System),
            "user" => Ok(Self::User),
            "assistant" => Ok(Self::Assistant),
            other => Err(unknown(
                ctx,
                "role",
                other,
                &["system", "user", "assistant"],
            )),
        }
    }
}

impl Read for generation::FinishReason {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        match &*read::<String>(ctx, value)? {
            "stop" => Ok(Self::Stop),
            "length" => Ok(Self::Length),
            "constraint" => Ok(Self::Constraint),
            "closed" => Ok(Self::Closed),
            other => Err(unknown(
                ctx,
                "finish-reason",
                other,
                &["stop", "length", "constraint", "closed"],
            )),
        }
    }
}

impl Read for tools::ToolChoice {
    fn read<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let object: Object<'js> = value.get()?;
        match &*field::<String>(ctx, &object, "type")? {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "required" => Ok(Self::Required),
            "named" => Ok(Self::Named(field(ctx, &object, "value")?)),
            other => Err(unknown(
                ctx,
                "tool-choice",
                other,
                &["auto", "none", "required", "named"],
            )),
        }
    }
}

impl Write for sampling::Probabilities {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let object = Object::new(ctx.clone())?;
        object.set("tokens", self.tokens.write(ctx)?)?;
        object.set("values", self.values.write(ctx)?)?;
        Ok(object.into_value())
    }
}

impl Write for sampling::Slot {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        match self {
            Self::Tokens(value) => variant(ctx, "tokens", Some(value)),
            Self::Logits(value) => variant(ctx, "logits", Some(value)),
            Self::Distribution(value) => variant(ctx, "distribution", Some(value)),
            Self::Logprobs(value) => variant(ctx, "logprobs", Some(value)),
            Self::Entropy(value) => variant(ctx, "entropy", Some(value)),
            Self::Embedding(value) => variant(ctx, "embedding", Some(value)),
        }
    }
}

impl Write for sampling::Speculation {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let object = Object::new(ctx.clone())?;
        object.set("drafted", self.drafted.write(ctx)?)?;
        object.set("accepted", self.accepted.write(ctx)?)?;
        Ok(object.into_value())
    }
}

impl Write for forward::PassOutput {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let object = Object::new(ctx.clone())?;
        object.set("slots", self.slots.write(ctx)?)?;
        object.set("speculation", self.speculation.write(ctx)?)?;
        Ok(object.into_value())
    }
}

impl Write for generation::FinishReason {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let name = match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Constraint => "constraint",
            Self::Closed => "closed",
        };
        name.write(ctx)
    }
}

impl Write for generation::Output {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let object = Object::new(ctx.clone())?;
        object.set("tokens", self.tokens.write(ctx)?)?;
        object.set("finish", self.finish.write(ctx)?)?;
        object.set("slots", self.slots.write(ctx)?)?;
        object.set("speculation", self.speculation.write(ctx)?)?;
        Ok(object.into_value())
    }
}

impl Write for http::Header {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let object = Object::new(ctx.clone())?;
        object.set("name", self.name.write(ctx)?)?;
        object.set("value", self.value.write(ctx)?)?;
        Ok(object.into_value())
    }
}

impl Write for http::Head {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let object = Object::new(ctx.clone())?;
        object.set("status", self.status.write(ctx)?)?;
        object.set("statusText", self.status_text.write(ctx)?)?;
        object.set("url", self.url.write(ctx)?)?;
        object.set("isRedirected", self.is_redirected.write(ctx)?)?;
        object.set("headers", self.headers.write(ctx)?)?;
        Ok(object.into_value())
    }
}

impl Write for http_server::RequestHead {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let object = Object::new(ctx.clone())?;
        object.set("method", self.method.write(ctx)?)?;
        object.set("url", self.url.write(ctx)?)?;
        object.set("headers", self.headers.write(ctx)?)?;
        object.set("remoteAddress", self.remote_address.write(ctx)?)?;
        Ok(object.into_value())
    }
}

impl Write for chat::Event {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        match self {
            Self::Idle => variant(ctx, "idle", None::<()>),
            Self::Delta(value) => variant(ctx, "delta", Some(value)),
            Self::Done(value) => variant(ctx, "done", Some(value)),
            Self::Interrupt(value) => variant(ctx, "interrupt", Some(value)),
        }
    }
}

impl Write for reasoning::ReasoningEvent {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        match self {
            Self::Idle => variant(ctx, "idle", None::<()>),
            Self::Start => variant(ctx, "start", None::<()>),
            Self::Delta(value) => variant(ctx, "delta", Some(value)),
            Self::End(value) => variant(ctx, "end", Some(value)),
        }
    }
}

impl Write for tools::ToolCall {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let object = Object::new(ctx.clone())?;
        object.set("name", self.name.write(ctx)?)?;
        object.set("args", self.args.write(ctx)?)?;
        object.set("id", self.id.write(ctx)?)?;
        Ok(object.into_value())
    }
}

impl Write for tools::ToolEvent {
    fn write<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        match self {
            Self::Idle => variant(ctx, "idle", None::<()>),
            Self::Start => variant(ctx, "start", None::<()>),
            Self::Call(value) => variant(ctx, "call", Some(value)),
            Self::Malformed(value) => variant(ctx, "malformed", Some(value)),
        }
    }
}

listed!(sampling::Slot);
listed!(http::Header);
listed_in!(adapter::Change);
listed_in!(http::Header);
