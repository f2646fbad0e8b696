"""Saves, opens and computes contexts as it is told by messages, and says how many milliseconds each took."""

import time

from inferlet import Context, Model, session

HELD = 0
# No other context has the tokens of the one that is held, also in an engine that only opens it.
SALTS = iter(range(HELD + 1, 1 << 30))


async def main(input):
    model = Model.load("default")
    if input["saves"]:
        held = filled(model, input["tokens"], HELD)
        await held.flush()
        held.save("held")
    while (asked := await session.receive()) != "end":
        if asked == "save":
            # Nothing of it is on the disk before.
            ctx = filled(model, input["tokens"], next(SALTS))
            await ctx.flush()
            start_s = time.perf_counter()
            ctx.save("new")
        elif asked == "open":
            start_s = time.perf_counter()
            ctx = Context.open(model, "held")
        elif asked == "go on":
            # Nothing of it is in the engine before.
            start_s = time.perf_counter()
            ctx = Context.open(model, "held").append([5])
            await ctx.flush()
        else:
            ctx = filled(model, input["tokens"], next(SALTS))
            start_s = time.perf_counter()
            await ctx.flush()
        spent_s = time.perf_counter() - start_s
        ctx.release()
        session.send(str(1e3 * spent_s))


def filled(model, n, salt):
    return Context(model).append([5 + (i * 7 + salt * 13) % 4000 for i in range(n)])
