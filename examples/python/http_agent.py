"""An agent whose tools ask a server by HTTP. Input: {"prompt", "shop", "max_turns"}.

pie run examples/python/http_agent.py --allow-net 127.0.0.1:9000 -- --shop http://127.0.0.1:9000

The shop answers `GET /prices/ITEM` and `GET /times/CITY` with JSON.
"""

import asyncio
import json
from urllib.parse import quote

from inferlet import Context, InferletError, Model, Sampler, chat, http, runtime, session, tools


def tools_of(shop):
    """The tools of a shop, by their names."""

    @tools.tool
    def get_price(item: str):
        """Get the price of an item."""
        return ask(f"{shop}/prices/{quote(item, safe='')}")

    @tools.tool
    def get_time(city: str):
        """Get the time in a city."""
        return ask(f"{shop}/times/{quote(city, safe='')}")

    return {tool.name: tool for tool in (get_price, get_time)}


async def ask(url):
    """What the shop answers; a status of 404 says what it has not, and its answer is for the model."""
    response = await http.get(url, timeout_s=10)
    return response.json()


async def answer_of(offered, call):
    """What a tool answers; what the model got wrong, and a server that fails, is answered too."""
    try:
        answer = await offered[call.name].call(call.args)
    except InferletError as error:
        answer = {"error": error.message}
    except (KeyError, ValueError) as error:
        answer = {"error": str(error)}
    # JSON with a space after the colon, as the embedded model was trained on.
    return json.dumps(answer, ensure_ascii=False)


async def main(input):
    offered = tools_of(input["shop"].rstrip("/"))
    model = Model.load(runtime.models()[0])
    ctx = Context(model)
    ctx.equip(offered.values()).user(input.get("prompt", "How much does a violin cost?"))
    for _ in range(input.get("max_turns", 4)):
        tokens = await ctx.generate(Sampler.argmax(), max_tokens=64).collect_tokens()
        calls = [event for event in tools.Decoder(model).events(tokens) if isinstance(event, tools.Event.Call)]
        if not calls:
            return "".join(event.text for event in chat.Decoder(model).events(tokens) if isinstance(event, chat.Event.Delta))
        # Calls of one turn are asked together.
        answers = await asyncio.gather(*(answer_of(offered, call) for call in calls))
        for call, answer in zip(calls, answers, strict=True):
            session.send({"calls": call.name, **json.loads(call.args)})
            ctx.answer(call.name, answer, id=call.id)
    raise RuntimeError("the model calls tools and does not answer; allow it more turns with max_turns")
