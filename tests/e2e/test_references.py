"""The snippets of the reference documents on text, generators, passes, constraints, decoders, tools, snapshots,
adapters and scheduling, run as they are printed there. What a document leaves out stands around them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pie.engine import Engine
from pie.programs import load_program
from support.launching import ROOT, python_source, run, typescript_source


@dataclass(frozen=True)
class Snippet:
    """Lines of a document, what stands before and behind them, and what the program then returns."""

    printed: str
    behind: str
    shows: Callable[[Any], bool]
    before: str = ""

    def indented(self, n: int) -> str:
        """All of it, inside a function."""
        text = "\n".join(textwrap.dedent(part).strip("\n") for part in (self.before, self.printed, self.behind))
        return textwrap.indent(text, " " * n)


def is_text(value: Any) -> bool:
    """Whether it is a text that shows something."""
    return isinstance(value, str) and bool(value)


def is_true(value: Any) -> bool:
    """Whether everything that was looked at was so."""
    return value is True


PYTHON_FRAME = """
async def main(input):
    from inferlet import Context, Model, Sampler
    model = Model.load("default")
    ctx = Context(model)
    ctx.user("Hello!")
    token_ids = [70, 71, 72]
"""

PYTHON: dict[str, Snippet] = {
    "context": Snippet(
        """
        from inferlet import Context
        ctx = Context(model)
        """,
        "with Context(model) as ctx:\n    ctx.user('Hi')\nreturn [ctx.model is model, ctx.page_size]",
        lambda value: value == [True, 16],
    ),
    "generate": Snippet(
        """
        from inferlet import Sampler
        g = ctx.generate(Sampler.top_p(0.6, 0.95), max_tokens=256)
        """,
        "return [await g.collect_text(), g.tokens_generated, g.is_done]",
        lambda value: is_text(value[0]) and value[1] > 0 and value[2],
    ),
    "step by step": Snippet(
        """
        async for step in g:
            out = await step.execute()
        """,
        "return [g.is_done, len(out.tokens), out.token(out.auto_sampler) == out.tokens[0]]",
        lambda value: value == [True, 1, True],
        before="g = ctx.generate(Sampler.argmax(), max_tokens=4)",
    ),
    "forward": Snippet(
        """
        fwd = ctx.forward()
        fwd.input(token_ids)
        h = fwd.sample([0], Sampler.argmax())
        out = await fwd.execute()
        token = out.token(h)
        """,
        "return [token, out.tokens_at(h)]",
        lambda value: [value[0]] == value[1],
    ),
    "probes": Snippet(
        "from inferlet import Logits, Distribution, Logprob, Logprobs, Entropy",
        """
        fwd = ctx.forward().input(token_ids)
        made = [Logits(), Distribution(1.0, 3), Logprob(7), Logprobs([7, 8]), Entropy()]
        handles = [fwd.probe(2, probe) for probe in made]
        out = await fwd.execute()
        logits, top, one, some, entropy = handles
        return [len(out.logits(logits)), len(out.distribution(top)[0]), out.logprobs(one)[0] == out.logprobs(some)[0], out.entropy(entropy) > 0]
        """,
        lambda value: value == [4 * 4096, 3, True, True],
    ),
    "schemas": Snippet(
        "from inferlet import AnyJson, JsonSchema, Regex, Ebnf",
        """
        texts = []
        for schema in [JsonSchema(schema='{"enum": [1]}'), Regex(pattern="ab"), Ebnf(source='start: "x"')]:
            texts.append(await Context(model).append([5]).generate(Sampler.argmax(), max_tokens=9, constrain=schema).collect_text())
        g = Context(model).append([5]).generate(Sampler.argmax(), max_tokens=9).constrain(AnyJson())
        return [*texts, (await g.collect_text())[0] in '"[{-0123456789tfn']
        """,
        lambda value: value == ["1", "ab", "x", True],
    ),
    "custom schema": Snippet(
        """
        class MySchema:
            def build_constraint(self, model: Model) -> GrammarConstraint:
                return GrammarConstraint.json(model)
        """,
        """
        text = await ctx.generate(Sampler.argmax(), max_tokens=9, constrain=MySchema()).collect_text()
        return text[0] in '"[{-0123456789tfn'
        """,
        is_true,
        before="from inferlet import GrammarConstraint",
    ),
    "custom constraint": Snippet(
        """
        class MyConstraint:
            def step(self, accepted: list[int]) -> list[int]:
                return []
        """,
        """
        free = await ctx.fork().generate(Sampler.argmax(), max_tokens=4).collect_tokens()
        return free == await ctx.generate(Sampler.argmax(), max_tokens=4, constrain=[MyConstraint()]).collect_tokens()
        """,
        is_true,
    ),
    "grammars": Snippet(
        "from inferlet import Grammar, GrammarConstraint, Matcher",
        """
        tokenizer = model.tokenizer()
        ids = tokenizer.encode('{"a":1}')
        grammars = [Grammar.from_json_schema("{}"), Grammar.json(), Grammar.from_regex(".*[}]"), Grammar.from_ebnf('start: /[^x]*/ "x"?')]
        made = [GrammarConstraint.from_json_schema("{}", model), GrammarConstraint.json(model), GrammarConstraint.from_regex("a", model)]
        made += [GrammarConstraint.from_ebnf('start: "a"', model), *(GrammarConstraint.from_grammar(g, model) for g in grammars)]
        m = Matcher(grammars[0], tokenizer)
        m.accept_tokens(ids)
        ended, first = m.is_terminated, GrammarConstraint(m)
        m.reset()
        return [ended, m.is_terminated, len(m.next_token_logit_mask()) > 1, len(made)]
        """,
        lambda value: value == [True, False, True, 8],
    ),
    "speculator": Snippet(
        """
        from inferlet.spec import Speculator

        class MySpec:
            def draft(self) -> tuple[list[int], list[int]]:
                return [], []
            def accept(self, tokens: list[int]) -> None:
                return None
            def rollback(self, n: int) -> None:
                return None
            def reset(self) -> None:
                return None
        """,
        """
        spec: Speculator = MySpec()
        free = await ctx.fork().generate(Sampler.argmax(), max_tokens=4).collect_tokens()
        return free == await ctx.generate(Sampler.argmax(), max_tokens=4, speculator=spec).collect_tokens()
        """,
        is_true,
    ),
    "chat decoder": Snippet(
        """
        from inferlet import chat

        dec = chat.Decoder(model)
        match dec.feed(tokens):
            case chat.Event.Delta(text=t): ...
            case chat.Event.Done(text=t): ...
            case chat.Event.Idle(): ...
            case chat.Event.Interrupt(token=tid): ...
        """,
        "dec.reset()\nreturn t",
        lambda value: value == "Hello",
        before="tokens = model.tokenizer().encode('Hello')",
    ),
    "chat helpers": Snippet(
        "from inferlet import chat",
        """
        msg, whole = "Hi", Context(model).system("Hi").user("Hi").assistant("Hi").cue()
        pieces = [chat.system(model, msg), chat.user(model, msg), chat.assistant(model, msg), chat.cue(model)]
        return [sum(pieces, []) == whole.buffer(), chat.seal(model)[0] in chat.stop_tokens(model)]
        """,
        lambda value: value == [True, True],
    ),
    "reasoning decoder": Snippet(
        "from inferlet import reasoning",
        """
        seen = []
        for event in reasoning.Decoder(model).events(model.tokenizer().encode("<think>hm</think>4")):
            match event:
                case reasoning.Event.Start(): seen.append("start")
                case reasoning.Event.Delta(text): seen.append(text)
                case reasoning.Event.End(text): seen.append(text)
                case reasoning.Event.Idle(): seen.append("idle")
        return seen
        """,
        lambda value: value == ["start", "hm", "hm"],
    ),
    "tools": Snippet(
        "from inferlet import tools",
        """
        schemas = ['{"name": "get_price", "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}}']
        call = '<tool_call>{"name": "get_price", "arguments": {"item": "violin"}}</tool_call>'
        equipped = Context(model).append(tools.equip_prefix(model, schemas)).user("How much?").cue().append_text(call)
        equipped.append(tools.answer_prefix(model, "get_price", {"price": 340}))
        (_, event) = tools.Decoder(model).events(model.tokenizer().encode(call))
        return [event.name, event.args, event.arguments, model.tokenizer().decode(equipped.buffer()).count('{"price":340}')]
        """,
        lambda value: value == ["get_price", '{"item": "violin"}', '{"item": "violin"}', 1],
    ),
    "snapshots": Snippet(
        """
        ctx.save(name)
        copy = Context.open(model, name)
        moved = Context.take(model, name)
        """,
        """
        from inferlet.errors import InferletError
        made = ctx.snapshot()
        kept = Context.take(model, made)
        absent = [Context.open(model, name), Context.take(model, name)]
        try:
            Context.delete(model, name)
        except InferletError as error:
            absent.append(error.code)
        ctx.save(name)
        Context.delete(model, name)
        absent.append(Context.open(model, name))
        return [[one.buffer() == ctx.buffer() for one in (copy, moved, kept)], absent]
        """,
        lambda value: value == [[True] * 3, [None, None, "snapshot-missing", None]],
        before="name = 'of the Python reference'",
    ),
    "scheduling": Snippet(
        "from inferlet import scheduling",
        """
        ctx.set_bid(2.5)
        with ctx.idle():
            await ctx.flush()
        numbers = [scheduling.price(), scheduling.rent(ctx), scheduling.dividend(model)]
        return [numbers, scheduling.latency(ctx) >= 0, scheduling.balance(model) > 0]
        """,
        lambda value: value == [[1, 0, 0], True, True],
    ),
}

OLDER_FRAME = """
from inferlet import Model, Context, Sampler, session, runtime

