"""Images do what numba's functions do, and run without numba; where there is none, numba runs."""

import itertools
import os
import subprocess
import sys
import time

import numba
import numpy as np
import pytest

import dpwitness as dpw
from dpwitness import images
from dpwitness.events import counting
from dpwitness.images import ALIGNED, C_ORDER, F_ORDER, WRITEABLE, Compiled, NoImage, types_of, words_of

ALL = C_ORDER | F_ORDER | ALIGNED | WRITEABLE
GENERATOR = np.random.Generator(np.random.SFC64(1))
KEYS = itertools.count()


def everything(rng, flag, whole, small, real, floats, fortran, strided, fixed, nested, out):
    scratch = np.empty(whole)
    for i in range(whole):
        scratch[i] = rng.standard_normal() + rng.random()
    parts = nested[1]
    out[0] = scratch.sum() + floats[1, 2] + fortran[1, 2] + strided[3] + fixed[0] + nested[0] + parts[0] + parts[1]
    out[1] = np.log1p(abs(real)) + np.exp(-abs(real)) + real**1.5
    out[2] = small if flag else -small
    return whole + 1


def arguments(seed=1):
    fixed = np.array([0.25])
    fixed.flags.writeable = False
    grid = np.arange(6.0).reshape(2, 3)
    return (
        np.random.Generator(np.random.SFC64(seed)), True, 3, np.int16(-7), 2.5, grid, np.asfortranarray(grid * 10),
        np.arange(12, dtype=np.uint8)[::3], fixed, (0.5, (np.float32(1.5), 2)), np.zeros(3),
    )  # fmt: skip


def fails(rng, data):
    value = rng.random() + data[0]
    if value > 0:
        raise ValueError("it is positive")
    return 1


def lists(data):
    return len([value for value in data if value > 1])


def growing(data, out):
    """Lists of lists, of which some are dropped, one is sorted, one comes back."""
    kept = [[data[0]]]
    for k in range(len(data)):
        inner = [data[k] * j for j in range(k % 40)]
        if k % 3:
            kept.append(inner)
        else:
            kept[-1] = inner
    joined = [value for inner in kept for value in inner]
    joined.sort()
    joined.pop()
    for k in range(len(out)):
        out[k] = joined[k * 7 % len(joined)]
    return len(joined)


def shapes(data, out):
    square = data[:36].reshape(4, 9)
    out[0] = np.median(square) + square.ravel()[7] + np.cumsum(square)[-1]
    out[1] = square.reshape(2, 1, 18)[1, 0, 3]
    out[4] = square.reshape(1, 36, 1)[0, 5, 0] + np.sort(data)[3]
    return square.reshape(36, 1).shape[1] + len(data[:0].reshape(0, 3))


def of_a_grid(grid, out):
    out[0] = grid.reshape(6)[4]
    return 1


def many_lists(data):
    total = 0
    for _ in range(20_000):
        part = [[data[0]] * 16, [data[0]]]
        part.append(part[0][:9])
        total += len(part[2])
    return total


def text(data, name):
    return len(name) + len(data)


def nothing(data):
    data[0] += 1.0


def doubles(data):
    data[0] *= 2.0


def makes_many(data):
    total = 0.0
    for i in range(100_000):
        part = np.zeros(16)
        part[i % 16] = data[0]
        total += part[0]
    return int(total)


def refuse(callable):
    raise AssertionError("numba was asked for")


def made(function, key):
    """As one process compiles it and as the next one finds it; the latter must not ask for numba."""
    key, folder = f"{key} {next(KEYS)}", lambda: made.folder
    first = Compiled(lambda callable: numba.njit(nogil=True)(function), lambda: key, folder, read_only=True)
    return first, Compiled(refuse, lambda: key, folder, read_only=True)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path):
    made.folder = tmp_path


@pytest.mark.campaign
def test_an_image_does_what_numba_does():
    first, second = made(everything, "everything")
    results = []
    for function in (first, first.dispatcher, second):
        values = arguments()
        results.append((function(*values), values[-1].tolist(), values[0].random()))
    assert results[0] == results[1] == results[2]


def test_what_raises_is_run_by_numba_from_the_same_state():
    first, second = made(fails, "fails")
    with pytest.raises(ValueError, match="it is positive"):
        first(np.random.Generator(np.random.SFC64(1)), np.array([1.0]))
    assert list(made.folder.glob("*.o"))
    second._make = lambda callable: first.dispatcher
    after = []
    for function in (second, first.dispatcher):
        rng = np.random.Generator(np.random.SFC64(1))
        with pytest.raises(ValueError, match="it is positive"):
            function(rng, np.array([1.0]))
        after.append(rng.random())
    assert after[0] == after[1]
    assert second(np.random.Generator(np.random.SFC64(1)), np.array([-9.0])) == 1


