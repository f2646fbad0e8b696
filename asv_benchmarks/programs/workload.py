"""What the benchmarks have a Python program do: the input names it, as in `asv_benchmarks/guests/workload`."""

from contextlib import suppress

from inferlet import Context, Model, Sampler, SessionClosed, session


async def main(input):
    match input:
        case "nothing":
            return 0
        case "idle":
            session.send("idle")
            with suppress(SessionClosed):
                await session.receive()
            return 0
        case {"collect": {"prompt": prompt, "tokens": n}}:
            _context, generator = _generator(prompt, n)
            return len(await generator.collect_tokens())
        case {"step": {"prompt": prompt, "tokens": n}}:
            n_tokens = 0
            _context, generator = _generator(prompt, n)
            async for step in generator:
                n_tokens += len((await step.execute()).tokens)
            return n_tokens
    raise ValueError(f"unknown work: {input}")


def _generator(prompt, n):
    context = Context(Model.load("default"))
    context.append(prompt)
    return context, context.generate(Sampler.argmax(), max_tokens=n).ignore_eos(True)
