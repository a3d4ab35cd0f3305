"""Neighbours differ in their records and in nothing else: all forms, types of columns, and numbers of rows."""

import copy
import datetime as dt
import decimal
import json
import pickle
from itertools import islice, product

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import dpwitness as dpw
from dpwitness.errors import InvalidNeighbours
from dpwitness.mechanisms import server
from dpwitness.neighbours import Pair, copier, input_to_json, relation_from_json, relation_to_json
from dpwitness.neighbours.pair import unlike
from dpwitness.values import value_to_json
from drawn import pair_through_a_file, through_a_file
from running import sampled, scaled, soon

DAYS = [dt.datetime(2020, 1, day) for day in (1, 2, 3, 5)]
WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COLUMNS = {
    **{name: np.array([1, 3, 0, 2], name) for name in (*WHOLE, "float32", "float64", "float16", ">f8", ">i4")},
    "bool": np.array([True, False, True, True]), "object": np.array(["x", "y", "x", "z"], object),
    "mixed": np.array(["x", 1, 2.5, "x"], object),
}  # fmt: skip
LISTS = {
    "texts": ["x", "y", "x", "z"], "long texts": [f"name {k}" * 3 for k in range(4)], "gaps": ["x", None, "y", "x"],
    "whole gaps": [1, None, 2, 3],
}  # fmt: skip
NUMPY = {
    "texts of NumPy": np.array(["x", "yy", "x", "z"]),
    **{f"times {unit}": np.array(DAYS, f"M8[{unit}]") for unit in ("D", "s", "us", "ns")},
}  # fmt: skip
PANDAS = {
    **{unit: pd.Series(DAYS, dtype=f"datetime64[{unit}]") for unit in ("s", "ms", "us", "ns")},
    "zone": pd.Series(pd.to_datetime(DAYS).tz_localize("Europe/Berlin")),
    "UTC": pd.Series(pd.to_datetime(DAYS).tz_localize("UTC")), "no time": pd.Series([*DAYS[:3], None]),
    "timedelta": pd.Series(pd.to_timedelta([1, 2, 3, None], "D")),
    "period": pd.Series(pd.period_range("2020-01", periods=4, freq="M")),
    "interval": pd.Series(pd.interval_range(0, 4)),
    "category": pd.Series(pd.Categorical(["a", "b", "a", "a"], categories=["c", "b", "a"])),
    "ordered": pd.Series(pd.Categorical(["a", None, "b", "a"], categories=["c", "a", "b"], ordered=True)),
    "category of numbers": pd.Series(pd.Categorical([1, 2, 1, 1], categories=[7, 2, 1])),
    "category of times": pd.Series(pd.Categorical(DAYS)),
    **{name: pd.Series([1, None, 2, 3], dtype=name) for name in ("Int8", "Int64", "UInt16", "Float32", "Float64")},
    "boolean": pd.Series([True, None, False, True], dtype="boolean"),
    "string": pd.Series(["x", None, "y", "x"], dtype="string[python]"), "str": pd.Series(["x", None, "y", "x"]),
    "missing": pd.Series([1.5, np.nan, 2.5, 0.0]),
}  # fmt: skip
INDEXES = {
    "counted": pd.RangeIndex(4), "counted otherwise": pd.RangeIndex(3, 11, 2, name="row"),
}  # fmt: skip
#: Indexes of labels.
LABELS = {
    "whole": pd.Index([7, 3, 9, 4], name="id"), "int16": pd.Index([7, 3, 9, 4], dtype="int16"),
    "float": pd.Index([0.5, 1.5, 2.5, 3.5]), "text": pd.Index(["a", "b", "5", "c"], name="who"),
    "object text": pd.Index(["a", "b", "5", "c"], dtype=object), "mixed": pd.Index(["a", 1, None, 2.5], dtype=object),
    "days": pd.date_range("2020-01-01", periods=4, name="day"),
    "zone": pd.date_range("2020-01-01", periods=4, tz="Europe/Berlin"), "lengths": pd.timedelta_range("1D", periods=4),
    "months": pd.period_range("2020-01", periods=4, freq="M"), "category": pd.CategoricalIndex(["u", "v", "w", "x"]),
    "levels": pd.MultiIndex.from_product([["p", "q"], [1, 2]], names=["a", "b"]),
}  # fmt: skip
SIZES = (0, 1, 2, 1000)
POLARS_TABLE = pl.DataFrame | pl.LazyFrame

