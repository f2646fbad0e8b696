"""Given names, hobbies and other traits of people."""

from __future__ import annotations

from random import Random

NAMES = (
    *("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Ida", "Jonas"),
    *("Kate", "Leo", "Maria", "Noah", "Olga", "Paul", "Rosa", "Sam", "Tina", "Victor"),
    *("Alice", "Bob", "Carlos", "Diana", "Elena", "Frank", "George", "Hannah", "Ivan", "Julia"),
    *("Karl", "Lucy", "Max", "Nina", "Oscar", "Peter", "Ruth", "Simon", "Tom", "Vera"),
    *("Amir", "Beth", "Chen", "Dora", "Eric", "Fatima", "Gita", "Hugo", "Iris", "Jack"),
    *("Kim", "Lena", "Mia", "Nora", "Otto", "Priya", "Ravi", "Sara", "Theo", "Yuki"),
    *("Adam", "Bella", "Carl", "Daisy", "Ella", "Finn", "Gloria", "Harry", "Isabel", "James"),
    *("Laura", "Marco", "Nadia", "Oliver", "Petra", "Robert", "Sofia", "Tim", "Ursula", "Zoe"),
    *("John", "Mary", "Mark", "Linda", "Steve", "Susan", "Daniel", "Sarah", "Thomas", "Lisa"),
    *("Ada", "Alan", "Ali", "Aisha", "Omar", "Leila", "Kenji", "Mei", "Pablo", "Lucia", "Pierre", "Chloe"),
)

HOBBIES = (
    *("reading", "swimming", "cooking", "painting", "chess", "gardening", "running", "music"),
    *("hiking", "dancing", "fishing", "cycling", "baking", "singing", "sewing", "sailing"),
)

PETS = ("dog", "cat", "rabbit", "parrot", "hamster", "goldfish", "pony", "turtle")

PET_NAMES = (
    *("Luna", "Rex", "Milo", "Bella", "Biscuit", "Coco", "Pepper", "Shadow", "Ginger", "Toffee"),
    *("Pixie", "Bruno", "Daisy", "Muffin", "Waffles", "Nala"),
)

FOODS = (
    *("pizza", "soup", "pasta", "rice", "bread", "cake", "apples", "cheese", "pancakes"),
    *("salad", "curry", "ice cream", "fish", "strawberries", "noodles", "chocolate"),
)

_SYLLABLES = (
    *("ba", "ce", "do", "fu", "ga", "hi", "jo", "ku", "la", "me", "ni", "po", "qua", "ri"),
    *("sta", "tro", "ul", "ve", "wo", "xa", "yo", "zu", "bran", "del", "mor", "nar", "vin"),
)


def made_up_name(rng: Random) -> str:
    """A name that means nothing."""
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 3))).capitalize()


def any_name(rng: Random) -> str:
    """A given name, sometimes one that nobody bears, so that names are copied, not recalled."""
    return made_up_name(rng) if rng.random() < 0.4 else rng.choice(NAMES)
