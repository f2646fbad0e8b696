"""What the JavaScript runtime gives a program, and how programs fail in it."""

from __future__ import annotations

import pytest

from pie.engine import Engine
from pie.programs import Source
from support.launching import finish, run, typescript_source


def project(files: dict[str, str], entry: str = "main.ts") -> Source:
    """A program of several files."""
    return Source("javascript", tuple((path, text.encode()) for path, text in files.items()), entry)


def body(statements: str, imports: str = "") -> Source:
    """A program whose `main` has these statements."""
    return typescript_source(f"{imports}\nexport async function main(input: any): Promise<any> {{\n{statements}\n}}\n")


SDK = "import { Context, InferletError, Model, Sampler, runtime, session, SessionClosed } from 'inferlet';"
SLEEP = "const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));"

ANSWERS = {
    "input is parsed and the answer written": ("return { input };", {"input": {}}),
    "nothing is null": ("", None),
    "typed arrays are lists": ("return { a: new Uint32Array([1, 2]), b: new Float32Array([0.5]) };", {"a": [1, 2], "b": [0.5]}),
    "timers call back in the order of their times": (
        "const log: string[] = []; setTimeout(() => log.push('c'), 30); setTimeout((x) => log.push(x), 5, 'a'); "
        "setTimeout(() => log.push('b'), 5); await sleep(40); return log;",
        ["a", "b", "c"],
    ),
    "an interval calls back until it is cleared": (
        "let n = 0; await new Promise<void>((done) => { const id = setInterval(() => { if (++n === 3) { clearInterval(id); done(); } }, 1); });"
        " await sleep(5); return n;",
        3,
    ),
    "a cleared timer never calls back": (
        "let called = false; const id = setTimeout(() => { called = true; }, 1); clearTimeout(id); await sleep(5); return called;",
        False,
    ),
    "a timer stops another one of its time": (
        "let called = false; let id = 0; setTimeout(() => clearTimeout(id), 2); id = setTimeout(() => { called = true; }, 2); "
        "await sleep(8); return called;",
        False,
    ),
    "microtasks run before timers": (
        "const log: string[] = []; setTimeout(() => log.push('timer'), 0); queueMicrotask(() => log.push('micro')); "
        "await null; await sleep(2); return log;",
        ["micro", "timer"],
    ),
    "using releases": (
        "const log: string[] = []; { using a = { [Symbol.dispose]() { log.push('a'); } }; "
        "await using b = { async [Symbol.asyncDispose]() { log.push('b'); } }; log.push('in'); } return log;",
        ["in", "b", "a"],
    ),
    "using releases a context": (
        "let kept: Context; { using ctx = new Context(Model.load('default')); kept = ctx; } "
        "try { return kept.seqLen; } catch (error) { return (error as InferletError).code; }",
        "context-released",
    ),
    "a loop that is left leaves its context usable": (
        "const ctx = new Context(Model.load('default')).appendText('x'); "
        "for await (const step of ctx.generate(Sampler.argmax())) { await step.execute(); break; } "
        "return (await ctx.generate(Sampler.argmax(), { maxTokens: 2 }).collectTokens()).length;",
        2,
    ),
    "text is encoded and decoded": (
        "const d = new TextDecoder(); let s = ''; for (const b of new TextEncoder().encode('hé€😀')) "
        "s += d.decode(new Uint8Array([b]), { stream: true }); return s + d.decode() + new TextDecoder().decode(new Uint8Array([255, 65]));",
        "hé€😀\ufffdA",
    ),
    "data is cloned with its cycles": (
        "const a: any = { m: new Map([[1, { x: 1 }]]), d: new Date(5), u: new Uint8Array([7]) }; a.self = a; const b = structuredClone(a); "
        "return [b !== a, b.self === b, b.m.get(1).x, b.m.get(1) !== a.m.get(1), b.d.getTime(), b.u];",
        [True, True, 1, True, 5, [7]],
    ),
    "a controller aborts": (
        "const c = new AbortController(); const log: any[] = []; c.signal.addEventListener('abort', () => log.push(c.signal.reason)); "
        "c.abort('enough'); return [log, c.signal.aborted];",
        [["enough"], True],
    ),
    "recursion without end can be caught": (
        "const f = (): number => f() + 1; try { return f(); } catch (error) { return `${(error as Error).name}`; }",
        "RangeError",
    ),
    "a rejection may be handled late": ("const p = Promise.reject(new Error('late')); await sleep(1); p.catch(() => {}); return 1;", 1),
    "error codes can be told": (
        "try { Model.load('nobody'); } catch (error) { if (error instanceof InferletError) return [error.name, error.code]; }",
        ["InferletError", "unknown-model"],
    ),
}