model = Model.load(runtime.models()[0])
ctx = Context(model)
ctx.user("Hello!")
tool_schema_json_1 = '{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}'
tool_schema_json_2 = '{"name": "now"}'
"""
"""Older programs are scripts: what they say is what they send."""

OLDER: dict[str, Snippet] = {
    "quick start": Snippet(
        """
        from inferlet import Model, Context, Sampler, session, runtime

        model = Model.load(runtime.models()[0])
        ctx = Context(model)

        ctx.system("You are a helpful assistant.")
        ctx.user("Hello, world!")

        text = ctx.generate_text(Sampler.top_p())
        session.send(text)
        """,
        "",
        is_text,
    ),
    "names": Snippet(
        """
        from inferlet import (
            Model, Tokenizer,         # Model loading & tokenization
            Context,                  # Generation context (KV cache)
            TokenStream, EventStream, # Streaming iterators
            Sampler,                  # Sampling strategies
            Event, Decoder,           # Event types & unified decoder
            ForwardPass,              # Low-level forward pass
            Grammar, Matcher,         # Structured generation
            Adapter,                  # LoRA adapters
            session,                  # Client communication
            runtime,                  # Runtime info & spawning
            messaging,                # Pub/sub messaging
            mcp,                      # MCP tool server client
            zo,                       # Zeroth-order optimization
        )
        """,
        "session.send(isinstance(model.tokenizer(), Tokenizer) and isinstance(ctx.generate(Sampler.greedy()), TokenStream))",
        lambda value: value == "true",
    ),
    "context": Snippet(
        """
        ctx = Context(model)                     # auto-named
        ctx = Context(model, name="my-ctx")      # explicit name

        # Chat formatting (pie:instruct/chat)
        ctx.system("You are helpful.")
        ctx.user("Hello!")
        ctx.assistant("Hi there!")    # history replay
        ctx.cue()                     # start generation header
        ctx.seal()                    # insert stop token

        # Text-level buffer fill
        ctx.fill("arbitrary text")          # encodes via tokenizer
        ctx.fill_tokens([1, 2, 3])         # raw tokens

        # Forking
        fork = ctx.fork()                   # auto-named
        fork = ctx.fork("beam-0")          # explicit name

        # Cleanup
        ctx.release()             # manual
        with Context(model) as ctx:  # auto-release via context manager
            ...
        """,
        "session.send(model.tokenizer().decode(fork.buffer()))",
        lambda value: value.startswith("<|im_start|>system\nYou are helpful.") and "arbitrary text" in value,
    ),
    "generation": Snippet(
        """
        # 1. One-shot (simplest)
        text = ctx.generate_text(Sampler.top_p(), max_tokens=256)

        # 2. Streaming events
        for event in ctx.generate(Sampler.top_p(), decode=True):
            match event:
                case Event.Text(text=t):
                    session.send(t)
                case Event.Done():
                    break

        # 3. Raw tokens (lowest level)
        for tokens in ctx.generate(Sampler.top_p(), max_tokens=128, auto_flush=False):
            # tokens: list[int]
            pass
        stream = ctx.generate(Sampler.top_p())
        all_text = stream.text()        # collect decoded text
        all_tokens = stream.tokens()    # collect token IDs
        """,
        "assert text and all_text and all_tokens and tokens",
        is_text,
        before="from inferlet import Event",
    ),
    "samplers": Snippet(
        """
        Sampler.greedy()                                    # deterministic
        Sampler.top_p(temperature=0.6, top_p=0.95)          # nucleus sampling
        Sampler.top_k(temperature=0.6, top_k=50)            # top-k sampling
        Sampler.min_p(temperature=0.6, min_p=0.1)           # min-p sampling
        Sampler.multinomial(temperature=1.0, seed=0)        # multinomial
        Sampler.top_k_top_p(temperature=0.6, top_k=50, top_p=0.95)  # combined
        Sampler.embedding()                                  # embedding extraction
        Sampler.dist(temperature=1.0, seed=0)               # full distribution
        """,
        "session.send(ctx.generate_text(Sampler.top_k_top_p(temperature=0.6, top_k=50, top_p=0.95), max_tokens=8))",
        is_text,
    ),
    "events": Snippet(
        """
        for event in ctx.generate(Sampler.top_p(), decode=True, reasoning=True, tool_use=True):
            ...
        """,
        "session.send(type(event).__name__)",
        lambda value: value == "Done",
    ),
    "tool use": Snippet(
        """
        ctx.equip_tools([tool_schema_json_1, tool_schema_json_2])
        # ... generate and detect tool calls ...
        ctx.answer_tool("get_weather", '{"temp": 72}')
        """,
        "ctx.cue()\nsession.send(model.tokenizer().decode(ctx.buffer()))",
        lambda value: '{"temp": 72}' in value and "get_weather" in value,
        before="ctx = Context(model)",
    ),
    "structured generation": Snippet(
        """
        matcher = Matcher(grammar, model.tokenizer())

        # Use in generation loop for constrained decoding
        mask = matcher.next_token_logit_mask()
        # pass mask as logit_mask to generate()
        """,
        """
        while True:
            tokens = ctx.generate(Sampler.greedy(), max_tokens=1, logit_mask=mask).tokens()
            matcher.accept_tokens(tokens)
            session.send(model.tokenizer().decode(tokens))
            if matcher.is_terminated:
                break
            mask = matcher.next_token_logit_mask()
        """,
        lambda value: value in ('{"ok":true}', '{"ok":false}'),
        before="""
        from inferlet import Grammar, Matcher
        schema = '{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"],"additionalProperties":false}'
        grammar = Grammar.from_json_schema(schema)
        """,
    ),
}

TYPESCRIPT_FRAME = """
import { Context, Model, Sampler } from 'inferlet';
IMPORTS

