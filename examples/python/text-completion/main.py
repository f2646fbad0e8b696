"""An answer as it comes: with `decode=True` a generation gives events, which a `match` tells apart."""

import inferlet
from inferlet import Context, Event, Model, Sampler, runtime, session

model = Model.load(runtime.models()[0])
ctx = Context(model)
ctx.system("You are a helpful assistant.")
ctx.user(inferlet.input["prompt"])

for event in ctx.generate(Sampler.top_p(), max_tokens=inferlet.input["max_tokens"], decode=True, reasoning=True, tool_use=True):
    match event:
        case Event.Text(text=t):
            session.send(t)
        case Event.Thinking():
            pass  # what the model thinks is not a part of its answer
        case Event.ToolCall(name=name, arguments=arguments):
            session.send(f"[it calls {name} with {arguments}]")
        case Event.Done():
            break