SPENT = [decimal.Decimal("1.10"), None, decimal.Decimal(-2), decimal.Decimal("1.10")]
TEXTS = ["x", None, "y", "x"]
BITS = (8, 16, 32, 64)
POLARS = {
    **{
        f"{sign}Int{n}": pl.Series([1, None, 3, 2], dtype=getattr(pl, f"{sign}Int{n}"))
        for sign in ("", "U")
        for n in BITS
    },
    **{kind.__name__: pl.Series([0.25, None, 2.5, 1.0], dtype=kind) for kind in (pl.Float32, pl.Float64)},
    "NaN": pl.Series([0.25, None, float("nan"), 1.0]), "no gaps": pl.Series([3, 1, 2, 2]),
    "Boolean": pl.Series([True, None, False, True]), "String": pl.Series(TEXTS),
    "Categorical": pl.Series(TEXTS, dtype=pl.Categorical),
    "Enum": pl.Series(TEXTS, dtype=pl.Enum(["y", "never", "x"])), "Decimal": pl.Series(SPENT, dtype=pl.Decimal(12, 3)),
    "Binary": pl.Series([b"a", None, b"", b"b"]), "Date": pl.Series([day.date() for day in DAYS]),
    "Time": pl.Series([dt.time(1), None, dt.time(2, 3, 4, 5), dt.time(1)]),
    **{f"Datetime {unit}": pl.Series(DAYS, dtype=pl.Datetime(unit)) for unit in ("ms", "us", "ns")},
    "zone": pl.Series(DAYS, dtype=pl.Datetime("us", "Europe/Berlin")),
    "Duration": pl.Series([dt.timedelta(1), None, dt.timedelta(0), dt.timedelta(0, 1)], dtype=pl.Duration("ms")),
    "List": pl.Series([[1], [], None, [1, None]], dtype=pl.List(pl.Int8)),
    "Struct": pl.Series([{"u": 1, "v": "a"}, {"u": 2, "v": None}, {"u": 1, "v": "a"}, {"u": 3, "v": "b"}]),
}  # fmt: skip
ARROW = {
    **{kind: pa.array([1, None, 3, 2], kind) for kind in WHOLE},
    **{kind: pa.array([0.25, None, 2.5, 1.0], kind) for kind in ("float16", "float32", "float64")},
    "NaN": pa.array([0.25, None, float("nan"), 1.0]), "bool": pa.array([True, None, False, True]),
    **{kind: pa.array(TEXTS, kind) for kind in ("string", "large_string", "string_view")},
    "binary": pa.array([b"a", None, b"", b"b"]), "decimal": pa.array(SPENT, pa.decimal128(12, 3)),
    "date32": pa.array(DAYS, pa.date32()), "date64": pa.array(DAYS, pa.date64()),
    "time32": pa.array([dt.time(1), None, dt.time(2, 3, 4), dt.time(1)], pa.time32("s")),
    "time64": pa.array([1_000, 2_000, None, 1_000]).view(pa.time64("ns")),
    **{f"timestamp {unit}": pa.array(DAYS, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "zone": pa.array(DAYS, pa.timestamp("us", "Europe/Berlin")),
    "duration": pa.array([dt.timedelta(1), None, dt.timedelta(0), dt.timedelta(0, 1)], pa.duration("s")),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 0], "int8"), ["x", "never", "y"], ordered=True),
    "dictionary of numbers": pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0]), pa.array([7, 5], "int16")),
    "list": pa.array([[1], [], None, [1, None]], pa.list_(pa.int8())),
    "struct": pa.array([{"u": 1, "v": "a"}, {"u": 2, "v": None}, {"u": 1, "v": "a"}, {"u": 3, "v": "b"}]),
}  # fmt: skip
TICKS = [1, 1_577_836_800_000_000_001, None, 5_000]  # of nanoseconds: `datetime` holds the last alone
BEYOND_DATETIME = {
    "Time": pl.DataFrame({"t": pl.Series([*TICKS[:1], None]).cast(pl.Time)}),
    "Datetime": pl.DataFrame({"t": pl.Series(TICKS).cast(pl.Datetime("ns", "UTC"))}),
    "far Datetime": pl.DataFrame({"t": pl.Series([2**62, 0, -(2**62), None]).cast(pl.Datetime("us"))}),
    "Duration": pl.LazyFrame({"t": pl.Series(TICKS).cast(pl.Duration("ns"))}),
    "timestamp": pa.table({"t": pa.array(TICKS).view(pa.timestamp("ns", "+01:00"))}),
    "duration": pa.table({"t": pa.array(TICKS).view(pa.duration("ns"))}),
}


