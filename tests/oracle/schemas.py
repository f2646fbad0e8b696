"""Random JSON Schemas over the keywords that grammars accept, and what they mean to the package `jsonschema`."""

from __future__ import annotations

from random import Random
from typing import Any

Schema = dict[str, Any]

WORDS = ["a", "b", "name", "size", "kind", "x y", 'q"u', "ö", "back\\slash", "tab\t", "long_property_name"]
PATTERNS = ["^[a-c]{2,4}$", "^x", "y$", "[0-9]{2}", "^(ab|cd)+$", "^[^a]{1,3}$", "^\\d{3}-\\d{2}$", "^$|^[A-Z]+$", "^[\\t-z]{1,4}$"]
FORMATS = ["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"]


def schema(random: Random, depth: int = 3) -> Schema:
    """A schema that most likely allows something, with definitions at its top."""
    definitions = {"leaf": value(random, 0), "tree": tree(random)}
    top = value(random, depth)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "$defs": definitions}


def in_the_standard(made: Any) -> Any:
    """A schema of these without `nullable`, which is a word of OpenAPI: the standard has another type in its place."""
    if isinstance(made, list):
        return [in_the_standard(inner) for inner in made]
    if not isinstance(made, dict):
        return made
    plain = {name: in_the_standard(inner) for name, inner in made.items() if name != "nullable"}
    if made.get("nullable"):
        plain["type"] = [made["type"], "null"]
    return plain


def described(random: Random, made: Schema) -> Schema:
    """A schema with words for its readers, which allow and forbid nothing."""
    words = {
        "title": "a value",
        "description": 'What a reader is told: "any", or 12.',
        "default": random.choice([None, "no such value", 10**6, {"a": []}]),
        "examples": [False, "neither is this"],
    }
    return made | {name: words[name] for name in random.sample(sorted(words), random.randint(1, len(words)))}


def tree(random: Random) -> Schema:
    """A schema that refers to itself below an optional property."""
    return {
        "type": "object",
        "properties": {
            "label": scalar(random),
            "next": {"$ref": "#/$defs/tree"},
            "all": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": random.randint(0, 2)},
        },
        "required": ["label"],
        "additionalProperties": False,
    }


def value(random: Random, depth: int) -> Schema:
    """A schema of any kind."""
    if depth == 0:
        return scalar(random)
    kinds = [scalar, array, object_, object_, tagged, combined, conditional, reference, dependent]
    made = random.choice(kinds)(random, depth)
    return described(random, made) if random.random() < 0.3 else made


def scalar(random: Random, _depth: int = 0) -> Schema:
    """A schema of strings, numbers, booleans, null, or values given whole."""
    kind = random.randrange(12)
    if kind == 11:
        limited = {"type": "string", "maxLength": random.randint(0, 4)}
        return described(random, random.choice([integers(random), limited]) | {"nullable": random.random() < 0.8})
    if kind == 0:
        return {"type": random.choice(["null", "boolean", ["string", "null"], ["integer", "boolean"]])}
    if kind == 1:
        return integers(random)
    if kind == 2:
        return numbers(random)
    if kind == 3:
        return {"enum": random.sample(["a", "b", 1, 2.5, None, True, "ö\n", [1, "x"], {"k": [None]}], random.randint(1, 5))}
    if kind == 4:
        return {"const": random.choice(["c", 0, -1.5, None, False, {"a": 1}, [], 'quo"te'])}
    if kind == 5:
        return {"type": "string", "format": random.choice(FORMATS)}
    if kind == 6:
        return {"type": "string", "pattern": random.choice(PATTERNS), "title": "a pattern"}
    if kind == 7:
        return {"type": "string", "not": {"enum": random.sample(["a", "b", "", "x"], 2)}, "maxLength": random.randint(1, 5)}
    if kind == 8:
        return {"type": "string", "minLength": random.randint(0, 3), "pattern": "^[a-z ]*$", "maxLength": random.randint(4, 9)}
    low = random.randint(0, 4)
    return {"type": "string", "minLength": low, "maxLength": low + random.randint(0, 12)}


def integers(random: Random) -> Schema:
    """Integers within bounds."""
    made: Schema = {"type": "integer"}
    low = random.randint(-300, 300)
    if random.random() < 0.6:
        made[random.choice(["minimum", "exclusiveMinimum"])] = low
    if random.random() < 0.6:
        made[random.choice(["maximum", "exclusiveMaximum"])] = low + random.randint(8, 5000)
    if random.random() < 0.3:
        made["multipleOf"] = random.randint(1, 7)
    elif random.random() < 0.2:
        made["not"] = {"enum": [low + 1, low + 2]}
    return made


