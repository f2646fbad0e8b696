"""The skills of the model, one file a group, and how often each is drawn."""

from __future__ import annotations

from collections.abc import Mapping

from ..conversation import Skill
from . import (
    explain,
    extract,
    facts,
    formats,
    letters,
    memory,
    smalltalk,
    stories,
    sums,
    thinking,
    tools,
    unknown,
)

SKILLS: Mapping[Skill, float] = {
    smalltalk.greeting: 3,
    smalltalk.small_talk: 8,
    smalltalk.repeat: 2,
    facts.fact: 16,
    formats.formatted: 8,
    sums.plain_sum: 12,
    sums.times: 2,
    sums.word_problem: 2,
    sums.compare: 2,
    sums.count: 3,
    sums.describe_number: 1,
    letters.spell: 2,
    letters.reverse_word: 2,
    letters.count_letters: 2,
    letters.sort_list: 4,
    letters.list_ends: 2,
    letters.name_some: 10,
    memory.remember: 7,
    memory.remember_at_once: 2,
    memory.never_said: 1,
    extract.extract: 5,
    extract.read_back: 2,
    explain.explain: 8,
    explain.describe_animal: 3,
    explain.give_tips: 2,
    explain.name_pet: 1,
    explain.write_sentence: 2,
    explain.poem: 3,
    stories.story: 10,
    stories.one_sentence_story: 1,
    thinking.think: 6,
    tools.call_tool: 8,
    tools.ignore_tools: 2,
    unknown.unknown: 4,
    unknown.unclear: 1,
}
"""Each skill and its share of exchanges, in parts of the sum."""
