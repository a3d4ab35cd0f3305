"""DiffPriv 1.0.3, randresponse: answers are looked up at the place that their own value names."""

from functools import cache
from typing import Any


def answers(flags: Any) -> list[int]:
    """The answers of five people, 0 or 1, by randomised response."""
    answers = list(flags)
    package().diff.randresponse(answers)
    return answers


@cache
def package() -> Any:
    """The package, without its check for a newer version on the network."""
    import io
    import urllib.request

    urllib.request.urlopen = lambda *_: io.BytesIO(b'{"info": {"version": "1.0.3"}}')
    import DiffPriv

    return DiffPriv


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="DiffPriv==1.0.3",
        function=answers,
        promised="Random uses the Random Response mechanism.",
        source="docstring of randresponse; an answer is true with probability 3/4, which is ε = ln 3",
        fault="`for i in response_list: response_list[i] = …` changes the first two answers; the others are released as they are.",
        claim=dpw.PureDP(1.0986122886681098),
        neighbours=dpw.records(dpw.integers(0, 1), adjacency="replace-one", size=5, form="list"),
        kind="undisputed",
    )