@pytest.mark.rows("JS-002..004 JS-022 JS-075")
@pytest.mark.parametrize("name", ANSWERS)
def test_answers(dummy: Engine, name: str) -> None:
    statements, expected = ANSWERS[name]
    outcome = run(dummy, body(statements, f"{SDK} {SLEEP}"))
    assert (outcome.kind, outcome.value) == (None, expected), outcome.message


FAILURES = {
    "a class of its own": ("class Mine extends Error {} throw new Mine('boom');", "Mine", None, "boom"),
    "a text": ("throw 'boom';", "Error", None, 'the program threw "boom" (main.ts:'),
    "null": ("throw null;", "Error", None, ", which is not an Error; write `throw new Error(...)`, or reject with one"),
    "nothing": ("await Promise.reject();", "Error", None, "the program threw undefined (main.ts:"),
    "a text from elsewhere": ("const text = 'boom'; throw text;", "Error", None, 'the program threw "boom", which is not an Error'),
    "an object": ("throw { why: 'lost' };", "Error", None, 'the program threw {"why":"lost"}, which is not an Error'),
    "an object whose stack is no text": (
        "throw { stack: { toString: 0 } };",
        "Error",
        None,
        'the program threw {"stack":{"toString":0}}, which is not an Error',
    ),
    "an object that refuses to be read": (
        "throw { get stack() { throw new Error('no'); } };",
        "Error",
        None,
        "the program threw [object Object], which is not an Error",
    ),
    "no number": ("throw NaN;", "Error", None, "the program threw NaN (main.ts:"),
    "a large number": ("throw 5n;", "Error", None, "the program threw 5 (main.ts:"),
    "a function": ("throw main;", "Error", None, "the program threw the function main (main.ts:"),
    "a class of errors": ("class Mine extends Error {} throw Mine;", "Error", None, "the program threw the class Mine (main.ts:"),
    "a class of errors, to be made": ("class Mine extends Error {} throw Mine;", "Error", None, "; write `throw new Mine(...)`"),
    "a class of something else": ("class Mine {} throw Mine;", "Error", None, "write `throw new Error(...)`, or reject with one"),
    "null beside a call": (
        "const nothing = null; function nullable(): any {} function f() { throw nothing; } if (input.no) throw nullable(); f();",
        "Error",
        None,
        "the program threw null, which is not an Error",
    ),
    "a number beside a longer one": ("const one = 1; if (input.no) throw 12; throw one;", "Error", None, "the program threw 1, which is"),
    "null in two lines": ("if (input.no) throw null;\nthrow null;", "Error", None, "the program threw null, which is not an Error"),
    "null beside a comment": ("const nothing = null; // throw null\nthrow nothing;", "Error", None, "the program threw null, which is"),
    "an error of the engine": ("Model.load('nobody');", "InferletError", "unknown-model", "nobody"),
    "a timer that throws": ("setTimeout(() => { throw new RangeError('tick'); }, 1); await sleep(1000);", "RangeError", None, "tick"),
    "a rejection that nobody handled": ("Promise.reject(new TypeError('lost')); return 1;", "TypeError", None, "lost"),
    "a microtask that throws": ("queueMicrotask(() => { throw new TypeError('lost'); }); await sleep(1);", "TypeError", None, "lost"),
    "waiting for nothing": ("await new Promise(() => {});", "InferletError", "deadlock", "nothing can settle"),
    "an answer with NaN": ("return { score: NaN };", "InferletError", "invalid-output", "'score', is NaN"),
    "an answer with a function": ("return [() => 1];", "InferletError", "invalid-output", "function"),
    "an unknown option": (
        "new Context(Model.load('default')).generate(Sampler.argmax(), { maxToken: 1 } as any);",
        "TypeError",
        "invalid-argument",
        "maxToken",
    ),
    "recursion without end": ("const f = (): number => f() + 1; f();", "RangeError", "limit-stack", "call stack"),
    "no memory left": (
        "const a: any[] = []; for (;;) a.push(new Uint8Array(1 << 24));",
        "InternalError",
        "limit-memory",
        "limits.memory_bytes",
    ),
}


@pytest.mark.rows("JS-005")
@pytest.mark.parametrize("name", FAILURES)
def test_failures(dummy: Engine, name: str) -> None:
    statements, kind, code, words = FAILURES[name]
    outcome = run(dummy, body(statements, f"{SDK} {SLEEP}"))
    assert (outcome.kind, outcome.code) == (kind, code or "program-error"), outcome.message
    assert words in (outcome.message or "")


