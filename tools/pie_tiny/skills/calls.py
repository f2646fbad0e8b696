"""The turns of a tool's call, and what is said where it fails."""

from __future__ import annotations

from ..conversation import Message, ToolCall, compact_json, pick
from ..draw import Draw

_FAILED_SHARE = 0.08
_REASONS = ("no connection", "timeout", "the service is down", "not allowed", "not found", "too many requests", "internal error")
"""Why any call may fail."""
_REASONS_OF_A_NAME = ("{} was not found", "there is no {}", "{} is unknown", "unknown: {}", "{} does not exist")


def _reason(rng: Draw, call: ToolCall) -> str:
    value = next(iter(call.arguments.values()))
    is_name = isinstance(value, str) and not any(character.isdigit() for character in value)
    return rng.choice(_REASONS_OF_A_NAME).format(value) if is_name and rng.random() < 0.6 else rng.choice(_REASONS)


def turns_of_call(rng: Draw, question: str, call: ToolCall, returned: str, answer: str) -> list[Message]:
    """The question, the call, what the tool returned and the answer.

    In training the tool sometimes returns an error.
    """
    if rng.split == "train" and rng.random() < _FAILED_SHARE:
        reason = _reason(rng, call)
        returned = pick(rng, compact_json({"error": reason}), compact_json({"status": "error", "message": reason}), f"Error: {reason}")
        answer = f"That did not work: {reason}."
    return [Message("user", question), Message("assistant", "", calls=(call,)), Message("tool", returned), Message("assistant", answer)]