@pytest.mark.parametrize("function", [growing, shapes])
def test_lists_and_other_shapes_need_no_numba_in_a_second_process(function):
    first, second = made(function, "runtime")
    results = []
    for one in (first, first.dispatcher, second, function):
        data, out = np.sqrt(np.arange(500.0)), np.zeros(100)
        results.append((one(data, out), out.tolist()))
    assert all(result == results[0] for result in results)


def test_a_list_is_as_long_as_it_is():
    first, second = made(lists, "lists")
    assert first(np.array([3, 1])) == second(np.array([3, 1])) == 1


def test_a_shape_that_an_image_cannot_give_is_asked_of_numba():
    first, second = made(of_a_grid, "grid")
    second._make = lambda callable: first.dispatcher
    for one in (first, second):
        with pytest.raises(NotImplementedError, match="incompatible shape"):  # numba's own limit
            one(np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.zeros(1))


def test_what_has_no_image_runs_by_numba():
    first, _ = made(text, "none")
    values = np.array([3, 1]), "ab"
    assert first(*values) == text(*values)
    assert {path.stat().st_size for path in made.folder.iterdir()} <= {32}  # a digest of nothing


@pytest.mark.parametrize("damage", ["empty", "cut short", "zeros", "of another function"])
def test_a_damaged_image_is_made_anew(damage, capfd):
    first, second = made(nothing, "nothing")
    first(np.zeros(1))
    (path,) = made.folder.glob("*.o")
    whole = path.read_bytes()
    other, _ = made(doubles, "doubles")
    other(np.zeros(1))
    (foreign,) = set(made.folder.glob("*.o")) - {path}
    path.write_bytes(
        {"empty": b"", "cut short": whole[:200], "zeros": bytes(len(whole))}.get(damage, foreign.read_bytes())
    )
    make, second._make = second._make, first._make
    data = np.zeros(1)
    second(data)
    assert data[0] == 1.0
    third = Compiled(make, second._key, second._folder, read_only=True)
    third(data)  # numba is not asked for again
    assert data[0] == 2.0
    assert capfd.readouterr() == ("", "")


def test_a_folder_keeps_the_images_that_were_used_last(monkeypatch):
    monkeypatch.setattr(images, "KEPT", 3)
    now, image = time.time(), "_dpwitness_image_"
    hours = {f"{image}1.o": 1, f"{image}2.o": 2, f"{image}3.o": 3, f"{image}4.7.tmp": 1, f"{image}5.7.tmp": 48}
    for name, age in {**hours, "another.o": 99}.items():
        (made.folder / name).write_bytes(b"")
        os.utime(made.folder / name, (now - 3_600 * age,) * 2)
    first, second = made(nothing, "nothing")
    first(np.zeros(1))
    (own,) = {path.name for path in made.folder.glob("*.o")} - {*hours, "another.o"}
    left = {path.name for path in made.folder.iterdir()}
    assert left == {own, f"{image}1.o", f"{image}2.o", f"{image}4.7.tmp", "another.o"}
    # One that is read counts as used, so that the next one that is made takes another's place.
    os.utime(made.folder / own, (now - 3_600 * 48,) * 2)
    second(np.zeros(1))
    made(doubles, "doubles")[0](np.zeros(1))
    assert own in {path.name for path in made.folder.iterdir()}


THREADS = """
import sys, threading, time
from pathlib import Path
import numpy as np
from dpwitness import images
from dpwitness.events import counting

binding, count = images._llvm(), 8
build = binding.create_lljit_compiler
binding.create_lljit_compiler = lambda *given, **named: (time.sleep(0.05), build(*given, **named))[1]
functions = [images.Compiled(None, lambda k=k: f"thread {k}", lambda: Path(sys.argv[1]), read_only=True)
             for k in range(count)]
threads = [threading.Thread(target=function, args=(np.zeros(1),)) for function in functions]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(images._jit()[2]) == count, "the code of some images is held by nothing"
"""


