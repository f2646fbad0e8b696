"""An agent: the model calls a function until it can answer in words. Input: {"prompt", "max_turns"}."""

import json

from inferlet import Context, Model, Sampler, runtime, session

# In the words that the embedded model was trained on; another model wants those of its own chat template.
FUNCTIONS = """# Tools

You can call these functions:
<tools>
{"name": "get_price", "description": "Get the price of an item.", "parameters": \
{"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}}
</tools>

To call one, write:
<tool_call>
{"name": <name>, "arguments": <object>}
</tool_call>"""

PRICES = {"guitar": 180, "hammer": 12, "jacket": 59, "violin": 340}


def get_price(item):
    # The model is told what went wrong, and answers with it.
    return {"price": PRICES[item]} if item in PRICES else {"error": f"there is no {item}"}


def find_call(text):
    """The item of the call that the model wrote; None where it answered in words."""
    _, found, rest = text.partition("<tool_call>")
    return json.loads(rest.partition("</tool_call>")[0])["arguments"]["item"] if found else None


async def main(input):
    options = input or {}
    ctx = Context(Model.load(runtime.models()[0]))
    ctx.system(FUNCTIONS)
    ctx.user(options.get("prompt", "How much does a violin cost?"))

    for _ in range(options.get("max_turns", 4)):
        text = await ctx.generate(Sampler.argmax(), max_tokens=64).collect_text()
        item = find_call(text)
        if item is None:
            return text
        session.send({"calls": "get_price", "item": item})
        ctx.user(f"<tool_response>\n{json.dumps(get_price(item), ensure_ascii=False)}\n</tool_response>")
    raise RuntimeError("the model calls functions and does not answer; allow it more turns with max_turns")
