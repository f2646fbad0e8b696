"""An agent whose tools are those of MCP servers: of each that it finds. Input: {"prompt", "max_turns"}.

A server is configured as `[mcp.NAME]`, or registered by the client; `docs/guide/mcp.md` says how.
"""

import json

from inferlet import Context, InferletError, Model, Sampler, chat, mcp, session, tools


def answer_of(server, call):
    """What a tool answers; what the model got wrong is answered too."""
    if server is None:
        return json.dumps({"error": f"there is no tool {call.name}"})
    try:
        content = json.loads(server.call_tool(call.name, call.args))["content"]
    except InferletError as error:
        return json.dumps({"error": error.message}, ensure_ascii=False)
    return "".join(part["text"] for part in content if part["type"] == "text")


async def main(input):
    options = input or {}
    sessions = [mcp.connect(name) for name in mcp.available_servers()]
    offered = [(server, tool) for server in sessions for tool in json.loads(server.list_tools())["tools"]]
    servers = {tool["name"]: server for server, tool in offered}

    model = Model.load("default")
    ctx = Context(model)
    # The model is told of the tools as the servers describe them.
    ctx.equip([tool for _, tool in offered]).user(options.get("prompt", "How much does a violin cost?"))
    for _ in range(options.get("max_turns", 4)):
        tokens = await ctx.generate(Sampler.argmax(), max_tokens=64).collect_tokens()
        calls = [event for event in tools.Decoder(model).events(tokens) if isinstance(event, tools.Event.Call)]
        if not calls:
            return "".join(event.text for event in chat.Decoder(model).events(tokens) if isinstance(event, chat.Event.Delta))
        for call in calls:
            session.send({"calls": call.name, **json.loads(call.args)})
            ctx.answer(call.name, answer_of(servers.get(call.name), call), id=call.id)
    raise RuntimeError("the model calls tools and does not answer; allow it more turns with max_turns")
