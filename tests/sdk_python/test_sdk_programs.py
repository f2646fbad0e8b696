"""Programs in the runtime component on the dummy driver: the older blocking API, scripts, and what the SDK promises to
both.
"""

from __future__ import annotations

import json
import re

import pytest

from pie.engine import Engine
from pie.programs import Source
from support.launching import Outcome, finish


@pytest.fixture
def engine(dummy: Engine) -> Engine:
    return dummy


def run(engine: Engine, text: str, *, messages: tuple[str, ...] = (), seed: int = 7) -> Outcome:
    return run_files(engine, (("main.py", text.encode()),), messages=messages, seed=seed)


def run_files(engine: Engine, files: tuple[tuple[str, bytes], ...], *, messages: tuple[str, ...] = (), seed: int = 7) -> Outcome:
    process = engine.launch(Source("python", files, "main.py"), seed=seed)
    for message in messages:
        process.send(message)
    process.close_input()
    return finish(process)


PRELUDE = """
import asyncio
from inferlet import *
model = Model.load(runtime.models()[0])
def context(text="Hello, world!"):
    return Context(model).system("You are a helpful assistant.").user(text)
"""

# Each prints two JSON values that must be equal.
SAME = {
    "generate_text is collect_text": """
from_old = context().generate_text(Sampler.top_p(), max_tokens=12, seed=3)
async def new(): return await context().generate(Sampler.top_p(), max_tokens=12, seed=3).collect_text()
session.send([from_old, asyncio.run(new())])
""",
    "a plain loop is an async loop": """
old = [t for tokens in context().generate(Sampler.top_k(), max_tokens=9, seed=4) for t in tokens]
async def new():
    g = context().generate(Sampler.top_k(), max_tokens=9, seed=4)
    return [t async for step in g for t in (await step.execute()).tokens]
session.send([old, asyncio.run(new())])
""",
    "text and tokens of one stream": """
stream = context().generate(Sampler.min_p(), max_tokens=10, seed=5)
text, tokens = stream.text(), stream.tokens()
again = context().generate(Sampler.min_p(), max_tokens=10, seed=5)
session.send([[text, tokens], [again.text(), context().generate(Sampler.min_p(), max_tokens=10, seed=5).tokens()]])
""",
    "text and tokens of a stream that stopped": """
options = dict(max_tokens=12, seed=6)
stop = context().generate(Sampler.top_p(), **options).tokens()[7:8]
def generate(): return context().generate(Sampler.top_p(), stop=stop, **options)
async def new(): return [await generate().collect_tokens(), await generate().collect_text()]
tokens_first, text_first = generate(), generate()
old = [tokens_first.tokens(), tokens_first.text()]
twice = [text_first.text(), text_first.tokens(), text_first.text(), text_first.tokens()]
shown_text = context().generate_text(Sampler.top_p(), stop=stop, **options)
tokens, text = asyncio.run(new())
session.send([[old, twice, shown_text], [[tokens[:-1] + stop, text], [text, tokens] * 2, text]])
""",
    "text of a stream that stopped in a loop": """
options = dict(max_tokens=12, seed=6)
stop = context().generate(Sampler.top_p(), **options).tokens()[7:8]
def generate(n_steps):
    g = context().generate(Sampler.top_p(), stop=stop, **options)
    for _ in range(n_steps): next(g, None)
    return g
async def new(): return [await generate(n).collect_text() for n in (0, 3, 7, 12)]
session.send([[generate(n).text() for n in (0, 3, 7, 12)], asyncio.run(new())])
""",
    "text outlives its context": """
options = dict(max_tokens=8, seed=6)
stop = context().generate(Sampler.top_p(), **options).tokens()[5:6]
ctx = context()
g = ctx.generate(Sampler.top_p(), stop=stop, **options)
tokens = g.tokens()
ctx.generate(Sampler.top_p(), max_tokens=1).tokens()
ctx.release()
session.send([[g.text(), g.tokens()], [context().generate_text(Sampler.top_p(), stop=stop, **options), tokens]])
""",
    "events of a stream": """
options = dict(max_tokens=12, seed=6)
stop = context().generate(Sampler.top_p(), **options).tokens()[7:8]
def generate(decode, **more): return context().generate(Sampler.top_p(), decode=decode, **options, **more)
def shown(events): return ["".join(e.text for e in events if isinstance(e, Event.Text)), events[-1].text, isinstance(events[-1], Event.Done)]
async def new(**more): return [event async for event in generate(True, **more)]
seen = [list(generate(True)), asyncio.run(new()), list(generate(True, stop=stop)), asyncio.run(new(stop=stop))]
texts = [generate(False).text(), generate(False, stop=stop).text()]
session.send([[shown(events) for events in seen] + [seen[0] == seen[1], len(seen[0]) > 5], [[t, t, True] for t in texts for _ in range(2)] + [True, True]])
""",
    "the pieces of a text, blocking and not": """
def generate(**stops): return context().generate(Sampler.top_p(), max_tokens=12, seed=6, **stops)
stream = generate().texts()
first = next(stream)
async def rest(): return [text async for text in stream]
text = first + "".join(asyncio.run(rest()))
stop = text[1:3]
cut = [generate(stop=stop).text(), generate(stop=[stop]).texts(), generate().add_stop(stop), generate(stop=stop, decode=True)]
cut[1:] = ["".join(cut[1]), asyncio.run(cut[2].collect_text()), [e.text for e in cut[3]][-1]]
session.send([[text, stream.text_so_far, *cut], [generate().text()] * 2 + [text[:text.index(stop)]] * 4])
""",
    "stop texts beside a constraint of one's own": """
class Say:
    def __init__(self, text): self.tokens = iter(model.tokenizer().encode(text))
    def step(self, accepted): return [next(self.tokens), 1]
def generate(): return context().generate(Sampler.argmax(), constrain=Say("one two END three"), stop=["o E", "x"], max_tokens=30)
g = generate()
async def streamed(): return [text async for text in generate().texts()]
session.send([[asyncio.run(g.collect_text()), str(g.finish_reason), "".join(asyncio.run(streamed())), generate().text()],
              ["one tw", "stop", "one tw", "one tw"]])
""",
    "the text before a time-out": """
async def main_():
    ctx = context()
    texts = ctx.generate(Sampler.top_p(), max_tokens=12, seed=6).texts()
    before = [await anext(texts), await anext(texts)]
    waiting = asyncio.ensure_future(anext(texts))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    so_far = texts.text_so_far
    after = [text async for text in texts]
    return [[so_far, texts.text_so_far], ["".join(before), "".join(before + after)]]
one, other = asyncio.run(main_())
whole = context().generate_text(Sampler.top_p(), max_tokens=12, seed=6)
session.send([one + [one[1]], other + [whole]])
""",
    "one line for a question": """
async def asked():
    ctx = Context(model).system("Be brief.")
    return [await ctx.ask("Hi", max_tokens=5), await ctx.ask("And?", Sampler.top_p(), max_tokens=5, seed=1)]
ctx = Context(model).system("Be brief.").user("Hi")
answers = [ctx.generate_text(Sampler.argmax(), max_tokens=5)]
answers.append(ctx.user("And?").generate_text(Sampler.top_p(), max_tokens=5, seed=1))
session.send([asyncio.run(asked()), answers])
""",
    "events of a stream that is left and entered again": """
def generate(): return context().generate(Sampler.multinomial(), max_tokens=9, seed=2, decode=True)
async def rest(stream): return [event async for event in stream]
stream = generate()
first = [next(stream), next(iter(stream))]
for event in stream:
    first.append(event)
    break
parted = first + asyncio.run(rest(stream))
session.send([[repr(e) for e in parted], [repr(e) for e in generate()]])
""",
    "events of a stream without tokens": """
session.send([[repr(e) for e in context().generate(Sampler.argmax(), max_tokens=0, decode=True)], ["Event.Done(text='')"]])
""",
    "the unified decoder": """
decoder = Decoder(model)
tokens = chat.assistant(model, "Hi there!")
events = decoder.feed(model.tokenizer().encode("Hi there!") + chat.stop_tokens(model))
decoder.reset()
session.send([[repr(e) for e in events + decoder.feed(model.tokenizer().encode("Again"))],
              ["Event.Text(text='Hi there!')", "Event.Done(text='Hi there!')", "Event.Text(text='Again')"]])
""",
    "the unified decoder of what a step accepted": """
def seen(tokens, reason, **kinds):
    decoder = Decoder(model, **kinds)
    half = len(tokens) // 2
    events = decoder.feed_output(Output(tokens[:half])) + decoder.feed_output(Output(tokens[half:], reason))
    texts = ["".join(e.text for e in events if isinstance(e, kind)) for kind in (Event.Text, Event.Thinking)]
    return texts + [type(events[-1]).__name__]
said = model.tokenizer().encode("<think>hm</think>Hi there!")
stop = chat.stop_tokens(model)[:1]
shown = model.tokenizer().encode(" x")[:1]
session.send([[seen(said + stop, FinishReason.STOP, reasoning=True), seen(said + shown, FinishReason.STOP, reasoning=True),
               seen(said + shown, FinishReason.LENGTH, reasoning=True), seen(said[:-1], None, reasoning=True, tool_use=True)[1],
               seen(shown, FinishReason.STOP)],
              [["Hi there!", "hm", "Done"], ["Hi there!", "hm", "Done"], ["Hi there!" + model.tokenizer().decode(shown), "hm", "Done"], "hm", ["", "", "Done"]]])
""",
    "both spellings of a sampler": """
session.send([context().generate_text(Sampler.top_k_top_p(0.7, 20, 0.9), max_tokens=8, seed=1),
              context().generate_text(Sampler.top_k_top_p(temperature=0.7, top_k=20, top_p=0.9), max_tokens=8, seed=1)])
""",
    "greedy is argmax": """
session.send([context().generate_text(Sampler.greedy(), max_tokens=8), context().generate_text(Sampler.argmax(), max_tokens=8)])
""",
    "the aliases of filling": """
a, b = Context(model), Context(model, name="mine")
a.fill("some text").fill_tokens([1, 2, 3])
b.append_text("some text").append([1, 2, 3])
session.send([[a.buffer(), True, "mine"], [b.buffer(), a.name != b.fork().name, b.name]])
""",
    "the label is the name of a snapshot that has none": """
a = Context(model, name="mine").append([1, 2])
a.save()
b = Context.take(model, "mine")
session.send([[a.buffer(), a.name, None], [b.buffer(), b.name, Context.open(model, "mine")]])
""",
    "flush blocks outside of a loop": """
a = context(); a.flush()
async def inside():
    b = context(); await b.flush(); return b.seq_len, b.buffer()
session.send([[a.seq_len, a.buffer()], list(asyncio.run(inside()))])
""",
    "a fork has the name that it is given": """
session.send([[context().fork("beam-0").name, context().fork(name="beam-1").name], ["beam-0", "beam-1"]])
""",
    "a plain loop without a cue is an async one": """
def generate(): return context().generate(Sampler.argmax(), max_tokens=9, auto_flush=False)
async def new(): return await generate().collect_tokens()
session.send([[t for tokens in generate() for t in tokens], asyncio.run(new())])
""",
    "helpers of chat give what filling adds": """
a, b = context(), context()
a.assistant("Hi there!").user("And?").cue()
b.append(chat.assistant(model, "Hi there!") + chat.user(model, "And?") + chat.cue(model))
session.send([a.buffer(), b.buffer()])
""",
}


