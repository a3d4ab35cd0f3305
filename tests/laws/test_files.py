import io
import os
import re
import resource
import stat
import threading
from pathlib import Path

import pytest

from dpwitness import files
from dpwitness.errors import InvalidData
from dpwitness.files import check_writable, read_column, read_frame, read_text, typed_column, write_atomically

FULL = Path("/dev/full")


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        (int, [["10", "-7", "0"], ["9007199254740993", "9007199254740992"]]),
        (float, [["10", "1.50", "-0.5"], ["1e-05", "2.5E+10", "3"]]),
        (str, [["02138", "10001"], ["02138", "2138"], ["007"], ["10", "1_0"], ["10", "1e1"], ["+1", "2"], [" 1", "2"],
               ["1", "nan"], ["1", "inf"], ["1e+999", "1"], ["9" * 5_000],
               ["9007199254740993", "9007199254740992", "0.5"]]),  # one float, two people
    ],
)  # fmt: skip
def test_a_column_is_typed_as_a_whole(kind, columns):
    for cells in columns:
        assert typed_column(cells) == list(map(kind, cells))
        assert set(map(type, typed_column(cells))) == {kind}


def test_a_frame_has_its_columns_typed_as_a_whole(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("zip,code,age,height,smokes,name\n02138,1e5,31,1.50,True,Ann\n10001,2e5,,1.8,False,\n")
    frame = read_frame(path)
    assert frame["zip"].tolist() == ["02138", "10001"]
    assert frame["code"].tolist() == ["1e5", "2e5"]
    assert [frame[name].dtype.kind for name in ("age", "height", "smokes")] == ["f", "f", "b"]
    assert frame["age"].isna().tolist() == frame["name"].isna().tolist() == [False, True]
    path.write_text("age,income\n31,5,\n42,6,\n")  # a comma at the end of each line moves no column
    assert read_frame(path).to_dict("list") == {"age": [31, 42], "income": [5, 6]}
    for text in ("age,income\n31,5,7\n42,6,8\n", "age\n0,5\n1,6\n"):  # pandas takes the first column for labels
        path.write_text(text)
        with pytest.raises(InvalidData, match="more values in a line than names"):
            read_frame(path)


@pytest.mark.parametrize(
    ("content", "column", "expected"),
    [
        ("1\n2\n3\n", None, [1, 2, 3]), (f"{2**63 - 1}\n{-(2**63)}\n", None, [2**63 - 1, -(2**63)]),
        ("count\n1\n2.5\n", None, [1.0, 2.5]), ("age,count\n10,4\n11,0\n", None, [4, 0]),
        ("age,count\n10,4\n11,0\n", "age", [10, 11]), ("a;b\n1\n", None, [1]), ("\ufeffvalue\n1\n\n2\n", None, [1, 2]),
        ("a,b\n1,2\n", None, [2]),
    ],
)  # fmt: skip
def test_a_column_is_read_exactly(tmp_path, content, column, expected):
    path = tmp_path / "d.csv"
    path.write_text(content, encoding="utf-8")
    found = read_column(path, column)
    assert found.tolist() == expected
    assert found.dtype.kind == ("i" if all(isinstance(x, int) for x in expected) else "f")


@pytest.mark.parametrize(
    ("content", "column", "named"),
    [
        ("", None, "is empty"), ("count\n", None, "no number below"), ("count\n1\nmany\n", None, "line 3: 'many'"),
        ("count\n1\nnan\n", None, "line 3: 'nan'"), ("a,count\n1,\n", None, "line 2: there is no value"),
        ("a,count\n1\n", "count", "line 2: there is no value"), ("a,b\n1,2\n", "c", "'c'; its columns: a, b"),
        ("1\n2\n", "c", "no header"), ("a,b\n1,2\n1,2,3\n", None, "2 fields in line 3, saw 3"),
        ("name,count\n" + "x" * 200_000 + ",1\n", None, "is not CSV"),
        *((f"count\n1\n{value}\n", None, f"line 3: {value} ") for value in (2**63, -(2**63) - 1, 10**400)),
        *((f"count\n{cell}\n", None, f"line 2: '{re.escape(cell)}'") for cell in ("1_0", "+5", "007", "1e3")),
        *((f"{cell}\n3\n", None, f"line 1: '{re.escape(cell)}'") for cell in ("1_0", "+5", "007", "1e3")),
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_what_is_no_column_of_numbers_is_refused_with_its_line(tmp_path, content, column, named):
    path = tmp_path / "d.csv"
    path.write_text(content)
    with pytest.raises(InvalidData, match=named):
        read_column(path, column)


@pytest.mark.parametrize("mode", [None, 0o600, 0o664, 0o755])
def test_a_new_file_has_the_mode_of_new_files_and_an_old_one_keeps_its_own(tmp_path, mode):
    path = tmp_path / "file"
    if mode is not None:
        path.write_text("a longer old content")
        path.chmod(mode)
        check_writable(path)
    old = os.umask(0o027)
    try:
        write_atomically(path, "new")
    finally:
        os.umask(old)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == (mode or 0o640)


def test_writing_leaves_the_old_file_when_it_fails(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError):
        write_atomically(path, object())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(InvalidData, match=r"cannot write .*: File too large"):  # as a disk that fills up
            write_atomically(path, "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("dangling", [False, True])
def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path, dangling):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder / "target")
    if not dangling:
        (folder / "target").write_text("old")
    check_writable(tmp_path / "link")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (folder / "target").read_text() == "new"
    assert [path.name for path in folder.iterdir()] == ["target"]


def test_a_fifo_stays_and_its_reader_gets_the_content(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    check_writable(path)  # which must not wait for a reader
    found = []
    reader = threading.Thread(target=lambda: found.append(path.read_text()), daemon=True)
    reader.start()
    write_atomically(path, "x" * 100_000)  # more than a pipe holds at a time
    reader.join(timeout=60)
    assert found == ["x" * 100_000]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize(
    ("place", "named"),
    [(".", "folder"), ("new/", "folder"), ("link", "folder"), ("no/such/file", "no/such"), ("file/below", "Not a dir"),
     ("loop", "symbolic links"), ("", "name"), ("a\0b", "name"), ("n" * 300, "too long"), ("/proc/nothing", "No such")],
)  # fmt: skip
def test_what_cannot_be_written_is_refused_alike_before_and_after(tmp_path, monkeypatch, place, named):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("old")
    Path("link").symlink_to(".")
    Path("loop").symlink_to("loop")
    for attempt in (check_writable, lambda path: write_atomically(path, "new")):
        with pytest.raises(InvalidData, match=r"^cannot write") as caught:
            attempt(place)
        assert named in str(caught.value)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "loop"]


def test_a_place_is_checked_and_nothing_is_left(tmp_path):
    for name in ("new", "n" * 250):
        check_writable(tmp_path / name)
        assert list(tmp_path.iterdir()) == []
    write_atomically(tmp_path / ("n" * 250), "new")  # its temporary file needs no longer name


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
@pytest.mark.parametrize("closed", ["file", "folder"])
def test_permissions_are_checked(tmp_path, closed):
    path = tmp_path / "file"
    path.write_text("old")
    (path if closed == "file" else tmp_path).chmod(0o500)
    with pytest.raises(InvalidData, match="Permission denied"):
        check_writable(path)
    tmp_path.chmod(0o700)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_full_device_is_said():
    check_writable(FULL)
    with pytest.raises(InvalidData, match="No space left on device"):
        write_atomically(FULL, "x")
    assert stat.S_ISCHR(FULL.stat().st_mode)


def test_half_of_a_surrogate_pair_is_written_as_json_has_it(tmp_path):
    write_atomically(tmp_path / "file", '"\ud800é"')
    assert (tmp_path / "file").read_text(encoding="utf-8") == '"\\ud800é"'


def test_what_has_no_end_is_not_read_to_the_end(monkeypatch):
    monkeypatch.setattr(files, "MOST_FILE_BYTES", 1000)
    with pytest.raises(InvalidData, match="more than 1,000 bytes"):
        read_text("/dev/zero")


def test_a_name_that_is_none(tmp_path):
    for name in ("a\0b", tmp_path, "n" * 300):
        with pytest.raises(InvalidData, match="cannot read"):
            read_text(name)


def test_a_dash_is_standard_input(monkeypatch):
    def piped(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    piped(b"count\n3\n4\n")
    assert read_column("-").tolist() == [3, 4]
    piped(b"count\n3\nx\n")
    with pytest.raises(InvalidData, match=r"^standard input, line 3: 'x' is not a finite number"):
        read_column("-")
    for stream in (None, io.StringIO("1")):
        monkeypatch.setattr("sys.stdin", stream)
        with pytest.raises(InvalidData, match=r"^cannot read standard input"):
            read_text("-")


def test_lines_end_as_on_any_system_and_empty_ones_count(tmp_path):
    path = tmp_path / "counts.csv"
    for end in ("\n", "\r\n", "\r"):
        path.write_bytes(end.join(["count", "1", "", "x"]).encode())
        with pytest.raises(InvalidData, match="line 4: 'x'"):
            read_column(path)
        path.write_bytes(end.join(["count", "1", "", "2", ""]).encode())
        assert read_column(path).tolist() == [1, 2]
