"""HTML and SVG from Python functions: every text is escaped unless `element` itself made it."""

import html
import json
from collections.abc import Iterable, Sequence
from typing import Final

#: Letters of one text that are shown; of a longer one its length is said.
LONGEST: Final = 1_500
#: Letters of a name in a heading or a sentence.
LONGEST_NAME: Final = 160
#: Elements without content.
VOID: Final = ("meta", "rect", "circle", "path")


class Markup(str):
    """A text that is HTML already; only this module makes it."""

    __slots__ = ()


Child = str | None | Iterable["Child"]


def readable(text: str, longest: int = LONGEST) -> str:
    """The text with what cannot be seen escaped as in JSON: control characters, halves of pairs, marks of direction.

    Of a long text the beginning and the number of its letters.
    """
    cut = text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in cut)


def escaped(child: Child) -> str:
    """A child of an element as HTML: what is no `Markup` is made readable and escaped; None is nothing."""
    if child is None or isinstance(child, Markup):
        return child or ""
    if isinstance(child, str):
        return html.escape(readable(child))
    return "".join(map(escaped, child))


def element(tag: str, *children: Child, **attributes: str | float | None) -> Markup:
    """An element; of attributes a final underscore is dropped, others become hyphens, and those that are None go."""
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escaped(value if isinstance(value, str) else f"{value:.6g}")}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in VOID and not children:
        return Markup(f"<{tag}{named}>" if tag == "meta" else f"<{tag}{named}/>")
    return Markup(f"<{tag}{named}>{escaped(children)}</{tag}>")


def join(*children: Child) -> Markup:
    """Several pieces as one."""
    return Markup(escaped(children))


def own(text: str, longest: int = LONGEST) -> Markup:
    """A text of the user's, which may be of any script and direction, kept apart from the sentence around it."""
    return element("bdi", Markup(html.escape(readable(text, longest))))


def name(text: str) -> Markup:
    """As `own`, of something with a name, in a heading or a sentence."""
    return own(text, LONGEST_NAME)


def table(head: Sequence[Child], rows: Sequence[Sequence[Child]], *, caption: str, class_: str | None = None) -> Markup:
    """A table whose first row and first column are header cells."""
    top = element("thead", element("tr", (element("th", cell, scope="col") for cell in head))) if head else None
    body = (element("tr", element("th", row[0], scope="row"), (element("td", c) for c in row[1:])) for row in rows)
    return element("table", element("caption", caption), top, element("tbody", body), class_=class_)