def test_a_text_that_ends_inside_a_character(engine: Engine) -> None:
    program = (
        PRELUDE
        + """
async def main(input):
    def generate(n): return context().generate(Sampler.multinomial(), max_tokens=n, seed=6)
    return [[generate(n).text() for n in range(1, 9)], [await generate(n).collect_text() for n in range(1, 9)]]
"""
    )
    outcome = run(engine, program)
    assert outcome.code is None, outcome.traceback
    old, new = outcome.value
    assert old == new
    assert any(text.endswith("\N{REPLACEMENT CHARACTER}") for text in new)


@pytest.mark.rows("PY-034 OLD-007 OLD-031..032 OLD-038..039 OLD-041 OLD-044..046 OLD-049..053 OLD-055 OLD-069")
@pytest.mark.parametrize("name", SAME)
def test_two_ways_give_the_same(engine: Engine, name: str) -> None:
    outcome = run(engine, PRELUDE + SAME[name])
    assert outcome.code is None, outcome.traceback
    one, other = json.loads(outcome.text)
    assert one == other
    assert one


@pytest.mark.rows("OLD-078")
def test_receive_blocks_in_a_script_and_a_disconnect_is_an_exception(engine: Engine) -> None:
    script = (
        "from inferlet import session, SessionClosed\nprint(session.receive(), session.receive(), sep='|')\n"
        "try:\n    session.receive()\nexcept SessionClosed as error:\n    print(error.code, isinstance(error, ConnectionError))\n"
    )
    assert run(engine, script, messages=("one", "two")).stdout == ["one|two\n", "session-closed True\n"]


