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
    smalltalk.greeting: 2,
    smalltalk.small_talk: 5,
    smalltalk.repeat: 5,
    facts.fact: 8,
    formats.formatted: 9,
    sums.plain_sum: 10,
    sums.sums_in_a_row: 4,
    sums.times: 1,
    sums.word_problem: 3,
    sums.compare: 2,
    sums.count: 4,
    sums.describe_number: 0.5,
    letters.spell: 3,
    letters.spell_several: 5,
    letters.reverse_word: 7,
    letters.count_letters: 3,
    letters.sort_words: 9,
    letters.sort_numbers: 8,
    letters.list_ends: 6,
    letters.name_some: 2,
    memory.remember: 7,
    memory.remember_at_once: 4,
    memory.never_said: 1,
    extract.extract: 10,
    extract.read_back: 5,
    explain.explain: 2.5,
    explain.describe_animal: 2,
    explain.give_tips: 1,
    explain.name_pet: 0.5,
    explain.write_sentence: 1,
    explain.poem: 1.5,
    stories.story: 2,
    stories.one_sentence_story: 0.5,
    thinking.think: 7,
    tools.call_tool: 6,
    tools.ignore_tools: 1.5,
    new_tools.call_new_tool: 9,
    new_tools.ignore_new_tools: 2,
    passage.passage: 9,
    unknown.unknown: 4,
    unknown.unclear: 0.5,
}
"""Each skill and its share of exchanges, in parts of the sum."""