def tables(name, library, lazy=False):
    """An example table of a column of this kind and another."""
    if library == "polars":
        made = pl.DataFrame({name: POLARS[name], "n": pl.Series([1, 2, 3, 4], dtype=pl.Int16)})
        return made.lazy() if lazy else made
    return pa.table({name: ARROW[name], "n": pa.array([1, 2, 3, 4], "int16")})


TABLES = [
    *((name, "polars", lazy) for name in POLARS for lazy in (False, True)), *((name, "arrow", False) for name in ARROW),
]  # fmt: skip


def frame(*names, index="counted"):
    """An example frame of columns of these kinds."""
    held = {**COLUMNS, **LISTS, **PANDAS}
    rows = {**INDEXES, **LABELS}[index]
    columns = {
        name: pd.Series(np.asarray(c, c.dtype.newbyteorder("=")) if isinstance(c, np.ndarray) else c, name=name)
        for name, c in ((name, held[name]) for name in names)
    }
    made = pd.DataFrame({name: column.set_axis(rows) for name, column in columns.items()}, index=rows)
    made.columns.name = "fields"
    made.attrs["source"] = ["survey"]
    return made


def dtype_of(dtype):
    categories = getattr(dtype, "categories", None)
    return (repr(dtype), None if categories is None else (repr(categories.dtype), categories.tolist(), dtype.ordered))


def besides(data):
    """All that a dataset is besides its records, written down in full."""
    if isinstance(data, pd.DataFrame):
        index, counted = data.index, isinstance(data.index, pd.RangeIndex)
        return (
            type(data), list(data.columns), repr(data.columns.dtype), data.columns.name, data.attrs,
            [dtype_of(dtype) for dtype in data.dtypes], data.flags.allows_duplicate_labels,
            type(index), dtype_of(index.dtype) if index.nlevels == 1 else None, list(index.names),
            (index.start, index.step) if counted else None, None if index.nlevels > 1 else getattr(index, "freq", None),
        )  # fmt: skip
    if isinstance(data, POLARS_TABLE):
        whole = data.lazy().collect()
        return type(data), [(name, kind, repr(kind)) for name, kind in whole.schema.items()], whole.n_chunks()
    if isinstance(data, pa.Table):
        known = [
            column.chunk(0).dictionary.to_pylist() if pa.types.is_dictionary(column.type) else column.num_chunks
            for column in data.columns
        ]
        fields = [(repr(field), field.type, field.nullable, field.metadata) for field in data.schema]
        return type(data), fields, data.schema.metadata, known
    if isinstance(data, np.ndarray):
        return type(data), data.dtype.str, data.ndim, data.shape[1:], data.flags.writeable
    if isinstance(data, dict):
        return type(data), [(name, besides(column)) for name, column in data.items()]
    if isinstance(data, tuple):
        return tuple, [besides(part) for part in data]
    return type(data)


def order(data):
    """The order in memory of arrays of which it can be told."""
    if isinstance(data, tuple):
        return [order(part) for part in data]
    if isinstance(data, np.ndarray) and data.flags.c_contiguous != data.flags.f_contiguous:
        return "F" if data.flags.f_contiguous else "C"
    return None


def pairs_of(domain, size, form=None, most=3):
    """The first candidates of so many records, and of one more where one is added."""
    for adjacency in ("add-remove", "replace-one"):
        if adjacency == "replace-one" and not size:
            continue
        sizes = (size, size + 1) if adjacency == "add-remove" else (size, size)
        relation = dpw.records(domain, adjacency=adjacency, size=sizes, form=form)
        yield from ((relation, pair) for pair in islice(relation.candidates(), most))