@pytest.mark.rows("OLD-022 OLD-065..068 OLD-070..073")
def test_the_tool_flow_of_the_older_reference(engine: Engine) -> None:
    program = (
        PRELUDE
        + """
import json
SCHEMA = {"name": "get_weather", "description": "The weather.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}

class Say:
    def __init__(self, text):
        self.tokens = iter(model.tokenizer().encode(text))

    def step(self, accepted):
        return [next(self.tokens), 1]

ctx = context()
ctx.equip_tools([json.dumps(SCHEMA)])
ctx.user("Rain?")
CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Ulm"}}</tool_call>'
SAID = "<think>hm</think>I look." + CALL + "<|im_end|>"
seen = []
for event in ctx.generate(Sampler.top_p(), decode=True, reasoning=True, tool_use=True, constrain=Say(SAID)):
    match event:
        case Event.Text(text=t):
            seen.append(["text", t])
        case Event.Thinking(text=t):
            seen.append(["thinking", t])
        case Event.ThinkingDone(text=t):
            seen.append(["thought", t])
        case Event.ToolCallStart():
            seen.append(["start"])
        case Event.ToolCall(name=name, arguments=arguments):
            seen.append([name, arguments])
            ctx.answer_tool(name, '{"temp": 72}')
        case Event.Done(text=t):
            seen.append(["done", t])
session.send({"events": seen})
session.send(ctx.generate_text(Sampler.top_p(), constrain=Say("72.<|im_end|>")))
decoder = Decoder(model)
session.send([type(event).__name__ for event in decoder.feed(model.tokenizer().encode("<think>a</think>b"))])
"""
    )
    outcome = run(engine, program)
    assert outcome.code is None, outcome.traceback
    events, text, kinds = outcome.sent
    found = json.loads(events)["events"]
    assert "".join(each[1] for each in found if each[0] == "thinking") == "hm"
    assert [each for each in found if each[0] in ("thought", "start", "get_weather", "done")] == [
        ["thought", "hm"],
        ["start"],
        ["get_weather", '{"city": "Ulm"}'],
        ["done", "I look."],
    ]
    assert (text, json.loads(kinds)) == ("72.", ["Text"])


