"""Real data: datasets of records of a domain, one of which is added, removed or replaced."""

from dpwitness.neighbours.datasets.choices import Categories, Text, categories, flags, text
from dpwitness.neighbours.datasets.domain import NOT_IN_DOMAIN, Domain
from dpwitness.neighbours.datasets.enumerated import Examples
from dpwitness.neighbours.datasets.examples import Like, like
from dpwitness.neighbours.datasets.fields import Fields
from dpwitness.neighbours.datasets.making import records
from dpwitness.neighbours.datasets.ranges import Integers, Numbers, integers, numbers
from dpwitness.neighbours.datasets.relation import Records

__all__ = [
    "NOT_IN_DOMAIN",
    "Categories",
    "Domain",
    "Examples",
    "Fields",
    "Integers",
    "Like",
    "Numbers",
    "Records",
    "Text",
    "categories",
    "flags",
    "integers",
    "like",
    "numbers",
    "records",
    "text",
]
