"""The data of pie-tiny: repeatable, split without overlap, and true to the chat template."""

from __future__ import annotations

from functools import cache
from itertools import islice

import jinja2
import pytest

from tools.pie_tiny.conversation import LETTER_JOINT, Conversation, Message, Tool, ToolCall, compact_json
from tools.pie_tiny.draw import SPLITS, draw
from tools.pie_tiny.lexicon.topics import TOPICS
from tools.pie_tiny.mix import conversations
from tools.pie_tiny.render import CHAT_TEMPLATE, full_text, render
from tools.pie_tiny.skills import SKILLS


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = compact_json
    return environment.from_string(CHAT_TEMPLATE)


def _by_template(conversation: Conversation, **options: object) -> str:
    messages = [message.as_template_input() for message in conversation.messages]
    tools = [tool.schema() for tool in conversation.tools] or None
    return _template().render(messages=messages, tools=tools, **options)


def test_the_same_seed_gives_the_same_conversations() -> None:
    first, second, other = (list(islice(conversations(seed, "train"), 300)) for seed in (7, 7, 8))
    assert first == second
    assert first != other


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.__name__)
def test_every_skill_ends_with_an_answer(skill, split) -> None:
    for seed in range(150):
        exchange = skill(draw(str(seed), split))
        assert exchange.messages[0].role == "user"
        last = exchange.messages[-1]
        assert last.role == "assistant"
        assert last.content
        for message in exchange.messages:
            assert message.content == message.content.strip()
            assert "<|" not in message.content
            assert "None" not in message.content
        assert exchange.expects.lower() in last.content.replace(LETTER_JOINT, "").lower()


@pytest.mark.parametrize("split", SPLITS)
def test_pieces_join_to_what_the_template_gives(split) -> None:
    n_tools = n_thoughts = 0
    for conversation in islice((c for c in conversations(3, split) if not c.plain), 200):
        assert full_text(conversation) == _by_template(conversation)
        n_tools += bool(conversation.tools)
        n_thoughts += any(message.thinking for message in conversation.messages)
    assert n_tools > 0
    assert n_thoughts > 0


def test_the_template_renders_tools_calls_and_answers() -> None:
    tool = Tool("get_weather", "Get the weather of a city.", {"city": "string"})
    call = ToolCall("get_weather", {"city": "Genève"})
    conversation = Conversation(
        (
            Message("system", "Be brief."),
            Message("user", "Weather in Genève?"),
            Message("assistant", "", calls=(call, call)),
            Message("tool", "sunny"),
            Message("tool", "still sunny"),
            Message("assistant", "It is sunny."),
        ),
        tools=(tool,),
    )
    assert _by_template(conversation) == (
        "<|im_start|>system\nBe brief.\n\n# Tools\n\nYou can call these functions:\n<tools>\n"
        '{"name": "get_weather", "description": "Get the weather of a city.", "parameters": {"type": "object", '
        '"properties": {"city": {"type": "string"}}, "required": ["city"]}}\n</tools>\n\n'
        'To call one, write:\n<tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\nWeather in Genève?<|im_end|>\n"
        '<|im_start|>assistant\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Genève"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Genève"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\nsunny\n</tool_response>\n<tool_response>\nstill sunny\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\nIt is sunny.<|im_end|>\n"
    )
    assert full_text(conversation) == _by_template(conversation)


def test_thinking_is_off_by_default_and_opened_on_request() -> None:
    conversation = Conversation((Message("user", "Hi"),))
    asked = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert _by_template(conversation, add_generation_prompt=True) == asked
    assert _by_template(conversation, add_generation_prompt=True, enable_thinking=True) == asked + "<think>\n"


def test_past_thinking_stays_in_the_text() -> None:
    conversation = Conversation((Message("user", "1 + 1?"), Message("assistant", "2.", thinking="One more."), Message("user", "Thanks")))
    assert "<think>\nOne more.\n</think>\n\n2.<|im_end|>\n<|im_start|>user\nThanks" in _by_template(conversation)


def test_the_template_only_appends() -> None:
    for conversation in islice(conversations(11, "train"), 60):
        whole = full_text(conversation)
        for cut in range(1, len(conversation.messages)):
            if conversation.messages[cut].role != "tool":
                part = Conversation(conversation.messages[:cut], conversation.tools)
                assert whole.startswith(full_text(part))


def test_only_what_the_assistant_writes_is_learnt() -> None:
    thought = Message("assistant", "Two.", thinking="One and one.")
    free = Conversation((Message("user", "1 + 1?"), thought))
    forced = Conversation((Message("user", "1 + 1?"), thought), forced_thinking=frozenset({1}))
    learnt = ["".join(piece.text for piece in render(c) if piece.learnt) for c in (free, forced)]
    assert learnt == ["<think>\nOne and one.\n</think>\n\nTwo.<|im_end|>", "One and one.\n</think>\n\nTwo.<|im_end|>"]


def test_plain_texts_end_without_turns() -> None:
    plain = [c for c in islice(conversations(9, "train"), 300) if c.plain]
    assert plain
    for conversation in plain:
        assert full_text(conversation) == conversation.plain + "<|endoftext|>"
        assert all(piece.learnt for piece in render(conversation))


def test_topics_are_whole_sentences() -> None:
    assert len(TOPICS) > 60
    for topic, sentences in TOPICS.items():
        assert len(sentences) >= 2, topic
        assert all(s[0].isupper() and s.endswith(".") for s in sentences), topic
