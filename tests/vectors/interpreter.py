"""Runs the operations of a test vector and returns their transcript: one entry an operation, {"error": code} for a
failed one.
"""

import array
import asyncio
import contextlib
import json

import inferlet
from inferlet import (
    Adapter,
    AnyJson,
    Context,
    Ebnf,
    Grammar,
    InferletError,
    JsonSchema,
    Matcher,
    Model,
    Regex,
    Sampler,
    brle,
    chat,
    mcp,
    messaging,
    reasoning,
    runtime,
    scheduling,
    session,
    tools,
)
from inferlet.http_server import Response


def sampler_of(spec):
    spec = dict(spec)
    kind = spec.pop("kind")
    return getattr(Sampler, kind)(**spec)


def probe_of(spec):
    spec = dict(spec)
    kind = spec.pop("kind")
    return getattr(inferlet, kind.capitalize())(*spec.values())


def summed(values):
    return [len(values), values[0], values[-1], float(sum(values))]


def reading_of(out, handle):
    """What the accessors give of a handle, those that give nothing left out."""
    found = {
        "token": out.token(handle),
        "tokens": out.tokens_at(handle),
        "distribution": out.distribution(handle),
        "logits": out.logits(handle),
        "logprobs": out.logprobs(handle),
        "entropy": out.entropy(handle),
        "embedding": out.embedding(handle),
    }
    found = {name: value for name, value in found.items() if value is not None}
    if "logits" in found:
        found["logits"] = summed(array.array("f", found["logits"]))
    if "embedding" in found:
        found["embedding"] = list(array.array("f", found["embedding"]))
    if "distribution" in found:
        tokens, values = found["distribution"]
        found["distribution"] = [tokens, values] if len(tokens) <= 8 else [summed(tokens), summed(values)]
    return found


def event_of(event):
    match event:
        case chat.Event.Delta(text=text):
            return {"type": "delta", "text": text}
        case chat.Event.Done(text=text):
            return {"type": "done", "text": text}
        case chat.Event.Interrupt(token=token):
            return {"type": "interrupt", "token": token}
        case reasoning.Event.Start() | tools.Event.Start():
            return {"type": "start"}
        case reasoning.Event.Delta(text=text):
            return {"type": "delta", "text": text}
        case reasoning.Event.End(text=text):
            return {"type": "end", "text": text}
        case tools.Event.Call():
            return {"type": "call"} | call_of(event)
        case tools.Event.Malformed(text=text):
            return {"type": "malformed", "text": text}
        case _:
            return {"type": "idle"}


def call_of(call):
    return call and {"name": call.name, "args": call.args, "arguments": call.arguments, "id": call.id}


def drained(decoder, event, events):
    """Adds an event and all that are queued behind it; deltas that stand beside each other are one."""
    while (found := event_of(event))["type"] != "idle":
        if events and found["type"] == events[-1]["type"] == "delta":
            events[-1]["text"] += found["text"]
        else:
            events.append(found)
        event = decoder.feed([])


OPTIONS = (
    "max_tokens",
    "stop",
    "seed",
    "auto_flush",
    "ignore_eos",
    "logit_mask",
    "system_speculation",
    "zo_seed",
    "horizon",
    "rebid_each_step",
    "tool_choice",
)


GRAMMARS = {
    "json_schema": Grammar.from_json_schema,
    "any_json": lambda _: Grammar.json(),
    "regex": Grammar.from_regex,
    "ebnf": Grammar.from_ebnf,
}
SCHEMAS = {"json_schema": JsonSchema, "any_json": lambda _: AnyJson(), "regex": Regex, "ebnf": Ebnf}


def constraint_of(spec):
    return Masks(spec["masks"]) if "masks" in spec else SCHEMAS[spec["kind"]](spec["source"])


class Masks:
    """A constraint that answers with these masks in turn."""

    def __init__(self, masks):
        self.masks = masks
        self.seen = []

    def step(self, accepted):
        self.seen.append(accepted)
        return self.masks[len(self.seen) - 1] if len(self.seen) <= len(self.masks) else []


