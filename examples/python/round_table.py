"""Three agents at a table: what one says, all hear by a broadcast, and the next one answers.

pie run examples/python/round_table.py -- --subject "What do you like to eat?" --turns 6
"""

import asyncio
import json

from inferlet import Context, Model, Sampler, messaging, runtime, session

NAMES = ["Ann", "Bob", "Cyd"]


async def main(input):
    if "name" in input:
        return await agent(**input)
    topic = f"table-{runtime.launch_seed()}"
    n_turns = input.get("turns", 6)
    with messaging.subscribe(topic) as sub:
        # `.` is this program: each child is one of the three.
        agents = [runtime.spawn(".", {"name": name, "topic": topic, "n_turns": n_turns}) for name in NAMES]
        # An agent that fails ends the wait for what it would have said.
        said, *_ = await asyncio.gather(host(sub, topic, input.get("subject", "Name an animal."), n_turns), *agents)
    return said


async def host(sub, topic, subject, n_turns):
    """Opens the talk once all sit at the table, and hears it to its end."""
    for _ in NAMES:
        await messaging.pull(f"{topic}-seats")
    messaging.broadcast(topic, {"turn": 0, "from": "Host", "text": subject})
    said = []
    async for text in sub:
        message = json.loads(text)
        said.append(message)
        session.send(f"{message['from']}: {message['text']}\n")
        if message["turn"] >= n_turns:
            break
    return said


async def agent(name, topic, n_turns):
    """Hears what is said, and speaks when it is its turn."""
    with messaging.subscribe(topic) as sub, Context(Model.load("default")) as ctx:
        messaging.push(f"{topic}-seats", name)
        async for text in sub:
            message = json.loads(text)
            if message["turn"] >= n_turns:
                return
            if message["turn"] % len(NAMES) != NAMES.index(name):
                continue
            ctx.user(message["text"])
            answer = await ctx.generate(Sampler.argmax(), max_tokens=24).collect_text()
            messaging.broadcast(topic, {"turn": message["turn"] + 1, "from": name, "text": answer})