def differences(domain, size, form=None, expected=None, most=3):
    """How many pairs there are, and in how many neighbours differ in more than a record, or are not as expected."""
    found = wrong = 0
    for relation, pair in pairs_of(domain, size, form, most):
        found += 1
        handed = [copier(side)() for side in pair.sides]
        here = [besides(side) for side in handed]
        orders = {repr(order(side)) for side in handed} - {repr(order(np.zeros(0))), repr([None, None])}
        alike = here[0] == here[1] and len(orders) <= 1 and (expected is None or here[0] == expected)
        wrong += not (alike and relation.contains(pair) and rebuilt(relation, pair))
    return found, wrong


def rebuilt(relation, pair):
    """Whether what was read of both sides is what is read of a dataset built of it."""
    for side in pair.sides:
        records = relation._read(side)
        again = relation.layout.build(relation.fields, records)
        if repr(relation._read(again)) != repr(records) or besides(copier(again)()) != besides(copier(side)()):
            return False
    return True


def expected_of(example):
    """What datasets like an example are besides their records."""
    return besides(copier(example)())


def arrays(name, fortran=False):
    """Examples of all forms that hold arrays."""
    column = COLUMNS[name] if name in COLUMNS else NUMPY[name]
    both = np.array([column, column[::-1]]).T
    both = np.asfortranarray(both) if fortran else np.ascontiguousarray(both)
    if column.dtype.kind in "biuf":
        yield column
        yield both
        yield both, column
        yield both, list(column.tolist())
    yield {"a": column, "b": column.tolist()}


@pytest.mark.parametrize("name", BEYOND_DATETIME)
def test_times_that_datetime_cannot_hold_are_refused_as_records(name):
    with pytest.raises(InvalidNeighbours, match=r"column 't' .*: give times in whole microseconds"):
        dpw.like(BEYOND_DATETIME[name])


def through_a_message(data):
    """An input as another interpreter gets it."""
    return server.of_json(json.loads(json.dumps(value_to_json(data))))


WRITTEN = {
    **{name: frame(name).rename_axis(columns=None) for name in (*COLUMNS, *LISTS, *PANDAS)},
    **{f"index: {name}": frame("int8", index=name).rename_axis(columns=None) for name in (*INDEXES, *LABELS)},
    "named columns": frame("int8"),
    "index: ends of months": frame("int8")
    .rename_axis(columns=None)
    .set_axis(pd.date_range("2020-01-31", periods=4, freq="ME", tz="UTC")),
    "index: falling": frame("int8")
    .rename_axis(columns=None)
    .set_axis(pd.timedelta_range("1h", periods=4, freq="-5min")),
    **{f"Polars: {name}": tables(name, "polars") for name in POLARS},
    "Polars: no letters": tables("Enum", "polars").rename({"Enum": ""}),
}
UNWRITABLE = {
    "named columns", "period", "interval", "index: months", "index: levels",
    *(f"Polars: {name}" for name in ("List", "Struct", "Decimal")),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRITTEN)
def test_tables_come_back_from_files_and_messages_as_they_were(kind):
    """With any number of rows: neighbours must not differ in the types of columns."""
    for table in (WRITTEN[kind][:0], WRITTEN[kind][:1], WRITTEN[kind]):
        if kind in UNWRITABLE:
            assert set(input_to_json(table)) == {"object"}
            with pytest.raises(server.Unsendable):
                through_a_message(table)
            continue
        for through in (through_a_file, through_a_message):
            if isinstance(table, pl.DataFrame):
                assert_frame_equal(through(table), table)
                assert_frame_equal(pickle.loads(pickle.dumps(through(table.lazy()))), table.lazy())
                continue
            table.attrs.clear()
            pd.testing.assert_frame_equal(through(table), table, check_freq=False)
            for name in table:
                pd.testing.assert_series_equal(through(table[name]), table[name], check_freq=False)