class Drafts:
    """A speculator that proposes these tokens in turn, behind what the context holds."""

    def __init__(self, context, drafts):
        self.context = context
        self.drafts = iter(drafts)
        self.told = []

    def draft(self):
        tokens = next(self.drafts, [])
        start = self.context.seq_len + len(self.context.buffer())
        return tokens, list(range(start, start + len(tokens)))

    def accept(self, tokens):
        self.told.append(["accept", tokens])

    def rollback(self, n):
        self.told.append(["rollback", n])

    def reset(self):
        self.told.append(["reset"])


class Interpreter:
    """The handles of one run, by their names; branches share them."""

    def __init__(self, request=None):
        self.request = request
        self.model = Model.load(runtime.models()[0])
        self.contexts = {}
        self.generators = {}
        self.decoders = {}
        self.passes = {}
        self.outputs = {}
        self.handles = {}
        self.constraints = {}
        self.speculators = {}
        self.grammars = {}
        self.matchers = {}
        self.subscriptions = {}
        self.children = {}
        self.sessions = {}
        self.adapters = {}

    async def run(self, ops):
        return [await self.step(op) for op in ops]

    async def step(self, op):
        arguments = {key: value for key, value in op.items() if key != "op"}
        try:
            return await getattr(self, f"op_{op['op']}")(arguments)
        except InferletError as error:
            return {"error": error.code}

    async def op_all(self, a):
        return await asyncio.gather(*(self.run(branch) for branch in a["ops"]))

    async def op_context(self, a):
        self.contexts[a["as"]] = Context(Model.load(a["model"]) if "model" in a else self.model)

    async def op_fork(self, a):
        self.contexts[a["as"]] = self.contexts[a["ctx"]].fork()

    async def op_save(self, a):
        self.contexts[a["ctx"]].save(a["name"])

    async def op_open(self, a):
        return self.opened(a["as"], Context.open(self.model, a["name"]))

    async def op_take(self, a):
        return self.opened(a["as"], Context.take(self.model, a["name"]))

    def opened(self, name, context):
        if context is not None:
            self.contexts[name] = context
        return context is not None

    async def op_delete(self, a):
        Context.delete(self.model, a["name"])

    async def op_snapshots(self, a):
        return Context.snapshots(self.model)

    async def op_snapshot(self, a):
        return self.opened(a["as"], Context.take(self.model, self.contexts[a["ctx"]].snapshot()))

    async def op_suspend(self, a):
        self.contexts[a["ctx"]].suspend()

    async def op_set_bid(self, a):
        self.contexts[a["ctx"]].set_bid(a["bid"])

    async def op_idle(self, a):
        with self.contexts[a["ctx"]].idle():
            self.contexts[a["ctx"]].suspend()
            return await self.run(a["within"])

    async def op_balance(self, a):
        return scheduling.balance(self.model)

    async def op_dividend(self, a):
        return scheduling.dividend(self.model)

    async def op_price(self, a):
        return scheduling.price()

    async def op_rent(self, a):
        return scheduling.rent(self.contexts[a["ctx"]])

    async def op_latency(self, a):
        return scheduling.latency(self.contexts[a["ctx"]]) >= 0

    async def op_release(self, a):
        self.contexts[a["ctx"]].release()

    async def op_system(self, a):
        self.contexts[a["ctx"]].system(a["text"])

    async def op_user(self, a):
        self.contexts[a["ctx"]].user(a["text"])

    async def op_assistant(self, a):
        self.contexts[a["ctx"]].assistant(a["text"])

    async def op_cue(self, a):
        self.contexts[a["ctx"]].cue()

    async def op_seal(self, a):
        self.contexts[a["ctx"]].seal()

    async def op_append(self, a):
        self.contexts[a["ctx"]].append(a["tokens"])

    async def op_append_text(self, a):
        self.contexts[a["ctx"]].append_text(a["text"])

    async def op_flush(self, a):
        await self.contexts[a["ctx"]].flush()

    async def op_truncate(self, a):
        self.contexts[a["ctx"]].truncate(a["n"])

    async def op_seq_len(self, a):
        return self.contexts[a["ctx"]].seq_len

    async def op_cached_tokens(self, a):
        return self.contexts[a["ctx"]].cached_tokens

    async def op_buffer(self, a):
        return self.contexts[a["ctx"]].buffer()

    async def op_page_size(self, a):
        return self.contexts[a["ctx"]].page_size

    async def op_generate(self, a):
        options = {key: a[key] for key in OPTIONS if key in a}
        constraints = [constraint_of(one) for one in a.get("constrain", [])]
        if constraints:
            options["constrain"] = constraints
        self.constraints[a["as"]] = [one for one in constraints if isinstance(one, Masks)]
        if "speculator" in a:
            options["speculator"] = self.speculators[a["as"]] = Drafts(self.contexts[a["ctx"]], a["speculator"]["drafts"])
        if "adapter" in a:
            options["adapter"] = self.adapters[a["adapter"]]
        self.generators[a["as"]] = self.contexts[a["ctx"]].generate(sampler_of(a["sampler"]), **options)

    async def op_set_max_tokens(self, a):
        self.generators[a["gen"]].max_tokens(a["n"])

    async def op_stop(self, a):
        self.generators[a["gen"]].stop(a["tokens"])

    async def op_add_stop(self, a):
        self.generators[a["gen"]].add_stop(a["tokens"])

    async def op_ignore_eos(self, a):
        self.generators[a["gen"]].ignore_eos(a["value"])

    async def op_logit_mask(self, a):
        self.generators[a["gen"]].logit_mask(a["mask"])

    async def op_system_speculation(self, a):
        self.generators[a["gen"]].system_speculation(*([a["model"]] if "model" in a else []))

    async def op_set_seed(self, a):
        self.generators[a["gen"]].seed(a["seed"])

    async def op_step(self, a):
        with contextlib.suppress(StopAsyncIteration):
            step = await anext(self.generators[a["gen"]])
            if a.get("clear"):
                step.clear_sampler()
            for one in a.get("probes", []):
                self.handles[one["as"]] = step.probe(one["index"], probe_of(one["probe"]))
            out = await step.execute()
            if "as" in a:
                self.outputs[a["as"]] = out
            return {"tokens": out.tokens, "finish": out.finish_reason}

    async def op_collect_tokens(self, a):
        return await self.generators[a["gen"]].collect_tokens()

    async def op_collect_text(self, a):
        return await self.generators[a["gen"]].collect_text()

    async def op_collect_json(self, a):
        return await self.generators[a["gen"]].collect_json()

    async def op_give_up(self, a):
        """What is seen while it goes on."""
        collecting = asyncio.ensure_future(getattr(self.generators[a["gen"]], a["how"])())
        async for step in self.generators[a["beside"]]:
            await step.execute()
        seen = await self.run(a["seen"])
        assert collecting.cancel(), "it ended before it was given up"
        with contextlib.suppress(asyncio.CancelledError):
            await collecting
        return seen

    async def op_grammar(self, a):
        self.grammars[a["as"]] = GRAMMARS[a["kind"]](a["source"])

    async def op_matcher(self, a):
        self.matchers[a["as"]] = Matcher(self.grammars[a["grammar"]], self.model.tokenizer())

    async def op_matcher_mask(self, a):
        return self.matchers[a["matcher"]].next_token_logit_mask()

    async def op_matcher_accept(self, a):
        self.matchers[a["matcher"]].accept_tokens(a["tokens"])

    async def op_matcher_forced(self, a):
        return self.matchers[a["matcher"]].forced_tokens()

    async def op_matcher_ended(self, a):
        return self.matchers[a["matcher"]].is_terminated

    async def op_matcher_reset(self, a):
        self.matchers[a["matcher"]].reset()

    async def op_matcher_fork(self, a):
        self.matchers[a["as"]] = self.matchers[a["matcher"]].fork()

    async def op_tokens_generated(self, a):
        return self.generators[a["gen"]].tokens_generated

    async def op_is_done(self, a):
        return self.generators[a["gen"]].is_done

    async def op_finish_reason(self, a):
        return self.generators[a["gen"]].finish_reason

    async def op_encode(self, a):
        return self.model.tokenizer().encode(a["text"])

    async def op_decode(self, a):
        return self.model.tokenizer().decode(a["tokens"])

    async def op_models(self, a):
        return runtime.models()

    async def op_version(self, a):
        return runtime.version()

    async def op_request(self, a):
        return self.request

    async def op_username(self, a):
        return runtime.username()

    async def op_instance_id(self, a):
        return runtime.instance_id() == runtime.instance_id() != ""

    async def op_args(self, a):
        return runtime.args()

    async def op_launch_seed(self, a):
        return runtime.launch_seed()

    async def op_model_name(self, a):
        return self.model.name

    async def op_vocab_size(self, a):
        return self.model.tokenizer().vocab_size()

    async def op_vocabs(self, a):
        ids, contents = self.model.tokenizer().vocabs()
        return [len(ids), [list(contents[ids.index(token)]) for token in a["tokens"]]]

    async def op_special_tokens(self, a):
        return [[token, list(content)] for token, content in zip(*self.model.tokenizer().special_tokens(), strict=True)]

    async def op_split_regex(self, a):
        return self.model.tokenizer().split_regex()

    async def op_message_tokens(self, a):
        return getattr(chat, a["role"])(self.model, a["text"])

    async def op_cue_tokens(self, a):
        return chat.cue(self.model)

    async def op_seal_tokens(self, a):
        return chat.seal(self.model)

    async def op_stop_tokens(self, a):
        return chat.stop_tokens(self.model)

    async def op_send(self, a):
        session.send(a["text"])

    async def op_send_json(self, a):
        session.send(a["value"])

    async def op_message(self, a):
        session.message(a["text"])

    async def op_receive(self, a):
        return await session.receive()

    async def op_send_file(self, a):
        session.send_file(bytes(a["data"]))

    async def op_receive_file(self, a):
        return list(await session.receive_file())

    async def op_spawn(self, a):
        options = {name: a[name] for name in ("output", "detached", "seed", "token_budget", "credits") if name in a}
        self.children[a["as"]] = runtime.spawn(a["program"], a["input"], **options)

    async def op_wait(self, a):
        return await self.children[a["child"]]

    async def op_waits_in_vain(self, a):
        try:
            await self.children[a["child"]].wait()
        except InferletError:
            return True
        return False

    async def op_cancel(self, a):
        self.children[a["child"]].cancel()

    async def op_pid(self, a):
        return self.children[a["child"]].pid > 0

    async def op_hash_of_seed(self, a):
        return f"{runtime.launch_seed():016x}"

    async def op_push(self, a):
        messaging.push(a["topic"], a["message"])

    async def op_pull(self, a):
        return await messaging.pull(a["topic"])

    async def op_broadcast(self, a):
        for _ in range(a.get("n", 1)):
            messaging.broadcast(a["topic"], a["message"])

    async def op_subscribe(self, a):
        self.subscriptions[a["as"]] = messaging.subscribe(a["topic"])

    async def op_next(self, a):
        return await self.subscriptions[a["sub"]].next()

    async def op_get(self, a):
        return self.subscriptions[a["sub"]].try_next()

    async def op_lagged(self, a):
        return self.subscriptions[a["sub"]].lagged

    async def op_unsubscribe(self, a):
        self.subscriptions[a["sub"]].unsubscribe()

    async def op_mcp_servers(self, a):
        return mcp.available_servers()

    async def op_mcp_connect(self, a):
        server = a["server"]
        self.sessions[a["as"]] = await mcp.connect_async(server) if a.get("later") else mcp.connect(server)

    async def op_mcp_ask(self, a):
        return json.loads(await self.asked(a))

    async def asked(self, a):
        session, what = self.sessions[a["session"]], a["what"]
        if what == "server_info":
            return session.server_info
        if a.get("later"):
            return await getattr(session, f"{what}_async")(*a.get("args", []))
        return getattr(session, what)(*a.get("args", []))

    async def op_mcp_give_up(self, a):
        asking = asyncio.ensure_future(self.asked(a | {"later": True}))
        seen = await self.op_mcp_ask(a | a["meanwhile"] | {"later": True})
        assert asking.cancel(), "it was answered before it was given up"
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        return seen

    async def op_mcp_equip(self, a):
        self.contexts[a["ctx"]].equip(json.loads(self.sessions[a["session"]].list_tools())["tools"])

    async def op_mcp_close(self, a):
        with self.sessions[a["session"]]:
            pass

    def decoder(self, a, module=chat):
        if a["as"] not in self.decoders:
            self.decoders[a["as"]] = module.Decoder(self.model)
        return self.decoders[a["as"]]

    async def op_equip(self, a):
        self.contexts[a["ctx"]].equip(a["schemas"])

    async def op_answer(self, a):
        self.contexts[a["ctx"]].answer(a["name"], a["value"], id=a.get("id"))

    async def op_equip_tokens(self, a):
        return tools.equip_prefix(self.model, a["schemas"])

    async def op_answer_tokens(self, a):
        return tools.answer_prefix(self.model, a["name"], a["value"], id=a.get("id"))

    async def op_parse_call(self, a):
        return call_of(tools.parse_call(self.model, a["text"]))

    async def op_native_grammar(self, a):
        matcher = tools.native_matcher(self.model, a["schemas"], choice=a["choice"])
        return [self.is_text_of(matcher, text) for text in a["texts"]]

    def is_text_of(self, matcher, text):
        matcher.reset()
        try:
            matcher.accept_tokens(self.model.tokenizer().encode(text))
        except InferletError as error:
            if error.code != "grammar-mismatch":
                raise
            return False
        return matcher.is_terminated

    async def op_chat_all(self, a):
        return self.every_event(self.decoder(a), a["pieces"])

    async def op_thoughts_feed(self, a):
        return event_of(self.decoder(a, reasoning).feed(a["tokens"]))

    async def op_thoughts_finish(self, a):
        return event_of(self.decoder(a, reasoning).finish())

    async def op_thoughts_reset(self, a):
        self.decoder(a, reasoning).reset()

    async def op_thoughts_all(self, a):
        return self.every_event(self.decoder(a, reasoning), a["pieces"])

    async def op_thoughts_stream(self, a):
        return await self.streamed(reasoning.Decoder(self.model), a)

    async def op_calls_feed(self, a):
        return event_of(self.decoder(a, tools).feed(a["tokens"]))

    async def op_calls_finish(self, a):
        return event_of(self.decoder(a, tools).finish())

    async def op_calls_reset(self, a):
        self.decoder(a, tools).reset()

    async def op_calls_all(self, a):
        return self.every_event(self.decoder(a, tools), a["pieces"])

    async def op_calls_stream(self, a):
        return await self.streamed(tools.Decoder(self.model), a)

    async def op_visible(self, a):
        return self.every_event(chat.Decoder(self.model, hide_thoughts=True, hide_calls=True), [a["tokens"]])

    def every_event(self, decoder, pieces):
        events = []
        for piece in pieces:
            drained(decoder, decoder.feed(piece), events)
        drained(decoder, decoder.finish(), events)
        return events

    async def streamed(self, decoder, a):
        events = []
        async for step in self.generators[a["gen"]]:
            events += map(event_of, decoder.events(await step.execute()))
        return events

    async def op_chat_feed(self, a):
        return event_of(self.decoder(a).feed(a["tokens"]))

    async def op_chat_finish(self, a):
        return event_of(self.decoder(a).finish())

    async def op_chat_reset(self, a):
        self.decoder(a).reset()

    async def op_chat_stream(self, a):
        decoder, events = chat.Decoder(self.model), []
        async for step in self.generators[a["gen"]]:
            events += map(event_of, decoder.events(await step.execute()))
        return events

    async def op_text_stream(self, a):
        texts = self.generators[a["gen"]].texts()
        pieces = [text async for text in texts]
        return [pieces, texts.text_so_far]

    async def op_probe_each_step(self, a):
        self.handles[a["as"]] = self.generators[a["gen"]].probe_each_step(a["index"], probe_of(a["probe"]))

    async def op_accept(self, a):
        return self.generators[a["gen"]].accept(a["tokens"])

    async def op_constrain(self, a):
        constraints = [constraint_of(one) for one in a["constrain"]]
        self.generators[a["gen"]].constrain(constraints)
        self.constraints[a["gen"]] += [one for one in constraints if isinstance(one, Masks)]

    async def op_horizon(self, a):
        self.generators[a["gen"]].horizon(a["n"])

    async def op_rebid_each_step(self, a):
        self.generators[a["gen"]].rebid_each_step(a["value"])

    async def op_zo_seed(self, a):
        self.generators[a["gen"]].zo_seed(a["seed"])

    async def op_adapter(self, a):
        self.adapters[a["as"]] = Adapter.create(self.model, a["name"], rank=a.get("rank", 8), alpha=a.get("alpha", 16))

    async def op_adapter_open(self, a):
        found = Adapter.open(self.model, a["name"])
        if found is not None:
            self.adapters[a["as"]] = found
        return found is not None

    async def op_adapter_names(self, a):
        return Adapter.names(self.model)

    async def op_adapter_fork(self, a):
        self.adapters[a["as"]] = self.adapters[a["adapter"]].fork(a["name"])

    async def op_adapter_change(self, a):
        self.adapters[a["adapter"]].change(map(tuple, a["changes"]), sigma=a.get("sigma"))

    async def op_adapter_save(self, a):
        self.adapters[a["adapter"]].save(a["path"])

    async def op_adapter_load(self, a):
        self.adapters[a["adapter"]].load(a["path"])

    async def op_adapter_destroy(self, a):
        Adapter.delete(self.model, a["name"])

    async def op_use_adapter(self, a):
        self.generators[a["gen"]].adapter(self.adapters[a["adapter"]])

    async def op_pass_adapter(self, a):
        self.passes[a["fwd"]].adapter(self.adapters[a["adapter"]])

    async def op_constraint_log(self, a):
        return [constraint.seen for constraint in self.constraints[a["gen"]]]

    async def op_speculator_log(self, a):
        return self.speculators[a["gen"]].told

    async def op_forward(self, a):
        self.passes[a["as"]] = self.contexts[a["ctx"]].forward()

    async def op_input(self, a):
        self.passes[a["fwd"]].input(a["tokens"])

    async def op_input_at(self, a):
        self.passes[a["fwd"]].input_at(a["tokens"], a["positions"])

    async def op_attention_mask(self, a):
        self.passes[a["fwd"]].attention_mask(a["masks"])

    async def op_mask(self, a):
        self.passes[a["fwd"]].mask(a["mask"])

    async def op_sample(self, a):
        self.handles[a["as"]] = self.passes[a["fwd"]].sample(a["indices"], sampler_of(a["sampler"]))

    async def op_probe(self, a):
        self.handles[a["as"]] = self.passes[a["fwd"]].probe(a["index"], probe_of(a["probe"]))

    async def op_pass_zo_seed(self, a):
        self.passes[a["fwd"]].zo_seed(a["seed"])

    async def op_start_position(self, a):
        return self.passes[a["fwd"]].start_position()

    async def op_execute(self, a):
        self.outputs[a["as"]] = await self.passes[a["fwd"]].execute()

    async def op_read(self, a):
        out = self.outputs.get(a["out"])
        handle = self.handles.get(a["handle"])
        if out is not None and a["handle"] == "auto":
            handle = out.auto_sampler
        return {} if out is None or handle is None else reading_of(out, handle)

    async def op_mask_of_bools(self, a):
        return brle.from_bools(a["allowed"])

    async def op_mask_shortest(self, a):
        return brle.shortest(a["mask"], a["length"])

    async def op_mask_and(self, a):
        return brle.intersection(a["masks"], a["length"])

    async def op_mask_allowing(self, a):
        return brle.allowing(a["elements"], a["length"])

    async def op_mask_allowed(self, a):
        return brle.allowed(a["mask"], a["length"])

    async def op_mask_pack(self, a):
        return list(brle.pack(a["mask"], a["length"]))

    async def op_mask_unpack(self, a):
        return brle.unpack(bytes(a["bits"]), a["length"])

    async def op_mask_window(self, a):
        return brle.window(a["start"], a["n"], a["window"], a["sinks"])

    async def op_mask_causal(self, a):
        return brle.causal(a["start"], a["n"])

    async def op_sleep(self, a):
        await asyncio.sleep(a["ms"] / 1000)


async def main(input):
    return await Interpreter().run(input["ops"])


async def fetch(request):
    """Each entry is a line of the answer, sent as it is made."""
    ops = (await request.json())["ops"]
    interpreter = Interpreter({"method": request.method, "path": request.path, "header": request.headers.get("x-a")})

    async def entries():
        for op in ops:
            yield json.dumps(await interpreter.step(op)) + "\n"

    return Response(entries(), headers={"Content-Type": "application/x-ndjson"})
