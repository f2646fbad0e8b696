"""Categories of things, colours, opposites, units and the calendar."""

from __future__ import annotations

COLOURS = (
    *("red", "blue", "green", "yellow", "orange", "purple", "pink", "brown", "black"),
    *("white", "grey", "gold", "silver", "violet", "turquoise"),
)

COLOUR_OF: dict[str, str] = {
    "the sky": "blue", "grass": "green", "snow": "white", "coal": "black", "a banana": "yellow",
    "a lemon": "yellow", "a tomato": "red", "a strawberry": "red", "an orange": "orange",
    "a carrot": "orange", "a cucumber": "green", "a leaf": "green", "milk": "white",
    "chocolate": "brown", "blood": "red", "the sea": "blue", "a ripe cherry": "red",
    "a polar bear": "white", "a crow": "black", "a flamingo": "pink", "the sun": "yellow",
    "a frog": "green", "an elephant": "grey", "coffee": "brown", "a pumpkin": "orange",
    "a plum": "purple", "an aubergine": "purple", "cotton": "white", "a fire engine": "red",
    "an emerald": "green", "a ruby": "red", "a sapphire": "blue", "salt": "white",
    "a swan": "white", "the night sky": "black", "butter": "yellow", "a pea": "green",
    "a raspberry": "red", "a blueberry": "blue", "lavender": "purple", "ash": "grey",
    "a sunflower": "yellow", "rice": "white", "broccoli": "green", "wood": "brown",
}  # fmt: skip

