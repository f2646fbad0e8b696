"""Lexica whose entries are divided among training, validation and the sealed set.

They hold what a model should copy rather than recall: names, words to spell, places, things.
"""

from __future__ import annotations

from dataclasses import dataclass

from .people import FOODS, HOBBIES, NAMES, PET_NAMES
from .things import CATEGORIES, WORDS
from .topics import TIPS, TOPICS
from .world import CITIES


@dataclass(frozen=True, slots=True)
class Pool:
    """Entries of a lexicon by the split that may use them."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    sealed: tuple[str, ...]


def _pool(train: tuple[str, ...], more: str, validation: str, sealed: str) -> Pool:
    held = {*validation.split(), *sealed.split()}
    entries = dict.fromkeys((*train, *more.split()))
    return Pool(tuple(e for e in entries if e not in held), tuple(validation.split()), tuple(sealed.split()))


PERSONS = _pool(
    NAMES,
    """Agnes Albert Alma Amos Andre Arthur Astrid Axel Basil Bea Bernard Boris Bruno Carmen Cecil Celia Cora Cyril Dana Dario Delia
    Denis Diego Edgar Edith Elias Elsa Emil Enzo Erika Esther Eva Fiona Flora Freya Gavin Gerda Gideon Greta Gustav Hazel Hector Helga
    Herman Hilda Holly Ian Igor Ines Inga Irma Isaac Jana Jasper Jenny Joan Joel Jorge Josef Judith Kai Karen Keith Kurt Lara Lars Leon
    Lily Lorenzo Louis Luca Luise Magda Malik Manuel Marta Martin Mattis Maud Mavis Megan Mila Milan Moritz Muriel Naomi Neil Nelly
    Nicholas Nils Odette Olive Orla Owen Pamela Pascal Patrick Pedro Penny Philip Quentin Rachel Ralph Rebecca Rene Rita Roger Roland
    Roman Ronald Rory Rosalie Rufus Sabine Salma Samuel Sandra Sean Selma Serge Silas Sonja Stella Stuart Sven Sylvia Tara Tariq Tess Tilda
    Toby Trudy Ulla Uma Valerie Vikram Vincent Viola Walter Wanda Wendy Wilma Winston Xavier Yara Yasmin Yusuf Zara""",
    "Abigail Barnaby Cosima Dexter Elvira Fergus Gemma Hamish Ingrid Jerome Katya Lionel Monique Norbert Ottilie Percy",
    "Adele Benedict Clementine Dominic Eugenia Floyd Gwendolyn Humphrey Isolde Jarvis Kirsten Leopold Marguerite "
    "Nathaniel Octavia Prudence "
    "Quincy Rosamund Sheldon Tabitha Ulrich Veronica Wallace Yolanda Zachary",
)
"""Given names."""

TOWNS = Pool(
    (
        *CITIES,
        *("Aarhus", "Bergen", "Bologna", "Bordeaux", "Bremen", "Brno", "Cork", "Cusco", "Dallas", "Denver", "Dover", "Essen", "Galway"),
        *("Genoa", "Ghent", "Goa", "Graz", "Haifa", "Houston", "Innsbruck", "Izmir", "Kassel", "Kobe", "Krakow", "Kyoto", "Lagos"),
        *("Leipzig", "Lille", "Linz", "Liverpool", "Malaga", "Manchester", "Marseille", "Miami", "Montreal", "Nagoya", "Nice", "Odense"),
        *("Palermo", "Perth", "Phoenix", "Pisa", "Portland", "Recife", "Rotterdam", "Salzburg", "Santos", "Shanghai", "Split", "Tampere"),
        *("Trieste", "Turin", "Turku", "Utrecht", "Valencia", "Vancouver", "Verona", "Winnipeg", "York", "Zagora"),
    ),
    ("Antwerp", "Coimbra", "Dundee", "Freiburg", "Lausanne", "Nantes", "Poznan", "Toledo", "Uppsala", "Yokohama"),
    (
        *("Aberdeen", "Baltimore", "Cordoba", "Dresden", "Eindhoven", "Florence", "Granada", "Halifax", "Inverness", "Jakobstad"),
        *("Kingsbridge", "Louisville", "Melbourne", "Nuremberg", "Ostrava", "Plymouth", "Quimper", "Ravenna", "Stuttgart", "Trondheim"),
    ),
)
"""Cities where people live, travel and ask for the weather."""


def _plain_words() -> tuple[str, ...]:
    texts = [sentence for sentences in (*TOPICS.values(), *TIPS.values()) for sentence in sentences]
    words = {word.strip(".,;:!?\"'()") for text in texts for word in text.split()}
    return tuple(sorted(word for word in words if 3 <= len(word) <= 9 and word.isascii() and word.isalpha() and word.islower()))


LETTER_WORDS = _pool(
    (*WORDS, *_plain_words()),
    """acorn actor alarm album alley angel ankle apron arena arrow badge bagel barrel basin basket beard belt bench berry blanket blossom
    board bottle bowl branch brass brick broom brush bubble bucket buckle bundle button cabin cable cactus camera canal canyon card cargo
    carpet cart cedar cellar chain chalk cheek cherry chest chimney circus clay cliff cloak clover coast cobweb coin collar comet compass
    copper coral cottage couch crane crate crayon crown crumb crystal curtain cushion dagger dairy desert dinner donkey dough drawer dust
    elbow ember engine fabric factory feather fence ferry fiddle field finger flag flame flask fleet flour flute fold fountain frame fruit
    funnel gate gear giant glacier glass globe glue grain gravel guest gutter hammock handle harbour harvest hedge helmet hinge horn hotel
    jacket jar jewel jigsaw jug juice kennel kite ladder lake lane laundry lawn leather lemon lever lizard lobby locker magnet mansion
    marble mask meadow medal melody mill mint mitten monk moss motor mountain muffin museum napkin needle noodle oar oat olive orchard oven
    owl paddle palace panel parade parcel park pasture path peach pearl pebble pepper petal picnic pigeon pillar pirate pitcher plate
    plough pocket pony porch portrait pottery powder prince puddle pulley puppet puzzle quarry quilt radio raft rail ribbon ridge roof
    rope rug saddle sail salad sauce sausage scale school scooter screw shadow shell shelf shield shop shore shovel signal sketch sled
    sleeve slipper smoke soap sofa soup spark spice spring stable stage stamp station statue steam stool storm stove straw stream street
    string suitcase sweater swing sword syrup tailor teapot temple tent theatre thread throne ticket tile timber toast torch towel tractor
    trail tray treasure trunk tunnel turkey umbrella vase vest village vinegar wagon waist wall wallet wave wax well whistle willow
    window wing wolf wool wreath yard yarn zebra""",
    "anchor ballroom cottonwood dolphinet emery fiddler grotto hazelnut inkwell jasmine keyhole lighthouse mushroom "
    "nutmeg oyster parrotlet "
    "quiver raven sapling thistle utensil velvet walnut yogurt",
    "antelope bonnet carousel dungeon eclipse flannel gazelle haystack igloo javelin kernel lantern mosaic nightfall "
    "otterskin pelican quartz "
    "rosemary sandal trolley unicorn vanilla whisker yonder zipper biscotti cradle drizzle falcon gondola hornet ivory "
    "jumper kiosk lobster "
    "magpie nozzle opal pretzel ranch stencil trampoline vortex walrus",
)
"""Words to spell, reverse and sort."""

ITEMS = _pool(
    (*CATEGORIES["fruits"][:9], *CATEGORIES["clothes"], *CATEGORIES["tools"][:7], *CATEGORIES["instruments"]),
    "lamp chair table mirror pencil notebook kettle basket blanket bottle carpet clock cushion ladder painting pillow ring rope sofa stool "
    "teapot towel umbrella vase watch bicycle camera helmet kite tent suitcase wallet bucket brush candle",
    "bracelet corkscrew doormat lantern placemat backpack",
    "armchair blender chessboard duvet earring flashlight goblet harmonica keyboard mattress necklace photograph raincoat saucepan tripod "
    "wardrobe",
)
"""Things that one buys, loses and counts; their plural takes an s."""

PASTIMES = Pool(
    (
        *HOBBIES,
        "pottery",
        "archery",
        "skating",
        "climbing",
        "juggling",
        "yoga",
        "boxing",
        "surfing",
        "camping",
        "writing poems",
        "magic tricks",
    ),
    ("bowling", "birdwatching", "card games"),
    ("origami", "snorkelling", "stargazing", "calligraphy", "badminton", "beekeeping"),
)
DISHES = Pool(
    (*FOODS, "stew", "tacos", "sushi", "porridge", "omelette", "dumplings", "sausages", "mushrooms", "lentils", "waffles", "bean soup"),
    ("risotto", "falafel", "gingerbread"),
    ("lasagne", "ratatouille", "paella", "meatballs", "cheesecake", "goulash"),
)
PETS_NAMED = Pool(
    (
        *PET_NAMES,
        "Max",
        "Simba",
        "Oreo",
        "Snowy",
        "Tiger",
        "Fluffy",
        "Patch",
        "Rocky",
        "Honey",
        "Poppy",
        "Lucky",
        "Socks",
        "Zorro",
        "Chester",
    ),
    ("Marmalade", "Bandit", "Pebbles"),
    ("Pumpernickel", "Sparky", "Whiskey", "Caramel", "Domino", "Bonnie"),
)
PROFESSIONS = Pool(
    (
        *CATEGORIES["jobs"],
        *(
            "tailor",
            "miller",
            "dentist",
            "lawyer",
            "judge",
            "dancer",
            "singer",
            "plumber",
            "driver",
            "waiter",
            "butcher",
            "florist",
            "potter",
        ),
        *("chemist", "surgeon", "guard", "clerk", "banker", "editor", "model", "miner", "diver", "coach", "barber", "poet", "tutor", "vet"),
    ),
    ("librarian", "roofer", "midwife", "mechanic"),
    ("astronomer", "beekeeper", "goldsmith", "translator", "locksmith", "geologist", "referee", "photographer"),
)

QUANTITIES = _pool(
    (),
    """height weight length width depth age speed size area volume rating score level value distance capacity power range balance
    rent salary budget profit tax discount fee population density humidity pressure altitude brightness loudness thickness
    strength duration mileage voltage battery_level room_number seat_number page_count stock_level waiting_time delivery_time
    opening_hour closing_hour birth_year colour owner author title address status language shape material brand model_name
    nickname motto phone_number email postcode director teacher captain manager neighbour birthday origin flavour season menu
    schedule timetable route platform gate terminal temperature price location""",
    "radius visitor_count sponsor frequency landlord fare",
    """diameter interest_rate circulation warranty curfew publisher guardian latitude mascot toll viscosity headcount tenure
    architect sheriff dosage""",
)
HOLDERS = _pool(
    (),
    """mountain river lake bridge tower castle museum library school hospital hotel restaurant shop factory farm garden forest
    island village street house flat office room bus train plane ship car book film song album game painting recipe dish drink
    student teacher customer patient player team club company project account order invoice parcel package flight ticket event
    course lesson file folder server printer phone computer camera machine engine battery sensor pump valve tank plant animal dog
    horse stadium theatre concert match bakery pharmacy station harbour warehouse branch department member employee driver tenant""",
    "fjord podcast voucher viaduct regiment greenhouse",
    """vineyard lighthouse monastery satellite windmill festival subscription chalet tournament aquarium reservoir magazine
    locomotive submarine embassy bookshop""",
)
DEEDS = _pool(
    (),
    """open close start stop lock unlock book cancel delete remove create add rename move copy print scan paint clean repair check
    test inspect heat cool fill empty order buy sell rent lend return ship pack deliver send upload download install update
    restart reset feed water plant wash dry polish measure weigh mark tag archive publish approve reject confirm pause resume
    mute hide show call assign invite block report rate review count sort charge""",
    "rinse insulate nominate launch freeze",
    "calibrate evacuate sharpen quarantine subscribe dispatch renovate varnish ventilate auction decorate recycle",
)

_POOLS = (PERSONS, TOWNS, LETTER_WORDS, ITEMS, PASTIMES, DISHES, PETS_NAMED, PROFESSIONS, QUANTITIES, HOLDERS, DEEDS)
HELD_OUT = frozenset(entry.lower() for pool in _POOLS for entry in (*pool.validation, *pool.sealed))
"""What any lexicon keeps for validation or the sealed set, in small letters: no split may invent it, whatever the
lexicon.
"""
