"""What the scripts of the three clients launch: it sends something of each kind, then does what it is told."""

import sys

from inferlet import session


async def main(input):
    session.send("ready")
    session.send({"input": input})
    print("printed")
    print("to stderr", file=sys.stderr)
    session.message("beside")
    while True:
        try:
            text = await session.receive()
        except session.SessionClosed:
            return {"closed": True}
        match text:
            case "file":
                session.send_file(bytes(reversed(await session.receive_file())))
            case "fail":
                raise KeyError("greeting")
            case "stop":
                return {"stopped": True, "large": 2**64 - 1}
            case _:
                session.send(f"<{text}>")