def test_the_traceback_names_the_lines_of_the_program(dummy: Engine) -> None:
    files = {
        "main.ts": "import { ask } from './lib/ask';\n\nexport async function main(): Promise<string> {\n  return await ask();\n}\n",
        "lib/ask.ts": f"{SDK}\nexport async function ask(): Promise<string> {{\n"
        "  const ctx: Context = new Context(Model.load('default')).user('hello');\n  return await ctx.generate(Sampler.topP(-1)).collectText();\n}\n",
    }
    outcome = run(dummy, project(files))
    assert outcome.code == "invalid-sampler"
    frames = [line.strip() for line in outcome.traceback.splitlines()[1:]]
    assert [frame.rsplit(":", 1)[0] for frame in frames] == ["at ask (lib/ask.ts:4", "at main (main.ts:4"]
    assert outcome.text == ""
    assert outcome.traceback.strip() in "".join(outcome.stderr)


def test_what_is_thrown_in_another_file_is_told_with_its_line(dummy: Engine) -> None:
    files = {
        "main.ts": "import { ask } from './lib/ask';\nexport const main = () => ask();\n",
        "lib/ask.ts": "\nexport function ask(): never {\n  throw 'boom';\n}\n",
    }
    assert 'the program threw "boom" (lib/ask.ts:3), which is' in (run(dummy, project(files)).message or "")
    twice = files | {"lib/tell.ts": "export function tell(): never {\n  throw 'boom';\n}\n"}
    assert 'the program threw "boom", which is' in (run(dummy, project(twice)).message or "")


@pytest.mark.parametrize("mask", ["[4096]", "'abc' as any"])
def test_the_mask_of_a_constraint_that_is_refused_is_traced_to_its_collector(dummy: Engine, mask: str) -> None:
    source = (
        f"{SDK}\nconst constrain = {{ step: () => {mask} }};\n"
        "export async function main(): Promise<string> {\n"
        "  const ctx: Context = new Context(Model.load('default')).user('hello');\n"
        "  return await ctx.generate(Sampler.argmax(), { maxTokens: 2, constrain }).collectText();\n}\n"
    )
    outcome = run(dummy, project({"main.ts": source}))
    assert outcome.code == "invalid-argument"
    frames = [line.strip() for line in outcome.traceback.splitlines()[1:]]
    assert [frame.rsplit(":", 1)[0] for frame in frames] == ["at main (main.ts:5"]


MODULES = {
    "files import each other, with and without endings": (
        {
            "main.ts": "import { a } from './lib/a.js'; import { b } from './lib'; import d from './d.json' with { type: 'json' };\n"
            "export const main = () => [a, b, d];\n",
            "lib/a.ts": "export const a = await Promise.resolve('a');\n",
            "lib/index.ts": "export { c as b } from '../c.mjs';\n",
            "c.mjs": "export const c = 'c';\n",
            "d.json": '{"__proto__": 1}',
        },
        ["a", "c", {"__proto__": 1}],
    ),
    "both names of the SDK are one module": (
        {
            "main.ts": "import { Model } from 'inferlet'; import * as sdk from '@pie-project/inferlet';\n"
            "export const main = () => sdk.Model === Model;\n"
        },
        True,
    ),
    "an import may wait until it is needed": (
        {"main.js": "export async function main() { return (await import('./late.js')).x; }", "late.js": "export const x = 3;"},
        3,
    ),
}


@pytest.mark.rows("JS-001 JS-006")
@pytest.mark.parametrize("name", MODULES)
def test_modules(dummy: Engine, name: str) -> None:
    files, expected = MODULES[name]
    outcome = run(dummy, project(files, next(iter(files))))
    assert (outcome.message, outcome.value) == (None, expected)


NOT_RUNNABLE = {
    "no main": ({"main.js": "export const x = 1;"}, ("main.js", "export", "main")),
    "main as the default": (
        {"main.js": "export default async function main() {}"},
        ("main.js", "leave `default` out", "export async function main"),
    ),
    "what answers requests": ({"main.js": "export default { fetch: () => null }"}, ("main.js", "`pie run main.js --port 8000`")),
    "main is no function": ({"main.js": "export const main = 1;"}, ("main.js", "main")),
    "an absent file": ({"main.js": "import './no.js'; export function main() {}"}, ("'./no.js'", "main.js")),
    "a file outside of the folder": ({"main.js": "import '../no.js'; export function main() {}"}, ("'../no.js'",)),
    "a package": ({"main.js": "import 'lodash'; export function main() {}"}, ("'lodash'", "'inferlet'")),
    "a module of the runtime": ({"main.js": "import 'pie:host'; export function main() {}"}, ("'pie:host'",)),
    "an export that is none": ({"main.js": "import { Foo } from 'inferlet'; export function main() {}"}, ("'Foo'", "'inferlet'")),
    "damaged JSON": ({"main.js": "import d from './d.json'; export function main() {}", "d.json": "{"}, ("d.json",)),
}


