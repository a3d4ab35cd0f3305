"""`dpwitness.dataclass` makes what the standard library's decorator makes."""

import copy
import dataclasses
import inspect
import pickle
import sys
import typing
from dataclasses import FrozenInstanceError, field, fields

import pytest

from dpwitness import dataclass as ours


class Plain:
    """Two fields."""

    base: int
    names: tuple[str, ...] = ()

    def both(self):
        return self.base, self.names


class Rich(Plain):
    """Fields of every kind."""

    amount: float = 0.5
    hidden: str = field(default="h", repr=False)
    free: dict = field(default_factory=dict, compare=False)
    built: int = field(default=3, init=False)

    def __post_init__(self):
        object.__setattr__(self, "built", self.built + self.base)


class OwnMethods:
    """Methods of its own."""

    base: int

    def __repr__(self):
        return "own"

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 7


def classes(decorator, **options):
    """The three classes, made anew with the decorator; `Rich` inherits the made `Plain`."""
    plain = decorator(frozen=True, **options)(type("Plain", (), copy_of(Plain)))
    rich = decorator(frozen=True, **options)(type("Rich", (plain,), copy_of(Rich)))
    return plain, rich, decorator(frozen=True, **options)(type("OwnMethods", (), copy_of(OwnMethods)))


def copy_of(cls):
    return {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}


@ours.dataclass(frozen=True, slots=True)
class Pickled:
    value: int
    later: list = field(default_factory=list, init=False, compare=False)


OPTIONS = [
    {"slots": slots, "eq": eq, "repr": shown, "kw_only": kw_only}
    for slots in (False, True)
    for eq in (False, True)
    for shown in (False, True)
    for kw_only in (False, True)
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_as_the_standard_library_makes_them(options):
    for mine, theirs in zip(classes(ours.dataclass, **options), classes(dataclasses.dataclass, **options), strict=True):
        assert inspect.signature(mine) == inspect.signature(theirs)
        assert [one.name for one in fields(mine)] == [one.name for one in fields(theirs)]
        assert mine.__match_args__ == theirs.__match_args__
        values = [{"base": 1}, {"base": 1, "names": ("a",)}, {"base": 1, "free": {"a": 1}}, {"base": 2, "hidden": "x"}]
        values = [v for v in values if v.keys() <= inspect.signature(mine).parameters.keys()]
        made, expected = [mine(**v) for v in values], [theirs(**v) for v in values]
        assert [one == other for one in made for other in made] == [
            one == other for one in expected for other in expected
        ]
        if options["repr"]:
            assert [*map(repr, made)] == [*map(repr, expected)]
        if options["eq"]:
            assert [*map(hash, made)] == [*map(hash, expected)]
        assert made[0] != theirs(base=1) or "own" in repr(made[0])
        assert [dataclasses.asdict(one) for one in made] == [dataclasses.asdict(one) for one in expected]
        changed = dataclasses.replace(made[0], base=5)
        assert repr(changed) == repr(dataclasses.replace(expected[0], base=5)) or not options["repr"]
        for change in (lambda one: setattr(one, "base", 2), lambda one: delattr(one, "base")):
            for one in (made[0], expected[0]):
                with pytest.raises(FrozenInstanceError, match="base"):
                    change(one)
        for wrong in ({}, {"base": 1, "unknown": 2}, {"base": 1, "built": 2}):
            for cls in (mine, theirs):
                with pytest.raises(TypeError):
                    cls(**wrong)
        assert copy.copy(made[-1]) == made[-1] or not options["eq"]


@ours.dataclass(frozen=True, slots=True)
class Inherited(Pickled):
    name: str = ""
    others: "tuple[Inherited, ...]" = ()


@ours.dataclass(frozen=True, slots=True)
class Empty:
    """No field."""


@pytest.mark.parametrize("base", [Pickled, Inherited, Empty])
@pytest.mark.parametrize("slots", [False, True])
def test_a_frozen_dataclass_of_the_user_s_inherits_one_of_ours(base, slots):
    @dataclasses.dataclass(frozen=True, slots=slots, kw_only=True)
    class Own(base):
        extra: int = 3

    given = {"value": 1} if base is not Empty else {}
    one = Own(**given, extra=4)
    assert one == Own(**given, extra=4) != Own(**given)
    assert hash(one) == hash(Own(**given, extra=4))
    assert repr(one).endswith("extra=4)")
    assert dataclasses.replace(one, extra=5).extra == copy.deepcopy(one).extra + 1 == 5
    assert base(**given) == base(**given) != one
    with pytest.raises(FrozenInstanceError):
        one.extra = 6
    with pytest.raises(TypeError, match="non-frozen"):
        dataclasses.dataclass(type("Changing", (base,), {}))


def test_it_is_said_what_the_decorator_was_given():
    said = Inherited.__dataclass_params__
    assert all((said.frozen, said.init, said.repr, said.eq))
    assert not any((said.order, said.unsafe_hash))
    assert inspect.getmodule(Inherited.__init__) is sys.modules[__name__]
    assert typing.get_type_hints(Inherited.__init__)["others"] == tuple[Inherited, ...]


def test_an_object_that_holds_itself_has_a_text():
    one = Pickled(1)
    one.later.append(one)
    assert repr(one) == "Pickled(value=1, later=[...])"


def test_a_field_cannot_be_deleted():
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'value'"):
        del Pickled(1).value


def test_an_object_is_sent_to_another_process():
    one = Pickled(3)
    one.later.append(4)
    again = pickle.loads(pickle.dumps(one))
    assert (again, again.later) == (one, [4])


def test_no_method_is_compiled_before_it_is_used(monkeypatch):
    """The point of it: what only stands in a module costs next to nothing."""
    compiled = []
    monkeypatch.setattr(
        dataclasses, "exec", lambda text, *more: compiled.append(text) or exec(text, *more), raising=False
    )

    ours.dataclass(frozen=True, slots=True)(type("Alone", (), copy_of(Plain)))
    assert not [text for text in compiled if "(self" in text]

    def inits():
        return sum("__init__(self" in text for text in compiled)

    plain, rich, _ = classes(ours.dataclass, slots=True)
    assert inits() == 0
    assert rich(1) == rich(1)
    assert inits() == 1
    assert plain(1).both() == (1, ())
    assert plain(2) == plain(2)
    assert inits() == 2


def test_a_class_that_may_change_is_the_standard_library_s():
    @ours.dataclass(slots=True)
    class Counter:
        count: int = 0

    one = Counter()
    one.count += 1
    assert one == Counter(1)
    assert Counter.__hash__ is None
