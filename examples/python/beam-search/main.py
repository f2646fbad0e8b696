"""Several answers from one prompt: each beam is a fork of its context, which shares the pages of the prompt.

`examples/python/beam_search.py` is the search that keeps the likeliest beams at each step.
"""

import inferlet
from inferlet import Context, Model, Sampler, runtime, session

model = Model.load(runtime.models()[0])

with Context(model) as ctx:
    ctx.system("You are a helpful assistant.")
    ctx.user(inferlet.input["prompt"])
    # Computed once, for all beams.
    ctx.flush()

    for number in range(inferlet.input["beams"]):
        with ctx.fork(f"beam-{number}") as beam:
            text = beam.generate_text(Sampler.top_p(), max_tokens=inferlet.input["max_tokens"])
            session.send(f"{beam.name}: {text}\n")
