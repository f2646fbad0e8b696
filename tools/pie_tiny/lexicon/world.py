"""Countries and cities, with their capitals, continents and languages."""

from __future__ import annotations

from typing import NamedTuple


class Country(NamedTuple):
    """One country; `name` carries its article where English uses one."""

    name: str
    capital: str
    continent: str
    language: str


_ROWS = """
France|Paris|Europe|French
Germany|Berlin|Europe|German
Italy|Rome|Europe|Italian
Spain|Madrid|Europe|Spanish
Portugal|Lisbon|Europe|Portuguese
the United Kingdom|London|Europe|English
England|London|Europe|English
Scotland|Edinburgh|Europe|English
Wales|Cardiff|Europe|English
Ireland|Dublin|Europe|English
the Netherlands|Amsterdam|Europe|Dutch
Belgium|Brussels|Europe|Dutch
Luxembourg|Luxembourg City|Europe|French
Austria|Vienna|Europe|German
Switzerland|Bern|Europe|German
Denmark|Copenhagen|Europe|Danish
Norway|Oslo|Europe|Norwegian
Sweden|Stockholm|Europe|Swedish
Finland|Helsinki|Europe|Finnish
Iceland|Reykjavik|Europe|Icelandic
Poland|Warsaw|Europe|Polish
the Czech Republic|Prague|Europe|Czech
Slovakia|Bratislava|Europe|Slovak
Hungary|Budapest|Europe|Hungarian
Romania|Bucharest|Europe|Romanian
Bulgaria|Sofia|Europe|Bulgarian
Greece|Athens|Europe|Greek
Croatia|Zagreb|Europe|Croatian
Serbia|Belgrade|Europe|Serbian
Slovenia|Ljubljana|Europe|Slovene
Albania|Tirana|Europe|Albanian
Ukraine|Kyiv|Europe|Ukrainian
Estonia|Tallinn|Europe|Estonian
Latvia|Riga|Europe|Latvian
Lithuania|Vilnius|Europe|Lithuanian
Russia|Moscow|Europe|Russian
Malta|Valletta|Europe|Maltese
Turkey|Ankara|Asia|Turkish
Cyprus|Nicosia|Asia|Greek
Japan|Tokyo|Asia|Japanese
China|Beijing|Asia|Chinese
South Korea|Seoul|Asia|Korean
North Korea|Pyongyang|Asia|Korean
India|New Delhi|Asia|Hindi
Pakistan|Islamabad|Asia|Urdu
Bangladesh|Dhaka|Asia|Bengali
Nepal|Kathmandu|Asia|Nepali
Thailand|Bangkok|Asia|Thai
Vietnam|Hanoi|Asia|Vietnamese
Indonesia|Jakarta|Asia|Indonesian
Malaysia|Kuala Lumpur|Asia|Malay
the Philippines|Manila|Asia|Filipino
Mongolia|Ulaanbaatar|Asia|Mongolian
Iran|Tehran|Asia|Persian
Iraq|Baghdad|Asia|Arabic
Israel|Jerusalem|Asia|Hebrew
Jordan|Amman|Asia|Arabic
Lebanon|Beirut|Asia|Arabic
Saudi Arabia|Riyadh|Asia|Arabic
Qatar|Doha|Asia|Arabic
Afghanistan|Kabul|Asia|Dari
Cambodia|Phnom Penh|Asia|Khmer
Laos|Vientiane|Asia|Lao
Georgia|Tbilisi|Asia|Georgian
Armenia|Yerevan|Asia|Armenian
Egypt|Cairo|Africa|Arabic
Morocco|Rabat|Africa|Arabic
Algeria|Algiers|Africa|Arabic
Tunisia|Tunis|Africa|Arabic
Libya|Tripoli|Africa|Arabic
Sudan|Khartoum|Africa|Arabic
Ethiopia|Addis Ababa|Africa|Amharic
Kenya|Nairobi|Africa|Swahili
Uganda|Kampala|Africa|English
Rwanda|Kigali|Africa|Kinyarwanda
Ghana|Accra|Africa|English
Nigeria|Abuja|Africa|English
Senegal|Dakar|Africa|French
Mali|Bamako|Africa|French
Angola|Luanda|Africa|Portuguese
Mozambique|Maputo|Africa|Portuguese
Zambia|Lusaka|Africa|English
Zimbabwe|Harare|Africa|English
Namibia|Windhoek|Africa|English
South Africa|Pretoria|Africa|Zulu
Canada|Ottawa|North America|English
the United States|Washington, D.C.|North America|English
Mexico|Mexico City|North America|Spanish
Cuba|Havana|North America|Spanish
Jamaica|Kingston|North America|English
Panama|Panama City|North America|Spanish
Costa Rica|San Jose|North America|Spanish
Guatemala|Guatemala City|North America|Spanish
Brazil|Brasilia|South America|Portuguese
Argentina|Buenos Aires|South America|Spanish
Chile|Santiago|South America|Spanish
Peru|Lima|South America|Spanish
Colombia|Bogota|South America|Spanish
Venezuela|Caracas|South America|Spanish
Ecuador|Quito|South America|Spanish
Uruguay|Montevideo|South America|Spanish
Paraguay|Asuncion|South America|Spanish
Bolivia|Sucre|South America|Spanish
Australia|Canberra|Oceania|English
New Zealand|Wellington|Oceania|English
Fiji|Suva|Oceania|English
"""

COUNTRIES: tuple[Country, ...] = tuple(Country(*line.split("|")) for line in _ROWS.strip().splitlines())

CITIES: tuple[str, ...] = (
    *dict.fromkeys(c.capital for c in COUNTRIES if "," not in c.capital),
    *("Hamburg", "Munich", "Lyon", "Milan", "Naples", "Barcelona", "Seville", "Porto"),
    *("Geneva", "Zurich", "Oxford", "Bristol", "Leeds", "Glasgow", "Boston", "Chicago"),
    *("New York", "San Francisco", "Seattle", "Toronto", "Sydney", "Osaka", "Mumbai"),
)