@pytest.mark.parametrize("name", NOT_RUNNABLE)
def test_what_cannot_run_is_an_invalid_program(dummy: Engine, name: str) -> None:
    files, words = NOT_RUNNABLE[name]
    outcome = run(dummy, project(files, "main.js"))
    assert outcome.code == "invalid-program"
    assert all(word in (outcome.message or "") for word in words), outcome.message


@pytest.mark.rows("SES-041", language="javascript")
def test_the_console_is_a_part_of_the_output(dummy: Engine) -> None:
    outcome = run(dummy, body("console.log('a', { b: [1, 'x'] }, new Map([[1, 2]])); session.send('c'); console.error('d');", SDK))
    assert outcome.text == 'a { b: [1, "x"] } Map { 1 => 2 }\nc'
    assert "".join(outcome.stderr) == "d\n"


def test_random_numbers_repeat_with_the_launch_seed(dummy: Engine) -> None:
    program = body("return [Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(8))];")
    first, again, other = (run(dummy, program, seed=seed).value for seed in (7, 7, 8))
    assert first == again != other
    assert 0 <= first[0] < 1


def test_a_file_is_the_part_of_the_buffer_that_its_array_shows(dummy: Engine) -> None:
    statements = "const bytes = Uint8Array.from([1, 2, 3, 4]); session.sendFile(bytes.subarray(1, 3)); session.sendFile(new Uint8Array(0));"
    assert run(dummy, body(statements, SDK)).sent == [b"\x02\x03", b""]


def test_a_file_whose_buffer_was_given_away_is_refused(dummy: Engine) -> None:
    statements = "const bytes = Uint8Array.of(1); bytes.buffer.transfer(); session.sendFile(bytes);"
    outcome = run(dummy, body(statements, SDK))
    assert outcome.code == "invalid-argument", outcome.message


def test_a_lost_wait_takes_no_message(dummy: Engine) -> None:
    """What loses a race is given up, what the program keeps is not."""
    statements = """
    const within = (promise: Promise<string>) => Promise.race([promise, sleep(5).then(() => 'late')]);
    const log = [await within(session.receive())];
    const kept = session.receive();
    log.push(await within(kept));
    session.send('ready');
    log.push(await kept);
    log.push(await session.receive());
    try { await session.receive(); } catch (error) { log.push(String(error instanceof SessionClosed)); }
    return log;
    """
    process = dummy.launch(body(statements, f"{SDK} {SLEEP}"), input={}, args=(), seed=None)
    event = process.next_event(60)
    assert event is not None
    assert event.text == "ready"
    for text in ("first", "second"):
        process.send(text)
    process.close_input()
    assert finish(process).value == ["late", "late", "first", "second", "true"]


def test_a_lost_step_is_undone(dummy: Engine) -> None:
    """A step that lost a race is yielded again, and the tokens are those of an undisturbed run."""
    statements = """
    const ctx = new Context(Model.load('default')).user('hello');
    const g = ctx.generate(Sampler.topP(1, 0.95), { maxTokens: 6, seed: 1 });
    const tokens: number[] = [];
    for (let turn = 0; ; turn++) {
      const { value: step } = await g.next();
      if (step === undefined) return tokens;
      const out = await (input.disturb && turn % 2 === 0 ? Promise.race([step.execute(), Promise.resolve()]) : step.execute());
      if (out) tokens.push(...out.tokens);
    }
    """
    calm, disturbed = (run(dummy, body(statements, SDK), {"disturb": disturb}) for disturb in (False, True))
    assert calm.message is None
    assert len(calm.value) > 0
    assert disturbed.value == calm.value


def test_a_collector_makes_five_calls(dummy: Engine) -> None:
    """generate, advance, pollable, poll and get, whatever the length."""
    start = "const g0 = new Context(Model.load('default')).appendText('Once');"
    counts = []
    for rest in ("", "await g0.generate(Sampler.argmax(), { maxTokens: 256, autoFlush: false }).ignoreEos().collectText();"):
        outcome = run(dummy, body(start + rest, SDK))
        assert outcome.message is None
        counts.append(outcome.n_calls)
    assert counts[1] - counts[0] <= 6, "five, and ignoreEos"