def content(data):
    """The values of a table, times as the whole numbers that they are."""
    if isinstance(data, pa.Table):
        columns = [
            column.cast(f"int{column.type.bit_width}") if pa.types.is_temporal(column.type) else column
            for column in data.columns
        ]
        return [repr(column.to_pylist()) for column in columns]
    held = data.lazy().collect().get_columns()
    return [repr((column.to_physical() if column.dtype.is_temporal() else column).to_list()) for column in held]


DOMAINS = {
    "numbers": dpw.numbers(0, 1), "missing numbers": dpw.numbers(0, 1, missing=True, clipped=True),
    "integers": dpw.integers(0, 9), "missing integers": dpw.integers(0, 9, missing=True),
    "integers that are clipped": dpw.integers(0, 9, clipped=True), "texts": dpw.text(5),
    "missing texts": dpw.text(5, missing=True), "categories": dpw.categories("a", "b", other=True),
    "missing categories": dpw.categories("a", "b", missing=True), "whole categories": dpw.categories(1, 2, other=True),
    "missing whole categories": dpw.categories(1, 2, missing=True),
    "missing numbers of a few": dpw.categories(0.5, 1.5, missing=True), "flags": dpw.flags(),
    "missing flags": dpw.flags(missing=True),
}  # fmt: skip


def forms_of(domain):
    """Each form that such records may have, with the domain of a record."""
    for given_as, forms in (
        (domain, ("array", "list")),
        ((domain, domain), ("array", "list")),
        ({"c": domain, "d": dpw.numbers(0, 1)}, ("dataframe", "polars", "polars-lazy", "arrow", "columns", "list")),
        (((dpw.numbers(0, 1), dpw.integers(0, 5)), domain), ("xy", "list")),
    ):
        for form in forms:
            try:
                dpw.records(given_as, form=form)
            except InvalidNeighbours:  # no such form
                continue
            yield given_as, form


@pytest.mark.parametrize("name", DOMAINS)
def test_without_an_example_the_types_follow_from_the_domain(name):
    for domain, form in forms_of(DOMAINS[name]):
        pairs = [one for size in SIZES[:-1] for one in pairs_of(domain, size, form, most=4)]
        assert all(relation.contains(pair) and rebuilt(relation, pair) for relation, pair in pairs)
        seen = {repr(besides(copier(side)())) for _, pair in pairs for side in pair.sides}
        assert len(seen) == 1, (form, seen)


def examples_of(part):
    """The examples of a part of the grid, each with what datasets like it must be; or domains, with their forms."""
    if part == "domains":
        return [(domain, form, None) for name in DOMAINS for domain, form in forms_of(DOMAINS[name])]
    if part == "arrays":
        kinds = product((*COLUMNS, *NUMPY), (False, True))
        found = [example for name, fortran in kinds for example in arrays(name, fortran)]
    elif part in ("polars", "arrow"):
        found = [tables(*one) for one in TABLES if one[1] == part]
        return [(dpw.like(example), None, besides(example)) for example in found]
    else:
        found = [frame(name, index=part) for name in (*COLUMNS, *LISTS, *PANDAS)]
    return [(dpw.like(example), None, expected_of(example)) for example in found]


@pytest.mark.parametrize(
    ("part", "every"),
    [
        ("arrays", 1), ("polars", 4), ("arrow", 4),
        *(pytest.param(part, 1 if scaled(200) >= 200 else 4, marks=pytest.mark.campaign)
          for part in sampled(["domains", "arrays", "polars", "arrow", *INDEXES], 4)),
    ],
)  # fmt: skip
def test_datasets_like_an_example_differ_in_their_records_alone(part, every, request):
    sizes = SIZES if request.node.get_closest_marker("campaign") else SIZES[:-1]
    for (domain, form, expected), size in product(examples_of(part)[::every], sizes):
        found, different = differences(domain, size, form, expected, most=2 if size < SIZES[-1] else 1)
        assert found, (domain, size)
        assert not different, (domain, size)