export async function main() {
  const model = Model.load('default');
  const tokenIds = [70, 71, 72];
  const context = () => new Context(model).append([41, 42]);
BODY
}
"""

TYPESCRIPT: dict[str, Snippet] = {
    "names": Snippet(
        """
        import {
        Model, Tokenizer, Context, Adapter,
        Forward, Output, Generator, GenStep,
        Sampler, Logits, Distribution, Logprob, Logprobs, Entropy,
        Grammar, GrammarConstraint,
        jsonSchema, anyJson, regex, ebnf, grammar,
        chat, reasoning, tools,
        runtime, session, messaging,
        } from 'inferlet';
        """,
        """
        const classes = [Model, Tokenizer, Context, Adapter, Forward, Output, Generator, GenStep, Grammar, GrammarConstraint];
        const functions = [Logits, Distribution, Logprob, Logprobs, Entropy, jsonSchema, anyJson, regex, ebnf, grammar, Sampler.argmax];
        return [...classes, ...functions].every((one) => typeof one === 'function') && !!chat && !!reasoning && !!tools && !!runtime && !!session && !!messaging;
        """,
        is_true,
    ),
    "context": Snippet(
        """
        import { Context } from 'inferlet';
        using ctx = new Context(model);
        """,
        "return ctx.user('Hi').buffer().length > 0 && ctx.model === model;",
        is_true,
    ),
    "generate": Snippet(
        """
        import { Sampler } from 'inferlet';
        const g = ctx.generate(Sampler.topP(0.6, 0.95), { maxTokens: 256 });
        """,
        "return [(await g.collectTokens()).length === g.tokensGenerated, g.isDone];",
        lambda value: value == [True, True],
        before="using ctx = context();",
    ),
    "step by step": Snippet(
        """
        for await (const step of g) {
          const out = await step.execute();
          n += out.tokens.length;
        }
        """,
        "return n;",
        lambda value: value == 4,
        before="const g = context().generate(Sampler.argmax(), { maxTokens: 4 });\nlet n = 0;",
    ),
    "forward": Snippet(
        """
        const fwd = ctx.forward();
        fwd.input(tokenIds);
        const h = fwd.sample([0], Sampler.argmax());
        const out = await fwd.execute();
        const token = out.token(h);
        """,
        "return token === out.tokensAt(h)[0];",
        is_true,
        before="using ctx = context();",
    ),
    "probes": Snippet(
        "import { Logits, Distribution, Logprob, Logprobs, Entropy } from 'inferlet';",
        """
        const fwd = context().forward().input(tokenIds);
        const handles = [Logits(), Distribution(1, 3), Logprob(7), Logprobs([7, 8]), Entropy()].map((probe) => fwd.probe(2, probe));
        const out = await fwd.execute();
        const [logits, top, one, some, entropy] = handles;
        return [out.logits(logits).length, out.distribution(top)[0].length, out.logprobs(one)[0] === out.logprobs(some)[0], out.entropy(entropy) > 0];
        """,
        lambda value: value == [4 * 4096, 3, True, True],
    ),
    "schemas": Snippet(
        "import { jsonSchema, anyJson, regex, ebnf, grammar } from 'inferlet';",
        """
        const texts = [];
        for (const schema of [jsonSchema('{"enum": [1]}'), regex('ab'), ebnf('start: "x"'), grammar(Grammar.fromRegex('y'))]) {
          texts.push(await context().generate(Sampler.argmax(), { maxTokens: 9, constrain: schema }).collectText());
        }
        const first = (await context().generate(Sampler.argmax(), { maxTokens: 9 }).constrain(anyJson()).collectText())[0];
        return [...texts, '"[{-0123456789tfn'.includes(first)];
        """,
        lambda value: value == ["1", "ab", "x", "y", True],
        before="import { Grammar } from 'inferlet';",
    ),
    "custom schema": Snippet(
        """
        class MySchema {
          buildConstraint(model: Model): GrammarConstraint {
            return GrammarConstraint.json(model);
          }
        }
        """,
        """
        const text = await context().generate(Sampler.argmax(), { maxTokens: 9, constrain: new MySchema() }).collectText();
        return '"[{-0123456789tfn'.includes(text[0]);
        """,
        is_true,
        before="import { GrammarConstraint } from 'inferlet';",
    ),
    "custom constraint": Snippet(
        """
        import type { Constraint } from 'inferlet';
        class MyConstraint implements Constraint {
          step(accepted: Uint32Array): Uint32Array {
          }
        }
        """,
        """
        const free = await context().generate(Sampler.argmax(), { maxTokens: 4 }).collectTokens();
        const same = await context().generate(Sampler.argmax(), { maxTokens: 4, constrain: [new MyConstraint()] }).collectTokens();
        return free.join() === same.join();
        """,
        is_true,
    ),
    "grammars": Snippet(
        "import { Grammar, GrammarConstraint, Matcher } from 'inferlet';",
        """
        const tokenizer = model.tokenizer();
        const ids = tokenizer.encode('{"a":1}');
        const grammars = [Grammar.fromJsonSchema('{}'), Grammar.json(), Grammar.fromRegex('.*[}]'), Grammar.fromEbnf('start: /[^x]*/ "x"?')];
        const made = [GrammarConstraint.fromJsonSchema('{}', model), GrammarConstraint.json(model), GrammarConstraint.fromRegex('a', model)];
        made.push(GrammarConstraint.fromEbnf('start: "a"', model), ...grammars.map((g) => GrammarConstraint.fromGrammar(g, model)));
        const m = new Matcher(grammars[0], tokenizer);
        m.acceptTokens(ids);
        const ended = m.isTerminated();
        m.reset();
        return [ended, m.isTerminated(), m.nextTokenLogitMask().length > 1, made.length];
        """,
        lambda value: value == [True, False, True, 8],
    ),
    "speculator": Snippet(
        """
        import type { Speculator } from 'inferlet';
        class MySpec implements Speculator {
          draft(): [Uint32Array, Uint32Array] {
            return [new Uint32Array(), new Uint32Array()];
          }
          accept(tokens: Uint32Array): void {
            return;
          }
          rollback(n: number): void {
            return;
          }
          reset(): void {
            return;
          }
        }
        """,
        """
        const free = await context().generate(Sampler.argmax(), { maxTokens: 4 }).collectTokens();
        const same = await context().generate(Sampler.argmax(), { maxTokens: 4, speculator: new MySpec() }).collectTokens();
        return free.join() === same.join();
        """,
        is_true,
    ),
    "chat decoder": Snippet(
        """
        import { chat } from 'inferlet';
        const dec = new chat.Decoder(model);
        const ev = dec.feed(tokens);
        if (ev.type === 'delta') { }
        """,
        "dec.reset();\nreturn ev;",
        lambda value: value == {"type": "delta", "text": "Hello"},
        before="const tokens = model.tokenizer().encode('Hello');",
    ),
    "chat helpers": Snippet(
        "import { chat } from 'inferlet';",
        """
        const msg = 'Hi';
        const whole = new Context(model).system(msg).user(msg).assistant(msg).cue().buffer();
        const pieces = [chat.system(model, msg), chat.user(model, msg), chat.assistant(model, msg), chat.cue(model)];
        return pieces.flatMap((one) => [...one]).join() === whole.join() && chat.stopTokens(model).includes(chat.seal(model)[0]);
        """,
        is_true,
    ),
    "reasoning decoder": Snippet(
        "import { reasoning } from 'inferlet';",
        "return [...new reasoning.Decoder(model).events(model.tokenizer().encode('<think>hm</think>4'))];",
        lambda value: value == [{"type": "start"}, {"type": "delta", "text": "hm"}, {"type": "end", "text": "hm"}],
    ),
    "tools": Snippet(
        "import { tools } from 'inferlet';",
        """
        const schemas = ['{"name": "get_price", "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}}'];
        const call = '<tool_call>{"name": "get_price", "arguments": {"item": "violin"}}</tool_call>';
        const equipped = new Context(model).append(tools.equipPrefix(model, schemas)).user('How much?').cue().appendText(call);
        equipped.append(tools.answerPrefix(model, 'get_price', { price: 340 }));
        const [start, event] = new tools.Decoder(model).events(model.tokenizer().encode(call));
        return [start.type, event.name, event.args, event.arguments, model.tokenizer().decode(equipped.buffer()).includes('{"price":340}')];
        """,
        lambda value: value == ["start", "get_price", '{"item": "violin"}', '{"item": "violin"}', True],
    ),
    "snapshots": Snippet(
        """
        ctx.save(name);
        const copy = Context.open(model, name);
        const moved = Context.take(model, name);
        """,
        """
        const made = ctx.snapshot();
        const kept = Context.take(model, made);
        const absent = [Context.open(model, name), Context.take(model, name)].map((one) => one === undefined);
        let code;
        try {
          Context.delete(model, name);
        } catch (error) {
          code = error.code;
        }
        ctx.save(name);
        Context.delete(model, name);
        absent.push(Context.open(model, name) === undefined);
        return [[copy, moved, kept].map((one) => one.buffer().join() === ctx.buffer().join()), absent, code];
        """,
        lambda value: value == [[True] * 3, [True] * 3, "snapshot-missing"],
        before="using ctx = context();\nconst name = 'of the JavaScript reference';",
    ),
    "scheduling": Snippet(
        "import { scheduling } from 'inferlet';",
        """
        ctx.setBid(2.5);
        {
          using _ = ctx.idle();
          await ctx.flush();
        }
        const numbers = [scheduling.price(), scheduling.rent(ctx), scheduling.dividend(model)];
        return [numbers, scheduling.latency(ctx) >= 0, scheduling.balance(model) > 0];
        """,
        lambda value: value == [[1, 0, 0], True, True],
        before="using ctx = context();",
    ),
}

PYTHON_ADAPTERS = Snippet(
    "from inferlet import Adapter",
    """
    with Adapter.create(model, name) as a:
        fork = a.fork(new_name)
        a.save(path)
        fork.load(path)
        free = await ctx.fork().generate(Sampler.argmax(), max_tokens=4).collect_tokens()
        same = await ctx.fork().generate(Sampler.argmax(), max_tokens=4, adapter=a).collect_tokens()
    async def drawn(on, adapter):
        fwd = on.forward().input(token_ids)
        if adapter:
            fwd.adapter(adapter)
        h = fwd.sample([2], Sampler.argmax())
        return (await fwd.execute()).token(h)
    alike = [free == same, await drawn(ctx.fork(), None) == await drawn(ctx.fork(), fork)]
    is_there = [Adapter.open(model, one) is not None for one in (name, new_name, "nobody has it")]
    Adapter.delete(model, name)
    Adapter.delete(model, new_name)
    return [alike, is_there]
    """,
    lambda value: value == [[True, True], [True, True, False]],
    before="name, new_name, path = 'python', 'python-copy', 'python-reference'",
)

TYPESCRIPT_ADAPTERS = Snippet(
    """
    import { Adapter } from 'inferlet';
    using a = Adapter.create(model, 'draft');
    """,
    """
    const fork = a.fork(newName);
    a.save(path);
    fork.load(path);
    const free = await context().generate(Sampler.argmax(), { maxTokens: 4 }).collectTokens();
    const same = await context().generate(Sampler.argmax(), { maxTokens: 4, adapter: a }).collectTokens();
    const again = await context().generate(Sampler.argmax(), { maxTokens: 4 }).adapter(fork).collectTokens();
    const drawn = async (adapter) => {
      const fwd = context().forward().input(tokenIds);
      if (adapter) fwd.adapter(adapter);
      const h = fwd.sample([2], Sampler.argmax());
      return (await fwd.execute()).token(h);
    };
    const alike = [free.join() === same.join(), free.join() === again.join(), (await drawn(undefined)) === (await drawn(fork))];
    const isThere = ['draft', newName, 'nobody has it'].map((one) => Adapter.open(model, one) !== undefined);
    a.destroy();
    fork.destroy();
    return [alike, isThere, Adapter.open(model, 'draft') === undefined];
    """,
    lambda value: value == [[True, True, True], [True, True, False], True],
    before="const [newName, path] = ['typescript-copy', 'typescript-reference'];",
)

RUST: dict[str, Callable[[Any], bool]] = {
    "model": lambda value: value == "pie-tiny",
    "context": lambda value: value == 16,
    "generate": is_text,
    "typed": lambda value: value in ({"text": "a"}, {"text": "b"}),
    "by hand": lambda value: value == [256, "length", True],
    "forward": lambda value: isinstance(value, int),
    "samplers": is_true,
    "probes": lambda value: value == [4 * 4096, 3, True, True],
    "schema": lambda value: value == "1",
    "constrain": is_true,
    "grammar constraint": lambda value: value == "x",
    "matcher": lambda value: value == [True, True, False],
    "speculator": is_true,
    "printed traits": is_true,
    "chat decoder": lambda value: value == "Hello",
    "reasoning decoder": lambda value: value == ["start", "hm", "hm"],
    "tools": lambda value: value == ["get_price", '{"item": "violin"}', True],
    "snapshots": lambda value: value == [[True] * 3, True],
    "scheduling": lambda value: value == [[1, 0, 0], True, True, 2],
}
"""The snippets of `tests/guests/references`, by name."""


def value_of(engine: Engine, source: Any, given: Any = None) -> Any:
    """What a program returns."""
    outcome = run(engine, source, given)
    assert outcome.code is None, outcome.traceback or outcome.message
    return outcome.value


@pytest.mark.parametrize("name", PYTHON)
def test_a_snippet_of_the_python_reference(dummy: Engine, name: str) -> None:
    check_python(dummy, PYTHON[name])


def test_the_adapters_of_the_python_reference(tiny: Engine) -> None:
    check_python(tiny, PYTHON_ADAPTERS)


def check_python(engine: Engine, snippet: Snippet) -> None:
    value = value_of(engine, python_source(PYTHON_FRAME + snippet.indented(4)))
    assert snippet.shows(value), value


@pytest.mark.parametrize("name", OLDER)
def test_a_snippet_of_the_older_python_readme(dummy: Engine, name: str) -> None:
    snippet = OLDER[name]
    # By a seed by which its streams, which have no cap, leave room for one another: one may also fill the context.
    outcome = run(dummy, python_source(OLDER_FRAME + snippet.indented(0)), seed=4)
    assert outcome.code is None, outcome.traceback
    assert snippet.shows(outcome.text), outcome.text


@pytest.mark.parametrize("name", TYPESCRIPT)
def test_a_snippet_of_the_javascript_reference(dummy: Engine, name: str) -> None:
    check_typescript(dummy, TYPESCRIPT[name])


def test_the_adapters_of_the_javascript_reference(tiny: Engine) -> None:
    check_typescript(tiny, TYPESCRIPT_ADAPTERS)


def check_typescript(engine: Engine, snippet: Snippet) -> None:
    imports, body = hoisted(snippet.indented(2))
    value = value_of(engine, typescript_source(TYPESCRIPT_FRAME.replace("IMPORTS", imports).replace("BODY", body)))
    assert snippet.shows(value), value


def hoisted(text: str) -> tuple[str, str]:
    """The imports of a program and its other lines; what the frame imports already is left out."""
    imports: list[str] = []
    body: list[str] = []
    is_inside = False
    for line in text.splitlines():
        begins = line.strip().startswith("import ")
        (imports if begins or is_inside else body).append(line)
        is_inside = (begins or is_inside) and "from " not in line
    every = "\n".join(imports)
    for name in ("Context", "Model", "Sampler"):
        every = every.replace(f"{name},", "").replace(f"{{ {name} }}", "{ }")
    return every, "\n".join(body)


@pytest.mark.parametrize("name", RUST)
def test_a_snippet_of_the_rust_reference(dummy: Engine, name: str) -> None:
    value = value_of(dummy, load_program(ROOT / "build/programs/references.wasm"), name)
    assert RUST[name](value), value


def test_the_adapters_of_the_rust_reference(tiny: Engine) -> None:
    value = value_of(tiny, load_program(ROOT / "build/programs/references.wasm"), "adapters")
    assert value == [[True, True], [True, True, False]]