@pytest.mark.campaign
def test_threads_that_link_their_first_images_at_once_share_one_linker():
    for k in range(8):
        Compiled(lambda _: numba.njit(nothing), lambda k=k: f"thread {k}", lambda: made.folder, read_only=True)(
            np.zeros(1)
        )
    subprocess.run([sys.executable, "-c", THREADS, str(made.folder)], check=True)


def test_what_llvm_refuses_numba_runs_and_nothing_is_kept(monkeypatch):
    def refuse(*given):
        raise RuntimeError("LLVM")

    monkeypatch.setattr(images, "_object_file", refuse)
    first, _ = made(nothing, "refused")
    data = np.zeros(1)
    first(data)
    assert data[0] == 1.0
    assert not list(made.folder.iterdir())


def test_another_layout_of_arguments_than_numbas_makes_no_image():
    function = numba.njit(nothing)
    function(np.zeros(1))
    (signature,) = function.signatures
    with pytest.raises(NoImage):
        images._object_file(function, signature, types_of((np.zeros((1, 1)),), ALL)[1])


@pytest.mark.campaign
@pytest.mark.parametrize(("function", "result"), [(makes_many, 100_000 // 16), (many_lists, 20_000 * 9)])
def test_what_a_run_takes_is_given_back(function, result):
    """Of 100,000 blocks of 128 bytes, 20 times, a leak would be a quarter of a GB."""
    first, second = made(function, "many")
    first(np.ones(1))
    before = _resident()
    for _ in range(20):
        assert second(np.ones(1)) == result
    assert _resident() - before < 50e6


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("value", [2**63, "text", None, [1.0], np.array(["a"]), np.float16(1), np.zeros(1, ">f8")])
def test_what_an_image_cannot_take_is_numbas(value):
    def described():
        words_of((value,), [], ALL)
        types_of((value,), ALL)

    with pytest.raises(NoImage):
        described()


def test_types_that_numba_tells_apart_have_names_of_their_own():
    fixed = np.zeros(2)
    fixed.flags.writeable = False
    values = [
        True, 1, 1.0, np.int32(1), np.uint8(1), np.float32(1), (1, 1.0), (1, (1.0,)), (1,), GENERATOR, fixed,
        np.zeros(2), np.zeros(2, int), np.zeros((2, 2)), np.asfortranarray(np.zeros((2, 2))), np.zeros(4)[::2],
    ]  # fmt: skip
    names = [types_of((value,), ALL)[0] for value in values]
    assert len(set(names)) == len({numba.typeof(value) for value in values}) == len(values)
    assert len({words_of((value,), [], ALL) for value in values}) == len(values)
    assert types_of((fixed,), ALL & ~WRITEABLE) == types_of((np.zeros(2),), ALL & ~WRITEABLE)


CHECK = "import sys, dpwitness as dpw; dpw.check('isvt3', epsilon=0.7, seed=1, workers=1)"
COMMAND = "import sys; from dpwitness.cli import main; main('check isvt3 --epsilon 0.7 --seed 1 --workers 1'.split())"


@pytest.mark.campaign
@pytest.mark.parametrize("check", [CHECK, COMMAND], ids=["function", "command"])
def test_a_second_process_needs_neither_numba_nor_scipy(check):
    dpw.check("isvt3", epsilon=0.7, seed=1, workers=1)
    loaded = "; assert not {'numba', 'scipy'} & set(sys.modules), 'loaded'"
    subprocess.run([sys.executable, "-c", check + loaded], check=True)


def test_a_version_of_numba_that_is_not_known_has_no_images(monkeypatch, tmp_path):
    function = Compiled(lambda callable: numba.njit(lists), lambda: "key", lambda: tmp_path, read_only=False)
    monkeypatch.setattr(images, "_known", lambda: False)
    assert function(np.arange(4.0)) == 2
    assert not list(tmp_path.iterdir())


KERNEL = np.array([0.0, -0.0, 1.5, np.nan, np.inf])


@pytest.mark.parametrize("width", [0, 1, 3])
@pytest.mark.parametrize("members", [1, 40])
def test_what_numpy_does_until_compiling_pays_is_what_the_kernel_does(width, members):
    rng = np.random.default_rng(width + members)
    rows, others = KERNEL[rng.integers(0, 5, (500, width))], KERNEL[rng.integers(0, 5, (members, width))]
    others = np.array(list({row.tobytes(): row for row in others + 0.0}.values()))  # they differ
    hits, tables = np.empty((2, 500), np.bool_), np.full((2, 256), -1, np.int64)
    for k in range(len(others)):
        counting._rows_equal(rows, others, k, hits[0])
        counting.rows_equal.dispatcher(rows, others, k, hits[1])
        assert np.array_equal(*hits)
    counting._fill_table(others, tables[0])
    counting.fill_table.dispatcher(others, tables[1])
    assert np.array_equal(*tables)
    found = np.empty((2, 500), np.int64)
    counting._places_in_set(rows, others, tables[0], found[0])
    counting.places_in_set.dispatcher(rows, others, tables[0], found[1])
    assert np.array_equal(*found)
    assert found.max() >= 0


@pytest.mark.parametrize("room", [3, 8, 400])
def test_outcomes_are_numbered_by_numpy_as_by_the_kernel_whichever_comes_next(room):
    """They go on from the same table, full or not."""
    rng = np.random.default_rng(room)
    batches = [KERNEL[rng.integers(0, 5, (200, width))] for width in (1, 2, 3)]  # other widths are other outcomes
    batches += [rng.normal(size=(90, 2)), *[KERNEL[rng.integers(0, 5, (200, 2))] for _ in range(2)]]
    plain, kernel = counting._outcome_codes, counting.outcome_codes.dispatcher
    results = []
    for functions in ((plain, plain), (kernel, kernel), (plain, kernel), (kernel, plain)):
        hashes, numbers = np.zeros(1024, np.uint64), np.full(1024, -1, np.int64)
        first, distinct, seen = np.zeros(room, np.int64), 0, []
        for rows, function in zip(batches, functions * 3, strict=True):
            codes = np.empty(len(rows), np.int64)
            found = function(rows, hashes, numbers, codes, first, distinct)
            seen.append((int(found), first.tolist(), codes.tolist() if found >= 0 else None))
            if found < 0:  # it is not gone on with
                break
            distinct = found
        results.append((seen, *((hashes.tolist(), numbers.tolist()) if found >= 0 else ())))
    assert all(result == results[0] for result in results)
    assert (results[0][0][-1][0] < 0) == (room < 400)


def test_scores_are_added_up_by_numpy_as_by_the_kernel():
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.normal(size=(300, 3)), KERNEL[rng.integers(0, 5, (200, 3))]])
    edges = [np.sort(rng.normal(size=n)) for n in (0, 5, 200)]
    starts = np.cumsum([0] + [len(part) for part in edges])
    weights, scores = rng.normal(size=starts[-1] + 6), np.empty((2, 500))
    for add, own in zip((counting._additive_score, counting.additive_score.dispatcher), scores, strict=True):
        add(rows, np.array([2, 0, 1]), starts, np.concatenate(edges), weights, own)
    assert scores[0].tolist() == scores[1].tolist()
    assert len(set(scores[0].tolist())) > 100


@pytest.mark.parametrize("edges", [[], [0.0], [-np.inf, -1.0, 0.0, 0.5, 1.5, np.inf], np.linspace(-1, 1, 150)])
def test_cells_between_edges_are_those_that_numpy_finds(edges):
    edges, values = np.array(edges, float), np.append(KERNEL, np.linspace(-2, 2, 41))
    table = np.stack([values, values], axis=1)  # whose columns do not lie in one piece
    expected = np.where(np.isnan(values), 99, np.searchsorted(edges, values, side="right"))
    for column in (values, table[:, 1]):
        cells = np.empty((2, len(values)), np.int64)
        counting._fill_cells(column, edges, 99, cells[0])
        counting.fill_cells.dispatcher(column, edges, 99, cells[1])
        assert cells.tolist() == [expected.tolist()] * 2
        assert counting.cells_between(edges, column, 99).tolist() == expected.tolist()


def test_members_of_one_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(counting, "_words", lambda rows: np.zeros(len(rows), np.uint64))
    found = np.empty(3, np.int64)
    counting._places_in_set(np.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [3.0]]), np.zeros(1, np.int64), found)
    assert found.tolist() == [0, -1, 1]


def test_a_kernel_is_compiled_once_numpy_has_taken_long(monkeypatch, tmp_path):
    done, kept = [], []
    monkeypatch.setattr(images.Compiled, "_written", lambda self, *given: kept.append(given) or b"")
    made = numba.njit(nothing)
    function = Compiled(lambda _: made, lambda: "key", lambda: tmp_path, read_only=False, plain=done.append)
    function(np.zeros(3))
    function(np.ones(3))
    assert len(done) == 2
    assert not kept
    function._seconds = images.PAYS
    function(np.zeros(3))
    assert len(done) == 2
    assert len(kept) == 1