CATEGORIES: dict[str, tuple[str, ...]] = {
    "colours": COLOURS,
    "fruits": (
        *("apple", "banana", "orange", "pear", "grape", "cherry", "plum", "peach", "lemon"),
        *("mango", "strawberry", "melon", "kiwi", "apricot", "pineapple"),
    ),
    "vegetables": (
        *("carrot", "potato", "onion", "cabbage", "pea", "bean", "spinach", "leek", "turnip"),
        *("cucumber", "pumpkin", "broccoli", "celery", "lettuce"),
    ),
    "animals": (
        *("dog", "cat", "horse", "cow", "lion", "tiger", "bear", "wolf", "fox", "rabbit"),
        *("elephant", "giraffe", "monkey", "mouse", "deer", "otter", "zebra"),
    ),
    "birds": (
        *("owl", "eagle", "duck", "swan", "crow", "parrot", "penguin", "sparrow", "robin"),
        *("goose", "pigeon", "heron"),
    ),
    "insects": ("bee", "ant", "butterfly", "beetle", "fly", "moth", "wasp", "cricket"),
    "flowers": (*("rose", "tulip", "daisy", "lily", "sunflower", "violet", "poppy", "orchid", "iris"),),
    "trees": ("oak", "pine", "birch", "maple", "willow", "elm", "beech", "ash", "fir"),
    "planets": (*("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"),),
    "continents": (
        *("Africa", "Antarctica", "Asia", "Europe", "North America", "Oceania"),
        "South America",
    ),
    "oceans": ("the Atlantic", "the Pacific", "the Indian Ocean", "the Arctic Ocean"),
    "countries": (
        *("France", "Germany", "Italy", "Spain", "Japan", "Brazil", "Canada", "Egypt", "India"),
        *("Kenya", "Norway", "Peru", "China", "Mexico", "Poland"),
    ),
    "cities": (
        *("Paris", "London", "Berlin", "Rome", "Tokyo", "Cairo", "Lima", "Oslo", "Madrid"),
        *("Vienna", "Athens", "Sydney", "Toronto"),
    ),
    "instruments": (*("piano", "violin", "guitar", "flute", "drum", "trumpet", "harp", "cello", "clarinet"),),
    "sports": (
        *("football", "tennis", "swimming", "rowing", "running", "cycling", "hockey", "skiing"),
        *("golf", "rugby", "cricket"),
    ),
    "drinks": ("water", "tea", "coffee", "milk", "juice", "lemonade", "cocoa"),
    "tools": ("hammer", "saw", "screwdriver", "drill", "spade", "rake", "axe", "pliers"),
    "shapes": ("circle", "square", "triangle", "rectangle", "star", "oval", "hexagon", "cube"),
    "metals": ("iron", "gold", "silver", "copper", "tin", "lead", "zinc", "aluminium"),
    "clothes": ("shirt", "coat", "hat", "sock", "shoe", "scarf", "dress", "glove", "jacket"),
    "jobs": (
        *("teacher", "doctor", "baker", "farmer", "nurse", "pilot", "writer", "cook", "painter"),
        *("gardener", "carpenter", "engineer", "sailor"),
    ),
    "languages": (
        *("English", "French", "German", "Spanish", "Italian", "Japanese", "Arabic", "Hindi"),
        *("Chinese", "Portuguese"),
    ),
    "rooms": ("kitchen", "bedroom", "bathroom", "hall", "cellar", "attic", "study"),
    "vehicles": ("car", "bus", "train", "bicycle", "boat", "plane", "tram", "lorry", "ship"),
    "body parts": ("hand", "foot", "head", "arm", "leg", "nose", "ear", "eye", "knee", "back"),
    "days of the week": (*("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),),
    "months": (
        *("January", "February", "March", "April", "May", "June", "July", "August"),
        *("September", "October", "November", "December"),
    ),
    "seasons": ("spring", "summer", "autumn", "winter"),
}

DAYS = CATEGORIES["days of the week"]
MONTHS = CATEGORIES["months"]
MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

OPPOSITES: tuple[tuple[str, str], ...] = (
    ("hot", "cold"), ("big", "small"), ("fast", "slow"), ("up", "down"), ("light", "dark"),
    ("day", "night"), ("old", "young"), ("happy", "sad"), ("open", "closed"), ("full", "empty"),
    ("hard", "soft"), ("wet", "dry"), ("high", "low"), ("long", "short"), ("left", "right"),
    ("early", "late"), ("loud", "quiet"), ("rich", "poor"), ("strong", "weak"),
    ("clean", "dirty"), ("thick", "thin"), ("near", "far"), ("first", "last"),
    ("inside", "outside"), ("true", "false"), ("heavy", "light"), ("good", "bad"),
    ("sweet", "sour"), ("brave", "afraid"), ("win", "lose"), ("buy", "sell"), ("give", "take"),
    ("start", "stop"), ("push", "pull"), ("always", "never"), ("above", "below"),
    ("before", "after"), ("wide", "narrow"), ("deep", "shallow"), ("easy", "difficult"),
    ("love", "hate"), ("friend", "enemy"), ("north", "south"), ("east", "west"),
    ("awake", "asleep"), ("rough", "smooth"), ("sharp", "blunt"), ("arrive", "leave"),
    ("remember", "forget"), ("cheap", "expensive"),
)  # fmt: skip

PLURALS: tuple[tuple[str, str], ...] = (
    ("mouse", "mice"), ("child", "children"), ("foot", "feet"), ("tooth", "teeth"),
    ("goose", "geese"), ("man", "men"), ("woman", "women"), ("leaf", "leaves"),
    ("wolf", "wolves"), ("knife", "knives"), ("city", "cities"), ("box", "boxes"),
    ("sheep", "sheep"), ("fish", "fish"), ("baby", "babies"), ("potato", "potatoes"),
    ("cat", "cats"), ("dog", "dogs"), ("book", "books"), ("bus", "buses"), ("fox", "foxes"),
    ("house", "houses"), ("person", "people"), ("ox", "oxen"), ("berry", "berries"),
)  # fmt: skip

UNITS: tuple[tuple[str, str, int], ...] = (
    ("seconds", "a minute", 60), ("minutes", "an hour", 60), ("hours", "a day", 24),
    ("days", "a week", 7), ("months", "a year", 12), ("days", "a year", 365),
    ("weeks", "a year", 52), ("years", "a decade", 10), ("years", "a century", 100),
    ("millimetres", "a centimetre", 10), ("centimetres", "a metre", 100),
    ("metres", "a kilometre", 1000), ("grams", "a kilogram", 1000),
    ("millilitres", "a litre", 1000), ("kilograms", "a tonne", 1000), ("items", "a dozen", 12),
    ("inches", "a foot", 12), ("bits", "a byte", 8), ("degrees", "a circle", 360),
    ("degrees", "a right angle", 90), ("letters", "the English alphabet", 26),
    ("seasons", "a year", 4), ("cents", "a euro", 100), ("sides", "a triangle", 3),
    ("sides", "a square", 4), ("sides", "a pentagon", 5), ("sides", "a hexagon", 6),
    ("sides", "an octagon", 8), ("faces", "a cube", 6), ("wheels", "a bicycle", 2),
    ("wheels", "a car", 4), ("wheels", "a tricycle", 3), ("strings", "a violin", 4),
    ("strings", "a guitar", 6), ("keys", "a piano", 88), ("players", "a football team", 11),
    ("fingers", "one hand", 5), ("toes", "one foot", 5), ("letters", "the word cat", 3),
)  # fmt: skip

_WORD_CATEGORIES = (
    *("fruits", "vegetables", "animals", "birds", "flowers", "trees", "instruments", "tools"),
    *("shapes", "metals", "clothes", "jobs", "vehicles", "body parts", "colours", "seasons"),
    *("drinks", "rooms"),
)
_MORE_WORDS = (
    *("house", "river", "cloud", "stone", "light", "bread", "chair", "table", "window", "garden"),
    *("school", "letter", "music", "night", "ocean", "paper", "queen", "road", "sand", "tower"),
    *("water", "world", "bridge", "candle", "dream", "engine", "forest", "ghost", "honey"),
    *("island", "jungle", "kettle", "lamp", "mirror", "nest", "pencil", "quiet", "rain", "snow"),
    *("uncle", "valley", "wind", "year", "zoo", "book", "moon", "fish", "cake", "door", "king"),
    *("leaf", "map", "pen", "cup", "box", "bed", "sky", "egg", "ice", "key", "python", "sun"),
    *("hello", "happy", "friend", "family", "market", "planet", "rocket", "castle", "model"),
)

WORDS: tuple[str, ...] = tuple(
    dict.fromkeys(word.lower() for name in _WORD_CATEGORIES for word in CATEGORIES[name]) | dict.fromkeys(_MORE_WORDS)
)
"""Words to spell, sort and talk about, each once."""
