"""The data of pie-tiny: repeatable, split without overlap, and true to the chat template."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import islice, pairwise

import jinja2
import pytest

from tools.pie_tiny import mix
from tools.pie_tiny.conversation import LETTER_JOINT, Conversation, Exchange, Message, Tool, ToolCall, compact_json
from tools.pie_tiny.draw import SPLITS, Split, draw
from tools.pie_tiny.lexicon.topics import TOPICS
from tools.pie_tiny.mix import conversations
from tools.pie_tiny.render import CHAT_TEMPLATE, full_text, render
from tools.pie_tiny.skills import SKILLS, extract, facts, formats, letters, new_tools, quantities, tools, unknown


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


def _answers(exchange: Exchange) -> list[tuple[str, str]]:
    """Each question with its answer."""
    texts = [message.content for message in exchange.messages]
    return list(zip(texts[::2], texts[1::2], strict=True))


def test_what_is_asked_of_a_list_follows_from_the_list_and_the_answer_before() -> None:
    rng = draw("lists", "train")
    n_turned = 0
    for _ in range(300):
        asked = _answers(letters.several_of_a_list(rng))
        given = re.search(r"((?:\w+, )+\w+)\.", asked[0][0])[1].split(", ")
        assert len(set(given)) == len(given) >= 3
        ordered = sorted(given, key=int) if given[0].isdigit() else sorted(given)
        before: list[str] = []
        for question, answer in asked:
            listed = answer[:-1].split(", ")
            if re.search("name first|first in|The first|first item", question):
                assert answer == f"The first is {given[0]}."
            elif re.search("last in|name last|The last|last item", question):
                assert answer == f"The last is {given[-1]}."
            elif re.search("descending|falling", question):
                assert listed == ordered[::-1]
            elif re.search("Reverse my list|my list backwards|my list around|my list from its end", question):
                assert listed == given[::-1]
            elif re.search("other way|Turn that|back to front|other direction", question):
                assert listed == before[::-1]
                n_turned += 1
            else:
                assert listed == ordered
            before = listed
    assert n_turned > 50


_FORMS = {
    "word": re.compile(r"[^ ]+(?<!\w\.)"),
    "json": re.compile(r'\{"answer": .+\}'),
    "capitals": re.compile(r"[^a-z]+"),
    "lower": re.compile(r"[^A-Z]+"),
    "sentence": re.compile(r"[^{]+ [^{]+\."),
}


def test_an_answer_in_another_form_says_the_same() -> None:
    rng = draw("forms", "train")
    n_anew = 0
    for _ in range(500):
        asked = _answers(formats.in_other_forms(rng))
        assert len(asked) >= 2
        before = ""
        for question, answer in asked:
            said = str(json.loads(answer)["answer"]) if answer.startswith("{") else answer
            form = next((form for form, options in formats.ANEW.items() if question in options), None)
            if form:
                n_anew += 1
                assert before
                shorter, longer = sorted((said.lower().strip("."), before.lower().strip(".")), key=len)
                # A count of none is said as `no`.
                assert ("no" if shorter == "0" and longer != "0" else shorter) in longer
                assert _FORMS[form].fullmatch(answer), (form, answer)
            before = said
    assert n_anew > 200


def test_fields_that_are_asked_for_again_are_those_of_the_sentence() -> None:
    rng = draw("fields", "train")
    n_again = 0
    for _ in range(300):
        first, *others = _answers(extract.extract(rng))
        known = json.loads(first[1])
        sentence = first[0]
        assert all(str(value) in sentence for value in known.values())
        for question, answer in others:
            fields = json.loads(answer)
            assert fields
            if ":" in question or "?" in question:
                sentence, known = question, {}
            assert all(str(value) in sentence for value in fields.values())
            assert all(field in question for field in fields)
            assert known == {**known, **{field: value for field, value in fields.items() if field in known}}
            known |= fields
            n_again += 1
    assert n_again > 200


def test_recased_text_is_the_text_that_was_given() -> None:
    rng = draw("recase", "train")
    for _ in range(300):
        ((question, answer),) = _answers(formats.recase(rng))
        assert answer.lower() in question.lower()
        if re.search("capitals:|in capitals|capital letters|upper case|all caps", question, re.IGNORECASE):
            assert answer == answer.upper()
        elif re.search("lower case|small letters|without capitals", question):
            assert answer == answer.lower()
        else:
            assert answer == " ".join(word.capitalize() for word in answer.split())


def _names_all(request: str, does: tuple[str, str]) -> bool:
    words = re.findall("[a-z]+", request.lower())
    return all(set(part.replace("_", " ").split()) <= set(words) for part in does)


def test_a_chosen_tool_is_the_only_one_that_does_what_is_asked(monkeypatch) -> None:
    made = []
    drawn = new_tools._tools
    monkeypatch.setattr(new_tools, "_tools", lambda rng: made.append(drawn(rng)) or made[-1])
    rng = draw("choose", "train")
    n_unnamed = n_requests = 0
    for _ in range(200):
        messages = new_tools.choose_new_tool(rng).messages
        does = {new.tool.name: new.does for new in made[-1]}
        listed = [json.loads(line)["name"] for line in re.findall(r"\{.*\}", messages[0].content)]
        assert listed == list(does)
        assert len(listed) >= 2
        if len(messages) == 2:
            requests = re.findall(r"^\d\. (.*)$", messages[0].content, re.MULTILINE)
            names = re.findall(r"^\d\. (\S+)$", messages[1].content, re.MULTILINE)
        else:
            requests = [m.content.split("\n\n")[-1] for m in messages if m.role == "user"]
            names = [m.content for m in messages if m.role == "assistant"]
        assert len(requests) == len(names) >= 3
        for request, name in zip(requests, names, strict=True):
            n_requests += 1
            fitting = {other for other in does if _names_all(request, does[other])}
            if name in fitting:
                # One for any thing at all, which has no holder, gives way to one whose holder is named.
                assert all(not does[other][1] for other in fitting - {name}), (request, fitting)
            else:
                forms = quantities.QUESTIONS_AFTER[does[name][0]]
                assert any(form.split(" the {}")[0].lower() in request.lower() for form in forms), (request, name)
                n_unnamed += 1
    assert 0 < n_unnamed < n_requests / 5


ASKED_FOR = {
    "In which city?": ("city", "location", "place", "town"),
    "Which item do you mean?": ("item", "product", "article"),
    "For how many minutes?": ("minutes", "duration"),
    "What shall I look for?": ("query", "text", "term"),
}


def test_what_a_first_request_leaves_out_is_asked_for_and_then_called_with() -> None:
    rng = draw("vague", "train")
    asked = [messages for messages in (tools.call_tool(rng).messages for _ in range(400)) if messages[1].content]
    assert len(asked) > 20
    for request, question, reply, called, *rest in asked:
        value = str(next(iter(called.calls[0].arguments.values())))
        assert value in reply.content
        assert value not in request.content
        assert next(iter(called.calls[0].arguments)) in ASKED_FOR[question.content]
        # Later on the same request would mean what was spoken of.
        assert not any(later.role == "assistant" and later.content == question.content for later in rest)


@pytest.mark.parametrize("split", ["validation", "sealed"])
def test_in_evaluation_every_first_request_for_a_tool_says_all_that_it_needs(split) -> None:
    rng = draw("vague", split)
    assert all(skill(rng).messages[1].calls for skill in (tools.call_tool, new_tools.call_new_tool) for _ in range(300))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How heavy is the {}?", "how heavy a parcel is"),
        ("Where is the {} now?", "where a parcel is now"),
        ("Until when is the {} open?", "until when a parcel is open"),
        ("How much does the {} weigh?", "how much a parcel weighs"),
        ("How fast does the {} go?", "how fast a parcel goes"),
        ("How many pages does the {} have?", "how many pages a parcel has"),
        ("To whom does the {} belong?", "to whom a parcel belongs"),
        ("Who owns the {}?", "who owns a parcel"),
        ("Who is the captain of the {}?", ""),
        ("What do people call the {}?", ""),
    ],
)
def test_a_tool_is_described_by_the_question_that_it_answers(question, said) -> None:
    assert quantities.indirect(question, "a parcel") == said


@pytest.mark.parametrize("skill", [tools.call_tool, new_tools.call_new_tool])
def test_after_a_call_that_failed_the_answer_gives_the_reason_and_evaluation_has_none(skill) -> None:
    def failures(split: Split) -> list[tuple[str, str]]:
        rng = draw("failures", split)
        turns = [message for _ in range(300) for message in skill(rng).messages]
        return [(a.content, b.content) for a, b in pairwise(turns) if a.role == "tool" and "error" in a.content.lower()]

    failed = failures("train")
    assert len(failed) > 20
    for returned, said in failed:
        reason = returned.removeprefix("Error: ")
        if returned.startswith("{"):
            told = json.loads(returned)
            reason = told.get("message") or told["error"]
        assert said == f"That did not work: {reason}."
    assert not failures("validation")
    assert not failures("sealed")


def test_what_a_tool_might_know_is_not_said_to_be_unknown(monkeypatch) -> None:
    monkeypatch.setattr(mix, "_SKILLS", (tools.call_tool, unknown.unknown, facts.fact))
    monkeypatch.setattr(mix, "_WEIGHTS", (1, 1, 1))
    with_tools = [c for c in islice(conversations(12, "train"), 600) if c.tools]
    assert sum(c.messages[-2].role != "tool" for c in with_tools) > 20
    assert not {message.content for c in with_tools for message in c.messages} & set(unknown.ANSWERS)


def test_no_tool_is_called_for_what_nobody_can_know() -> None:
    rng = draw("unknown", "train")
    unknown = [e for e in (new_tools.ignore_new_tools(rng) for _ in range(400)) if e.expects == "not know"]
    assert len(unknown) > 50
    for exchange in unknown:
        assert exchange.tools
        assert not exchange.messages[-1].calls
        words = exchange.messages[0].content.lower()
        assert "know" in exchange.messages[-1].content
        assert not any(words.startswith("how old") and "age" in tool.name.lower().split("_") for tool in exchange.tools)


HEIGHTS = ("How high is it?", "How tall is it?", "What height has it?")
ABOUT = ("height", "parcel 7")


def test_in_training_some_requests_name_what_they_are_about_among_other_words() -> None:
    rng = draw("loose", "train")
    said = [text for text in (rng.wording(*HEIGHTS, about=ABOUT) for _ in range(2000)) if text not in HEIGHTS]
    assert 100 < len(said) < 1000
    assert all("height" in text.lower() and "parcel 7" in text.lower() for text in said)
    first = [text.lower().find("height") < text.lower().find("parcel 7") for text in said]
    assert any(first)
    assert not all(first)


@pytest.mark.parametrize("split", ["validation", "sealed"])
def test_evaluation_asks_in_whole_sentences(split) -> None:
    rng, plain = draw("loose", split), draw("loose", split)
    assert not any(rng.wording(*HEIGHTS, about=ABOUT) not in HEIGHTS for _ in range(100))
    for _ in range(100):
        plain.wording(*HEIGHTS)
    assert rng.getstate() == plain.getstate()
