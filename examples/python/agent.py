"""An agent: the model calls tools until it can answer in words. Input: {"prompt", "max_turns", "tool_choice"}."""

import json

from inferlet import Context, Model, Sampler, chat, session, tools

PRICES = {"guitar": 180, "hammer": 12, "jacket": 59, "violin": 340}


@tools.tool
def get_price(item: str):
    """Get the price of an item."""
    # The model is told what went wrong, and answers with it.
    return {"price": PRICES[item]} if item in PRICES else {"error": f"there is no {item}"}


@tools.tool
def get_time(city: str):
    """Get the time in a city."""
    return {"error": f"there is no clock in {city}"}


TOOLS = {tool.name: tool for tool in (get_price, get_time)}


def answer_of(call):
    """What a tool answers; what the model got wrong is answered too."""
    try:
        answer = TOOLS[call.name].call(call.args)
    except (KeyError, ValueError) as error:
        answer = {"error": str(error)}
    # JSON with a space after the colon, as the embedded model was trained on.
    return json.dumps(answer, ensure_ascii=False)


async def main(input):
    options = input or {}
    model = Model.load("default")
    ctx = Context(model)
    ctx.equip(TOOLS.values()).user(options.get("prompt", "How much does a violin cost?"))

    # The choice is for the first turn: behind an answer the model may speak.
    choice = options.get("tool_choice")
    for _ in range(options.get("max_turns", 4)):
        tokens = await ctx.generate(Sampler.argmax(), max_tokens=64, tool_choice=choice).collect_tokens()
        choice = None
        calls = [event for event in tools.Decoder(model).events(tokens) if isinstance(event, tools.Event.Call)]
        if not calls:
            return "".join(event.text for event in chat.Decoder(model).events(tokens) if isinstance(event, chat.Event.Delta))
        for call in calls:
            session.send({"calls": call.name, **json.loads(call.args)})
            ctx.answer(call.name, answer_of(call), id=call.id)
    raise RuntimeError("the model calls tools and does not answer; allow it more turns with max_turns")
