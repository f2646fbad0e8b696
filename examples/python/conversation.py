"""A conversation with the model. Each message of the client is said to it; what begins with a slash is a command.

    /system TEXT   begins anew with a system message; without TEXT it tells the present one
    /reset         begins anew
    /save NAME     sends the conversation as a file, in JSON
    /stop          ends the answer that is being given, and keeps what was said of it
    /quit          ends the conversation, as a disconnect does

Input: {"system", "max_tokens", "temperature", "top_p", "events"}. It sends text as it comes. With `events` it sends
lines of JSON: {"event": "text" | "note", "text"}, {"event": "file", "name"} in front of a file, {"event": "done",
"finish", "tokens"} behind an answer, and {"event": "ready"} whenever it waits for the next message.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from inferlet import Context, InferletError, Model, Sampler, chat, session

_WAITING_MESSAGES = 64


class Client:
    """How the client is told: as text, or by events."""

    def __init__(self, with_events: bool) -> None:
        self._with_events = with_events

    def text(self, text: str) -> None:
        """A part of an answer."""
        self._send("text", text, text=text)

    def done(self, finish: str, n_tokens: int) -> None:
        """The end of an answer."""
        self._send("done", "\n", finish=finish, tokens=n_tokens)

    def note(self, text: str) -> None:
        """What is not of the model."""
        self._send("note", f"({text})\n", text=text)

    def file(self, name: str, data: bytes) -> None:
        """A file by its name."""
        self._send("file", "", name=name)
        session.send_file(data)

    def ready(self) -> None:
        """It waits for the next message."""
        self._send("ready", "")

    def _send(self, event: str, plain: str, **fields: object) -> None:
        if self._with_events:
            session.send(json.dumps({"event": event, **fields}) + "\n")
        elif plain:
            session.send(plain)


class Conversation:
    """What was said, as messages and as the context that goes on from it."""

    def __init__(self, model: Model, options: dict[str, Any]) -> None:
        self._model = model
        self._sampler = Sampler.top_p(options.get("temperature", 0.7), options.get("top_p", 0.95))
        self._max_tokens = options.get("max_tokens", 1024)
        self.system: str | None = options.get("system")
        self.messages: list[dict[str, str]] = []
        self._context = Context(model)
        self.begin()

    def begin(self) -> None:
        """Forgets what was said, but the system message."""
        self._context.release()
        self._context = Context(self._model)
        self.messages = []
        if self.system:
            self._context.system(self.system)
            self._add("system", self.system)

    async def ask(self, text: str, stop: asyncio.Event, client: Client) -> None:
        """Sends the answer of the model to a message, to its end or until `stop`; what fails was never said."""
        said: list[str] = []
        # The turn is another context, which takes the place of the present one when all of it went well.
        turn = self._context.fork()
        try:
            generator = turn.user(text).generate(self._sampler, max_tokens=self._max_tokens)
            decoder = chat.Decoder(self._model, hide_thoughts=True)
            async for step in generator:
                for event in decoder.events(await step.execute()):
                    if isinstance(event, chat.Event.Delta):
                        said.append(event.text)
                        client.text(event.text)
                if stop.is_set():
                    break
            turn.seal()
        except InferletError:
            turn.release()
            raise
        self._context.release()
        self._context = turn
        self._add("user", text)
        self._add("assistant", "".join(said))
        client.done(generator.finish_reason or "stopped", generator.tokens_generated)

    def _add(self, role: str, content: str) -> None:
        self.messages.append({"role": role, "content": content})


async def read(lines: asyncio.Queue[str | None], stop: asyncio.Event) -> None:
    """Takes messages as they come, so that `/stop` is heard while the model speaks; None at the end."""
    try:
        while True:
            line = await session.receive()
            if line.strip() == "/stop":
                stop.set()
            else:
                await lines.put(line)
    except session.SessionClosed:
        await lines.put(None)


def obey(command: str, rest: str, conversation: Conversation, client: Client) -> None:
    """Does what a command says."""
    match command:
        case "/reset":
            conversation.begin()
            client.note("a new conversation")
        case "/system" if rest:
            conversation.system = rest
            conversation.begin()
            client.note("a new conversation, with this system message")
        case "/system":
            client.note(f"the system message is: {conversation.system}" if conversation.system else "there is no system message")
        case "/save" if rest:
            client.file(rest, json.dumps(conversation.messages, ensure_ascii=False, indent=2).encode() + b"\n")
        case "/save":
            client.note("give a name: /save NAME")
        case _:
            client.note("the commands are /system TEXT, /reset, /save NAME and /quit; /stop ends an answer while it is given")


async def main(input: dict[str, Any] | None) -> dict[str, int]:
    """Talks until the client goes; answers how many messages were said."""
    options = input or {}
    client = Client(bool(options.get("events")))
    conversation = Conversation(Model.load("default"), options)
    lines: asyncio.Queue[str | None] = asyncio.Queue(maxsize=_WAITING_MESSAGES)
    stop = asyncio.Event()
    reading = asyncio.create_task(read(lines, stop))
    n_messages = 0
    client.ready()
    while (line := await lines.get()) is not None:
        command, _, rest = line.strip().partition(" ")
        if command == "/quit":
            break
        if command.startswith("/"):
            obey(command, rest.strip(), conversation, client)
        elif line.strip():
            stop.clear()
            n_messages += 1
            try:
                await conversation.ask(line, stop, client)
            except InferletError as error:
                client.note(f"{error.code}: {error.message}; the message was not said, and /reset begins anew")
        client.ready()
    reading.cancel()
    return {"messages": n_messages}