def test_kinds_of_events_are_for_events(engine: Engine) -> None:
    outcome = run(engine, PRELUDE + "context().generate(Sampler.argmax(), reasoning=True)")
    assert outcome.message is not None
    assert "it must be True where reasoning or tool_use is" in outcome.message


@pytest.mark.rows("OLD-045..048 OLD-063..064")
def test_the_streaming_loop_of_the_older_reference(engine: Engine) -> None:
    program = (
        PRELUDE
        + """
from inferlet.context import Context, Decoder, Event, EventStream, TokenStream
ctx = context()
for event in ctx.generate(Sampler.top_p(), decode=True, max_tokens=20, seed=3):
    match event:
        case Event.Text(text=t):
            session.send(t)
        case Event.Done():
            break
session.send("|" + context().generate_text(Sampler.top_p(), max_tokens=20, seed=3))
"""
    )
    outcome = run(engine, program)
    assert outcome.code is None, outcome.traceback
    streamed, _, whole = outcome.text.partition("|")
    assert streamed == whole
    assert len(outcome.stdout) > 5


def test_the_reference_streaming_loop(engine: Engine) -> None:
    program = (
        PRELUDE
        + """
async def main(input):
    ctx = context()
    g = ctx.generate(Sampler.top_p(0.6, 0.95), max_tokens=24, seed=2)
    dec = chat.Decoder(model)
    async for step in g:
        out = await step.execute()
        match dec.feed(out.tokens):
            case chat.Event.Delta(text=t):
                session.send(t)
            case _:
                pass
    return [g.tokens_generated, g.is_done, g.finish_reason, await context().generate(Sampler.top_p(0.6, 0.95), max_tokens=24, seed=2).collect_text()]
"""
    )
    outcome = run(engine, program)
    assert outcome.code is None, outcome.traceback
    n_tokens, is_done, reason, text = outcome.value
    assert (n_tokens, is_done, reason) == (24, True, "length")
    assert text.startswith(outcome.text)


