"""The globals of the Web in the JavaScript runtime itself: what the SDK's own tests, which run in Node, cannot show."""

from __future__ import annotations

import json

import pytest

from pie.engine import Engine
from pie.programs import Source
from support.launching import run, typescript_source


def body(statements: str) -> Source:
    """A program whose `main` has these statements."""
    return typescript_source(f"export async function main(): Promise<any> {{\n{statements}\n}}\n")


ANSWERS = {
    "addresses": (
        "const u = new URL('../b?x=1#y', 'https://user:pw@EXAMPLE.com:443/a/c'); u.searchParams.append('z', 'ü'); "
        "u.hostname = 'münchen.example'; u.port = 'no'; return [u.href, u.origin, `${new URL('http://[::1]:80/')}`];",
        [
            "https://user:pw@xn--mnchen-3ya.example/b?x=1&z=%C3%BC#y",
            "https://xn--mnchen-3ya.example",
            "http://[::1]/",
        ],
    ),
    "what is not an address": (
        "try { new URL('no'); } catch (e) { return [(e as any).name, (e as any).code, URL.canParse('no', 'http://a/')]; }",
        ["TypeError", "ERR_INVALID_URL", True],
    ),
    "parameters": (
        "const p = new URLSearchParams('a=1+2&b=%E2%82%AC&c'); p.set('a', '~*!'); return [[...p], p.toString()];",
        [[["a", "~*!"], ["b", "€"], ["c", ""]], "a=%7E*%21&b=%E2%82%AC&c="],
    ),
    "base64": (
        "const t = (f: () => unknown) => { try { return f(); } catch (e) { return [(e as any).name, e instanceof DOMException]; } };"
        "return ['', 'a', 'ab', 'abc', '\\xff\\0'].map(btoa).concat([atob(' YWI=\\n'), atob('YWI'), atob('YW')] as any, "
        "[t(() => atob('Y')), t(() => atob('YW=')), t(() => btoa('€'))] as any);",
        [
            *("", "YQ==", "YWI=", "YWJj", "/wA="),
            *("ab", "ab", "a"),
            *([["InvalidCharacterError", True]] * 3),
        ],
    ),
    "digests": (
        "const hex = (b: ArrayBuffer) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, '0')).join('');"
        "const abc = new TextEncoder().encode('xabcx').subarray(1, 4); const all: string[] = [];"
        "for (const a of ['SHA-1', { name: 'sha-256' }, 'SHA-384', 'SHA-512']) all.push(hex(await crypto.subtle.digest(a, abc)).slice(0, 16));"
        "return [...all, await crypto.subtle.digest('MD5', abc).catch((e) => e.name)];",
        ["a9993e364706816a", "ba7816bf8f01cfea", "cb00753f45a35e8b", "ddaf35a193617aba", "NotSupportedError"],
    ),
    "random values go into integers": (
        "try { crypto.getRandomValues(new Float32Array(1) as any); } catch (e) { return (e as any).name; }",
        "TypeMismatchError",
    ),
    "events": (
        "const t = new EventTarget(); const log: unknown[] = []; const c = new AbortController();"
        "t.addEventListener('x', (e) => { log.push((e as CustomEvent).detail); e.preventDefault(); }, { once: true });"
        "t.addEventListener('x', { handleEvent: (e) => log.push(e.target === t && e.eventPhase) });"
        "t.addEventListener('x', () => log.push('signalled'), { signal: c.signal });"
        "const one = t.dispatchEvent(new CustomEvent('x', { detail: 7, cancelable: true })); c.abort();"
        "return [one, t.dispatchEvent(new Event('x', { cancelable: true })), log];",
        [False, True, [7, 2, "signalled", 2]],
    ),
    "an event that is stopped": (
        "const t = new EventTarget(); const log: string[] = []; t.addEventListener('x', (e) => { log.push('a'); e.stopImmediatePropagation(); });"
        "t.addEventListener('x', () => log.push('b')); t.dispatchEvent(new Event('x')); return log;",
        ["a"],
    ),
    "classes belong together": (
        "const c = new AbortController(); const s = AbortSignal.any([c.signal, AbortSignal.timeout(60_000)]);"
        "s.onabort = (e) => { (s as any).heard = e instanceof Event; }; c.abort();"
        "return [s instanceof EventTarget, c.signal instanceof AbortSignal, s.aborted, s.reason instanceof DOMException, s.reason.name, "
        "s.reason.code, (s as any).heard, new Response(new URLSearchParams('a=1')).headers.get('content-type')];",
        [True, True, True, True, "AbortError", 20, True, "application/x-www-form-urlencoded;charset=UTF-8"],
    ),
    "a time that has passed": (
        "const s = AbortSignal.timeout(1); await new Promise((done) => s.addEventListener('abort', done)); return s.reason.name;",
        "TimeoutError",
    ),
    "a form of a body": (
        "const f = new FormData(); f.append('a', 'x'); f.append('b', new File([new Uint8Array([0, 255])], 'b.bin'));"
        "const r = await new Response(f).formData(); return [r.get('a'), (r.get('b') as File).name, await (r.get('b') as File).bytes()];",
        ["x", "b.bin", [0, 255]],
    ),
    "buffers are given away with a clone": (
        "const a = new Uint8Array([1, 2, 3]); const b = structuredClone({ part: a.subarray(1) }, { transfer: [a.buffer] });"
        "const name = (f: () => unknown) => { try { return f(); } catch (e) { return (e as any).name; } };"
        "return [b.part, a.length, name(() => structuredClone(() => 1)), name(() => structuredClone(1, { transfer: [{} as any] }))];",
        [[2, 3], 0, "DataCloneError", "DataCloneError"],
    ),
    "text goes into what there is room for": (
        "const e = new TextEncoder(); return [1, 3, 4, 9].map((n) => { const r = e.encodeInto('a😀é', new Uint8Array(n)); return [r.read, r.written]; })"
        ".concat([[e.encodeInto('é', new Uint8Array(1)).written]]);",
        [[1, 1], [1, 1], [1, 1], [4, 7], [0]],
    ),
    "text that is not UTF-8": (
        "const d = new TextDecoder('utf-8', { fatal: true }); const log = [d.decode(new Uint8Array([0xef, 0xbb, 0xbf, 65]))];"
        "try { d.decode(new Uint8Array([255])); } catch (e) { log.push((e as any).name); } return log;",
        ["A", "TypeError"],
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_global_does(dummy: Engine, name: str) -> None:
    statements, expected = ANSWERS[name]
    outcome = run(dummy, body(statements))
    assert (outcome.message, outcome.value) == (None, expected), outcome.traceback


def test_what_a_listener_throws_ends_the_program(dummy: Engine) -> None:
    statements = (
        "const t = new EventTarget(); t.addEventListener('x', () => { throw new RangeError('heard'); });"
        "let later = false; t.addEventListener('x', () => { later = true; }); t.dispatchEvent(new Event('x')); console.log(later); return 1;"
    )
    outcome = run(dummy, body(statements))
    assert (outcome.kind, outcome.message, outcome.text) == ("RangeError", "heard", "true\n")


def test_an_error_that_is_told_by_its_name(dummy: Engine) -> None:
    outcome = run(dummy, body("AbortSignal.abort().throwIfAborted();"))
    assert (outcome.kind, outcome.code) == ("AbortError", "program-error")


def test_the_methods_of_the_console(dummy: Engine) -> None:
    statements = (
        "console.log('%s is %d, %i, %f, %j %%', 'x', 1.5, '7px', '2.5', { a: 1 }, new URL('http://a/')); console.log('100%', 1);"
        "console.group('outer'); console.log('a\\nb'); console.groupEnd(); console.count(); console.count(); console.countReset(); console.count();"
        "console.table([{ a: 1, b: 'x' }, { a: 22 }]); console.dir({ a: [1] }); console.timeEnd('never'); console.assert(false, 'x');"
        "console.time('t'); console.timeEnd('t');"
    )
    outcome = run(dummy, body(statements))
    assert outcome.message is None, outcome.traceback
    *lines, timed = outcome.text.splitlines()
    assert lines == [
        *('x is 1.5, 7, 2.5, {"a":1} % http://a/', "100% 1", "outer", "  a", "  b"),
        *("default: 1", "default: 2", "default: 1"),
        *("(index) | a  | b", "--------|----|--", "0       | 1  | x", "1       | 22 |"),
        "{ a: [1] }",
    ]
    assert timed.startswith("t: ")
    assert timed.endswith(" ms")
    assert "".join(outcome.stderr) == "there is no timer 'never'; console.time begins one\nAssertion failed: x\n"


def test_the_places_of_a_bundle_are_those_of_its_sources(dummy: Engine) -> None:
    """`main.js` is what a bundler makes of `src/fail.ts`, with the map of its second line."""
    files = {
        "main.js": "// bundled\nfunction fail() { throw new Error('no'); }\nexport function main() {\n  fail();\n}\n",
        # Line 2 from its first column on is line 10 of the second source; line 4 is line 21 of the first one.
        "main.js.map": json.dumps({"version": 3, "sources": ["src/main.ts", "src/fail.ts"], "mappings": ";ACSA;;ADWE"}),
    }
    outcome = run(dummy, Source("javascript", tuple((path, text.encode()) for path, text in files.items()), "main.js"))
    assert outcome.message == "no"
    places = [line.strip().removeprefix("at ") for line in outcome.traceback.splitlines()[1:]]
    assert places == ["fail (src/fail.ts:10:1)", "main (src/main.ts:21:3)"]


def test_a_map_is_read_from_where_it_lies(dummy: Engine) -> None:
    text = json.dumps({"version": 3, "sourceRoot": "../..", "sources": ["./src/main.ts"], "mappings": ";AACA"})
    files = {"out/js/main.js": "export function main() {\n  throw new Error('no');\n}\n", "out/js/main.js.map": text}
    outcome = run(dummy, Source("javascript", tuple((path, content.encode()) for path, content in files.items()), "out/js/main.js"))
    assert "at main (src/main.ts:2:1)" in outcome.traceback


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", '{"sources": [1], "mappings": "AAAA;AAAA"}', '{"sources": ["a"], "mappings": "!!!!;zzzzzzzz"}']
)
def test_a_damaged_map_leaves_the_places_as_they_are(dummy: Engine, text: str) -> None:
    files = {"main.js": "export function main() {\n  throw new Error('no');\n}\n", "main.js.map": text}
    outcome = run(dummy, Source("javascript", tuple((path, content.encode()) for path, content in files.items()), "main.js"))
    assert outcome.message == "no"
    assert "main.js:2:" in outcome.traceback
