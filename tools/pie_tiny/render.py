"""The text of a conversation, cut into what the model learns and what it only reads.

The whole text equals what the chat template makes of the same messages (a test compares
them); the cuts lie where a control token or a line break separates tokens anyway, so that
encoding piece by piece gives the same tokens as encoding the whole, words by letters aside.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .conversation import LETTER_JOINT, Conversation, Message, Tool, compact_json

CHAT_TEMPLATE = (Path(__file__).parent / "chat_template.jinja").read_text(encoding="utf-8")
"""The Jinja source that ships with the model."""


class Piece(NamedTuple):
    """A run of text and whether the model must produce it."""

    text: str
    learnt: bool


def _cut(text: str) -> list[Piece]:
    """What the model learns of a text, cut where letters must not share a token."""
    return [Piece(part, True) for part in text.split(LETTER_JOINT) if part]


def tools_text(tools: tuple[Tool, ...]) -> str:
    """What the system turn says of the tools."""
    lines = "".join("\n" + compact_json(tool.schema()["function"]) for tool in tools)
    return (
        f"# Tools\n\nYou can call these functions:\n<tools>{lines}\n</tools>\n\n"
        'To call one, write:\n<tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call>'
    )


def _assistant(message: Message, *, forced_thinking: bool) -> list[Piece]:
    pieces = [Piece("<|im_start|>assistant\n", False)]
    if message.thinking is not None:
        pieces.append(Piece("<think>\n", not forced_thinking))
        pieces += _cut(f"{message.thinking}\n</think>\n\n")
    calls = [
        f'<tool_call>\n{{"name": {compact_json(call.name)}, "arguments": {compact_json(dict(call.arguments))}}}\n</tool_call>'
        for call in message.calls
    ]
    body = "\n".join([message.content, *calls] if message.content else calls)
    pieces += _cut(f"{body}<|im_end|>")
    pieces.append(Piece("\n", False))
    return pieces


def _tool_answer(conversation: Conversation, index: int) -> str:
    messages = conversation.messages
    first = index == 0 or messages[index - 1].role != "tool"
    last = index + 1 == len(messages) or messages[index + 1].role != "tool"
    opening, closing = "<|im_start|>user" if first else "", "<|im_end|>\n" if last else ""
    content = messages[index].content
    return f"{opening}\n<tool_response>\n{content}\n</tool_response>{closing}"


def render(conversation: Conversation) -> list[Piece]:
    """The pieces of a conversation in order."""
    if conversation.plain:
        return [Piece(conversation.plain, True), Piece("<|endoftext|>", True)]
    pieces: list[Piece] = []
    messages = conversation.messages
    if conversation.tools:
        leading = messages[0].content + "\n\n" if messages[0].role == "system" else ""
        text = leading + tools_text(conversation.tools)
        pieces.append(Piece(f"<|im_start|>system\n{text}<|im_end|>\n", False))
    for index, message in enumerate(messages):
        if message.role == "assistant":
            forced = index in conversation.forced_thinking
            pieces += _assistant(message, forced_thinking=forced)
        elif message.role == "tool":
            pieces.append(Piece(_tool_answer(conversation, index), False))
        elif message.role == "user" or not conversation.tools or index:
            text = f"<|im_start|>{message.role}\n{message.content}<|im_end|>\n"
            pieces.append(Piece(text, False))
    return pieces


def full_text(conversation: Conversation) -> str:
    """The text that the chat template gives for the conversation, or the plain text with its end."""
    return "".join(piece.text for piece in render(conversation))