def test_a_collector_is_four_calls_after_generate(engine: Engine) -> None:
    program = PRELUDE + "async def main(input):\n    g = context().generate(Sampler.top_p(), max_tokens=256)\n    {}\n"
    without = run(engine, program.format("return None"))
    collected = run(engine, program.format("return await g.collect_text()"))
    assert collected.code is None, collected.traceback
    assert collected.n_calls - without.n_calls == 4


def test_cancelling_a_wait_leaves_the_context_usable(engine: Engine) -> None:
    program = (
        PRELUDE
        + """
async def main(input):
    ctx, twin = context(), context()
    g = ctx.generate(Sampler.argmax(), max_tokens=10_000).ignore_eos()
    with_timeout = asyncio.wait_for(g.collect_tokens(), 0.02)
    try:
        await with_timeout
    except TimeoutError:
        pass
    options = {"max_tokens": 8}
    return [await c.generate(Sampler.argmax(), **options).collect_tokens() for c in (ctx, twin)]
"""
    )
    outcome = run(engine, program)
    assert outcome.code is None, outcome.traceback
    assert outcome.value[0] == outcome.value[1]


@pytest.mark.rows("PY-027 PY-035 OLD-043")
def test_a_context_knows_its_model_and_is_released_at_the_end_of_its_block(engine: Engine) -> None:
    script = """
with Context(model) as ctx:
    session.send([ctx.model is model, ctx.append([1]).buffer()])
try:
    ctx.buffer()
except InferletError as error:
    session.send(error.code)
"""
    assert run(engine, PRELUDE + script).stdout == ["[true,[1]]", "context-released"]


@pytest.mark.rows("PY-045")
def test_options_are_given_by_their_names(engine: Engine) -> None:
    outcome = run(engine, PRELUDE + "context().generate(Sampler.argmax(), 5)")
    assert (outcome.kind, outcome.code) == ("ArgumentTypeError", "invalid-argument")
    assert "an option without a name is 5" in (outcome.message or "")


@pytest.mark.rows("PY-070..071")
def test_a_loop_goes_on_from_what_its_steps_accepted_and_never_from_one_that_did_not_run(engine: Engine) -> None:
    loop = "async def main(input):\n    g, n = context().generate(Sampler.argmax(), max_tokens=3), []\n    async for step in g:\n        {}\n    return n\n"
    assert run(engine, PRELUDE + loop.format("await step.execute(); n.append(g.tokens_generated)")).value == [1, 2, 3]
    assert run(engine, PRELUDE + loop.format("pass")).code == "step-pending"