@pytest.mark.parametrize(("name", "library", "lazy"), TABLES)
def test_given_tables_stand_in_every_pair_and_are_copied_sent_and_saved_as_they_are(name, library, lazy):
    """Of an Enum without rows, Polars reads a Categorical back from its own files."""
    example = tables(name, library, lazy)
    for adjacency in ("add-remove", "replace-one"):
        relation = dpw.records(dpw.like(example), adjacency=adjacency)
        data = relation.take(example)
        for pair in islice(relation.candidates(data), 4):
            assert any(content(side) == content(example) for side in pair.sides)
            assert relation.contains(pair, data)
    for side in next(iter(dpw.records(dpw.like(example), size=(0, 1)).candidates())).sides:
        for again in (pickle.loads(cloudpickle.dumps(side)), copy.deepcopy(side)):
            assert (besides(again), content(again)) == (besides(side), content(side))
    relation = dpw.records(dpw.like(example))
    pair = next(iter(relation.candidates()))
    if library == "arrow" or name in ("List", "Struct", "Decimal"):  # which no file holds
        assert all("object" in input_to_json(side) for side in pair.sides)
        return
    for again, side in zip(pair_through_a_file(pair).sides, pair.sides, strict=True):
        assert (besides(again), content(again)) == (besides(side), content(side))
    described = relation_to_json(relation)
    if described is not None:
        assert relation_from_json(json.loads(json.dumps(described))).layout == relation.layout


def test_neighbours_that_differ_in_more_than_a_record_are_not_adjacent():
    example = frame("int8", "category", index="counted otherwise")
    relation = dpw.records(dpw.like(example), size=(1, 4))
    pair = next(iter(relation.candidates()))
    data, neighbour = sorted(pair.sides, key=len)
    assert relation.contains(Pair(data, neighbour))
    other_type = neighbour.astype({"int8": "int16"})
    other_categories = neighbour.assign(category=neighbour["category"].cat.reorder_categories(["a", "b", "c"]))
    for changed in (
        other_type, other_categories, neighbour.reset_index(drop=True), neighbour.rename_axis("date"),
        neighbour.set_axis([*map(str, neighbour.index)]), neighbour.rename_axis(None, axis=1),
    ):  # fmt: skip
        assert not relation.contains(Pair(data, changed))


@pytest.mark.parametrize("index", LABELS)
def test_an_index_of_labels_is_refused_in_one_line(index):
    labelled = frame("int8", index=index)
    relation = dpw.records(dpw.like(frame("int8")))
    for do in (lambda: dpw.like(labelled), lambda: dpw.records(base=labelled), lambda: relation.take(labelled)):
        with pytest.raises(InvalidNeighbours, match=r"must count its rows: give reset_index\(drop=True\)$"):
            do()
    assert not relation.contains(Pair(labelled, labelled[1:]))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_given_data_stand_in_every_pair_as_they_are(adjacency):
    example = frame("int8", "float32", "category", "Int8", "zone", "string", index="counted otherwise")
    relation = dpw.records(dpw.like(example), adjacency=adjacency)
    data = relation.take(example)
    for pair in islice(relation.candidates(data), 12):
        (same,) = [side for side in pair.sides if side.equals(example)]
        assert besides(same) == besides(example)
        assert relation.contains(pair, data)


def test_a_type_that_cannot_hold_the_domain_gives_way_to_one_that_can_on_both_sides():
    base = pd.DataFrame({"a": np.array([1, 2], "int8"), "b": np.array([1, 2], "int8")})
    relation = dpw.records({"a": dpw.integers(0, 1000), "b": dpw.integers(0, 100)}, base=base)
    for pair in relation.candidates():
        assert [list(map(str, side.dtypes)) for side in pair.sides] == [["int64", "int8"]] * 2
    single = dpw.records(dpw.like(pd.DataFrame({"c": pd.Categorical(["a", "a"]), "x": [1, 2]})))
    assert len({tuple(map(str, side.dtypes)) for pair in single.candidates() for side in pair.sides}) == 1
    missing = dpw.records(dpw.numbers(0, 1, missing=True), base=np.array([0, 1]))
    assert {side.dtype.name for pair in missing.candidates() for side in pair.sides} == {"float64"}


