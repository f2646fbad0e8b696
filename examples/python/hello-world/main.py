"""One message, one answer: a script, whose body is the program. `generate_text` blocks until the answer is whole."""

import inferlet
from inferlet import Context, Model, Sampler, runtime, session

model = Model.load(runtime.models()[0])
ctx = Context(model)

ctx.system("You are a helpful assistant.")
ctx.user(inferlet.input["prompt"])

text = ctx.generate_text(Sampler.top_p(), max_tokens=inferlet.input["max_tokens"])
session.send(text)