# Each keeps nothing of what it made but the value on its right side.
ALONE = {
    "flush": "pending = context().flush(); gc.collect(); await pending; return 'done'",
    "a task of flush": "pending = asyncio.create_task(context().flush()); gc.collect(); await pending; return 'done'",
    "step": "step = await anext(generate()); gc.collect(); return (await step.execute()).tokens",
    "a step that is executed": "pending = (await anext(generate())).execute(); gc.collect(); return (await pending).tokens",
    "collector": "pending = generate().collect_text(); gc.collect(); return await pending",
    "next step": "pending = anext(generate()); gc.collect(); return (await (await pending).execute()).tokens",
}


@pytest.mark.parametrize("name", ALONE)
def test_what_is_awaited_is_kept(engine: Engine, name: str) -> None:
    program = PRELUDE + "import gc\ndef generate(): return context().fork().generate(Sampler.argmax(), max_tokens=4)\n"
    outcome = run(engine, program + f"async def main(input): {ALONE[name]}")
    assert outcome.code is None, outcome.traceback
    assert outcome.value


def test_random_is_a_stream_from_the_launch_seed(engine: Engine) -> None:
    program = "import random, secrets, uuid\ndef main(): return [random.random(), secrets.token_hex(8), str(uuid.uuid4())]"
    first, again, other = (run(engine, program, seed=seed).value for seed in (7, 7, 8))
    assert first == again
    assert not set(first) & set(other)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b'def main(): return "\xe9"\n', r"codec can't decode byte 0xe9 .*\(main.py, line 1\)"),
        (b'def main(): return "\0"\n', r"null bytes \(main.py\)"),
        (b"# coding: nonsense\n", r"unknown encoding: nonsense \(main.py"),
        ("def main(): return 1\n".encode("utf-16"), r"\(main.py"),
    ],
    ids=["latin-1", "null byte", "unknown encoding", "utf-16"],
)
def test_a_file_that_is_no_python_is_named(engine: Engine, source: bytes, message: str) -> None:
    outcome = run_files(engine, (("main.py", source),))
    assert (outcome.code, outcome.kind) == ("invalid-program", "SyntaxError")
    assert re.search(message, outcome.message or "")


def test_a_file_in_another_encoding_fails_no_other(engine: Engine) -> None:
    outcome = run_files(engine, (("main.py", b"def main(): return 1 / 0\n"), ("other.py", b"x = '\xe9'\n")))
    assert (outcome.code, outcome.kind) == ("program-error", "ZeroDivisionError")


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        (r"def main(): raise ValueError('a\ud800b')", "ValueError", "a?b"),
        (r"def main(): raise SystemExit('a\ud800b')", "SystemExit", "a?b"),
        (
            "class X:\n    def __str__(self): return 5\ndef main(): raise SystemExit(X())",
            "SystemExit",
            "its message could not be formatted: TypeError",
        ),
        ("def main(): raise SyntaxError('x', ([], 1, 1, ''))", "SyntaxError", "x ([], line 1)"),
        (
            "class Kind(type):\n    __name__ = property(lambda kind: 1 / 0)\nclass E(Exception, metaclass=Kind): pass\ndef main(): raise E('x')",
            "Exception",
            "x",
        ),
        (
            "from inferlet import InferletError\nclass E(InferletError):\n    code = 5\n    def __init__(self): pass\ndef main(): raise E",
            "E",
            "its message could not be formatted: AttributeError",
        ),
        ("import sys\ndef main(): sys.meta_path.clear(); raise ValueError('x')", "ValueError", "x"),
    ],
)
def test_a_failure_that_is_hard_to_tell_is_still_the_programs(engine: Engine, source: str, kind: str, message: str) -> None:
    outcome = run(engine, source)
    assert (outcome.code, outcome.kind, outcome.message) == ("program-error", kind, message)