def test_narrow_floats_are_rounded_into_the_domain():
    relation = dpw.records(dpw.numbers(0, 0.1), base=np.array([0.05], "float32"), size=(3, 4))
    ends = {float(value) for pair in relation.candidates() for side in pair.sides for value in side}
    assert max(ends) == np.nextafter(np.float32(0.1), np.float32(0))  # float32(0.1) is above 0.1
    assert all(side.dtype == np.float32 for pair in relation.candidates() for side in pair.sides)


def test_what_a_file_calls_a_dataset_without_records_is_checked():
    described = relation_to_json(dpw.records(dpw.like(np.array([1, 2], "int8"))))
    assert described["empty"] == {"array": [], "dtype": "int8"}
    for damaged in ({"array": [1], "dtype": "int8"}, {"array": [], "dtype": "U3"}, [], 3, {"object": "x"}):
        with pytest.raises(InvalidNeighbours, match=r"empty=.* must be a dataset of .* without records"):
            relation_from_json({**described, "empty": damaged})


PEOPLE = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=30)})


def checked(mechanism, relation, **settings):
    return dpw.check(mechanism, claim=1.0, neighbours=relation, seed=1, runs=100, search_runs=64, workers=1, **settings)


@pytest.mark.parametrize("errors", soon(["outcome", "raise"], 1))
def test_a_correct_function_of_times_is_not_accused_of_the_empty_dataset(errors):
    """One record changes the count by 1, and the noise has scale 1."""

    def recent(rng, people):
        return int((people["when"].dt.year >= 2020).sum()) + rng.laplace(0, 1)

    relation = dpw.records(dpw.like(PEOPLE), size=(0, 1))
    assert isinstance(checked(recent, relation, errors=errors), dpw.NotRefuted)


@pytest.mark.campaign
def test_a_function_that_writes_to_its_input_is_not_accused_at_the_border():
    def clips_in_place(rng, data):
        data.clip(0, 1, out=data)
        return float(data.sum()) + rng.laplace(0, 1)

    relation = dpw.records(dpw.numbers(0, 1), base=np.full(8_192, 0.5))
    assert isinstance(checked(clips_in_place, relation, errors="outcome"), dpw.NotRefuted)


X = pd.DataFrame({"x": [1, 2]})
XY = pd.DataFrame({"x": [1], "y": [2]})


@pytest.mark.parametrize(
    ("data", "neighbour", "named"),
    [
        (np.array([1, 2]), np.array([1.0, 3.0]), "int64 and float64"),
        (X, pd.DataFrame({"x": [1, None]}), "column 'x' (int64 and float64)"),
        (X, pd.DataFrame({"x": [1]}, index=["a"]), "index (RangeIndex of int64"),
        (X, pd.DataFrame({"y": [1]}), "['x'] and ['y']"),
        (XY, XY[["y", "x"]], "['x', 'y'] and ['y', 'x']"),
        (X.rename_axis(columns="a"), X[:1], "['a'] and [None]"),
        (X, np.array([[1]]), "DataFrame and ndarray"),
        ([1, 2], [1, 2.5], None),
        (1, 2.5, None),
        (np.array([1, 2]), np.array([1]), None),
    ],
)
def test_a_given_pair_stays_as_it_is_and_what_else_differs_is_named(data, neighbour, named):
    (pair,) = dpw.pairs((data, neighbour)).given
    assert unlike(pair) is None if named is None else named in unlike(pair)
    if named is not None:
        assert [besides(copier(side)()) for side in pair.sides] == [besides(side) for side in (data, neighbour)]


def test_a_verdict_on_inputs_of_other_types_says_so():
    pair = (X, pd.DataFrame({"x": [1, None]}))
    verdict = checked(lambda rng, data: np.size(data) + rng.laplace(0, 10), [pair])
    assert any("column 'x' (int64 and float64)" in note for note in verdict.notes)


@pytest.mark.parametrize("form", ["dataframe", "polars", "polars-lazy", "arrow"])
def test_a_column_may_have_a_name_without_letters(form):
    """Polars gives a column in a list another name."""
    relation = dpw.records({"": dpw.flags()}, form=form)
    pair = next(iter(relation.candidates()))
    assert list(dpw.like(pair.data).fields.names) == [""]
    assert form == "arrow" or relation.contains(pair_through_a_file(pair))