def numbers(random: Random) -> Schema:
    """Numbers within bounds."""
    made: Schema = {"type": "number"}
    low = round(random.uniform(-30, 30), random.randint(0, 2))
    if random.random() < 0.5:
        made[random.choice(["minimum", "exclusiveMinimum"])] = low
    if random.random() < 0.5:
        made[random.choice(["maximum", "exclusiveMaximum"])] = round(low + random.uniform(1, 50), 1)
    return made


def array(random: Random, depth: int) -> Schema:
    """Arrays with first items and a bounded rest."""
    low = random.randint(0, 2)
    made: Schema = {"type": "array", "minItems": low, "maxItems": low + random.randint(0, 3)}
    if random.random() < 0.8:
        made["items"] = value(random, depth - 1)
    if random.random() < 0.3:
        made["prefixItems"] = [value(random, depth - 1) for _ in range(random.randint(1, 3))]
        if random.random() < 0.3:
            made["items"] = False
            made["minItems"] = min(low, len(made["prefixItems"]))
    return made


def object_(random: Random, depth: int) -> Schema:
    """Objects, closed and open."""
    names = random.sample(WORDS, random.randint(0, 5))
    made: Schema = {"type": "object", "properties": {name: value(random, depth - 1) for name in names}}
    made["required"] = random.sample(names, random.randint(0, len(names)))
    kind = random.randrange(5)
    if kind < 3:
        made["additionalProperties"] = False
        if kind == 0 and names:
            made["minProperties"] = random.randint(0, len(names))
            made["maxProperties"] = random.randint(max(1, len(made["required"]), made["minProperties"]), len(names))
    elif kind == 3:
        made["additionalProperties"] = value(random, depth - 1)
        made["maxProperties"] = len(names) + random.randint(1, 3)
    else:
        made["patternProperties"] = {"^k": scalar(random), random.choice(["a$", "^z"]): scalar(random)}
        made["additionalProperties"] = random.choice([False, {"type": "boolean"}])
        made["maxProperties"] = len(names) + 2
    return made


def tagged(random: Random, depth: int) -> Schema:
    """A union whose options a property tells apart."""
    options = []
    for tag in random.sample(["circle", "square", "line"], random.randint(2, 3)):
        inner = value(random, depth - 1)
        options.append(
            {
                "type": "object",
                "properties": {"tag": {"const": tag}, "value": inner},
                "required": ["tag", "value"],
                "additionalProperties": False,
            }
        )
    return {"oneOf": options, "discriminator": {"propertyName": "tag"}}


def combined(random: Random, depth: int) -> Schema:
    """`anyOf`, and `allOf` whose parts have something in common."""
    if random.random() < 0.6:
        return {"anyOf": [value(random, depth - 1) for _ in range(random.randint(1, 3))]}
    first, second = random.sample(WORDS, 2)
    shared = {first: {"type": ["integer", "string"]}, second: {"type": "string", "maxLength": 6}}
    return {
        "allOf": [
            {"type": "object", "properties": shared, "required": [first]},
            {"properties": {first: {"type": "integer", "minimum": random.randint(-5, 5)}}, "maxProperties": 3},
        ]
    }


def conditional(random: Random, depth: int) -> Schema:
    """`if` over a constant property."""
    return {
        "type": "object",
        "properties": {"mode": {"enum": ["on", "off", "auto"]}, "level": {"type": "integer"}, "why": scalar(random)},
        "required": ["mode"],
        "if": {"properties": {"mode": {"const": "on"}}},
        "then": {"required": ["level"], "properties": {"level": {"minimum": random.randint(0, 3), "maximum": 99}}},
        "else": {"properties": {"level": False}},
        "additionalProperties": False,
    }


def dependent(random: Random, depth: int) -> Schema:
    """`dependentRequired` over a closed object."""
    names = random.sample(WORDS, 3)
    return {
        "type": "object",
        "properties": {name: value(random, depth - 1) for name in names},
        "dependentRequired": {names[0]: [names[1]], names[1]: names[2:]},
        "additionalProperties": False,
    }


def reference(random: Random, _depth: int) -> Schema:
    """A reference, alone or beside other keywords."""
    if random.random() < 0.3:
        return {"$ref": "#/$defs/tree", "required": ["next"]}
    return {"$ref": random.choice(["#/$defs/leaf", "#/$defs/tree"])}
