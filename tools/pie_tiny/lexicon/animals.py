"""Animals with what a child knows of them."""

from __future__ import annotations

from typing import NamedTuple


class Animal(NamedTuple):
    """One animal; an empty field means that nothing is taught of it."""

    name: str
    kind: str
    legs: int
    sound: str
    young: str
    food: str
    home: str


_ROWS = """
dog|mammal|4|barks|puppy|meat|in a house with people
cat|mammal|4|meows|kitten|fish and mice|in a house with people
cow|mammal|4|moos|calf|grass|on a farm
horse|mammal|4|neighs|foal|grass and hay|on a farm
pig|mammal|4|oinks|piglet|vegetables and grain|on a farm
sheep|mammal|4|bleats|lamb|grass|on a farm
goat|mammal|4|bleats|kid|grass and leaves|on a farm
donkey|mammal|4|brays|foal|grass and hay|on a farm
lion|mammal|4|roars|cub|meat|on the plains of Africa
tiger|mammal|4|roars|cub|meat|in the forests of Asia
bear|mammal|4|growls|cub|berries and fish|in the forest
wolf|mammal|4|howls|pup|meat|in the forest
fox|mammal|4|barks|cub|mice and berries|in the forest
rabbit|mammal|4||kitten|grass and carrots|in a burrow
mouse|mammal|4|squeaks|pup|seeds and grain|in a small hole
squirrel|mammal|4|chatters|kitten|nuts|in trees
hedgehog|mammal|4|snuffles|hoglet|insects|in gardens
deer|mammal|4||fawn|leaves and grass|in the forest
elephant|mammal|4|trumpets|calf|leaves and grass|in Africa and Asia
giraffe|mammal|4||calf|leaves|on the plains of Africa
zebra|mammal|4||foal|grass|on the plains of Africa
monkey|mammal|4|chatters|infant|fruit|in trees
kangaroo|mammal|4||joey|grass|in Australia
koala|mammal|4||joey|leaves|in the trees of Australia
panda|mammal|4||cub|bamboo|in the mountains of China
camel|mammal|4||calf|dry plants|in the desert
whale|mammal|0|sings|calf|small sea animals|in the ocean
dolphin|mammal|0|clicks|calf|fish|in the ocean
seal|mammal|0|barks|pup|fish|on cold coasts
bat|mammal|2|squeaks|pup|insects|in caves
otter|mammal|4|whistles|pup|fish|in rivers
beaver|mammal|4||kit|bark and leaves|in rivers
chicken|bird|2|clucks|chick|seeds and grain|on a farm
duck|bird|2|quacks|duckling|plants and insects|on ponds
goose|bird|2|honks|gosling|grass|on ponds
owl|bird|2|hoots|owlet|mice|in trees
eagle|bird|2|screeches|eaglet|small animals|in the mountains
crow|bird|2|caws|chick|seeds and insects|in trees
parrot|bird|2|squawks|chick|seeds and fruit|in warm forests
penguin|bird|2||chick|fish|on the coasts of the south
swan|bird|2||cygnet|water plants|on lakes
pigeon|bird|2|coos|chick|seeds and crumbs|in cities
sparrow|bird|2|chirps|chick|seeds|in gardens
frog|amphibian|4|croaks|tadpole|insects|in ponds
toad|amphibian|4|croaks|tadpole|insects|in damp gardens
snake|reptile|0|hisses|hatchling|mice and eggs|in warm places
lizard|reptile|4||hatchling|insects|in warm places
turtle|reptile|4||hatchling|plants and small animals|in water
crocodile|reptile|4||hatchling|fish and meat|in warm rivers
shark|fish|0||pup|fish|in the ocean
salmon|fish|0||fry|small fish|in rivers and the ocean
goldfish|fish|0|||small plants|in ponds
bee|insect|6|buzzes|larva|nectar|in a hive
ant|insect|6|||seeds and small insects|in an ant hill
butterfly|insect|6||caterpillar|nectar|in gardens
beetle|insect|6|||leaves and wood|in the ground
fly|insect|6|buzzes|maggot|almost anything|near people
spider|arachnid|8||spiderling|insects|in a web
octopus|mollusc|0|||crabs|in the ocean
snail|mollusc|0|||leaves|in damp gardens
"""


def _parse(line: str) -> Animal:
    name, kind, legs, sound, young, food, home = line.split("|")
    return Animal(name, kind, int(legs), sound, young, food, home)


ANIMALS: tuple[Animal, ...] = tuple(_parse(line) for line in _ROWS.strip().splitlines())
