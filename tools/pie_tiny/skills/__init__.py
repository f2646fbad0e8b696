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
    new_tools,
    passage,
    smalltalk,
    stories,
    sums,
    thinking,
    tools,
    unknown,
)

SKILLS: Mapping[Skill, float] = {
    smalltalk.greeting: 1.5,
    smalltalk.small_talk: 5,
    smalltalk.repeat: 5,
    facts.fact: 7,
    formats.formatted: 13,
    formats.recase: 5,
    sums.plain_sum: 10,
    sums.sums_in_a_row: 4,
    sums.times: 1,
    sums.word_problem: 3,
    sums.compare: 2,
    sums.count: 4,
    sums.describe_number: 0.5,
    letters.spell: 5,
    letters.spell_several: 5,
    letters.reverse_word: 8,
    letters.count_letters: 3,
    letters.sort_words: 11,
    letters.sort_numbers: 10,
    letters.list_ends: 7,
    letters.name_some: 2,
    memory.remember: 6,
    memory.remember_at_once: 3,
    memory.never_said: 1,
    extract.extract: 10,
    extract.read_back: 5,
    explain.explain: 1.5,
    explain.describe_animal: 1,
    explain.give_tips: 1,
    explain.name_pet: 0.5,
    explain.write_sentence: 1,
    explain.poem: 1.5,
    stories.story: 1.5,
    stories.one_sentence_story: 0.5,
    thinking.think: 6,
    tools.call_tool: 6,
    tools.ignore_tools: 1.5,
    new_tools.call_new_tool: 10,
    new_tools.ignore_new_tools: 2,
    passage.passage: 11,
    unknown.unknown: 2,
    unknown.unclear: 0.5,
}
"""Each skill and its share of exchanges, in parts of the sum."""
