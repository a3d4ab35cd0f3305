"""Machine code kept on disk that runs without numba, whose import and caches are more than half of a second process.

An image is the object file of one function for arguments of certain types. The process that compiles it takes numba's
LLVM code (`inspect_llvm`), leaves out what speaks to the interpreter, and has llvmlite write it; each process links it
with llvmlite and calls it with the arguments as numba lays them out (an array is seven or more words). What guards it:
only known versions of numba have images; the layout is compared with the arguments that numba's code declares; a
function that needs more than libc's and libm's functions has no image, and an image is named by all that it depends on.
Where there is none, and where a run raises, numba runs it. Measured: a second process takes half of the CPU time
(`benchmarks/start.py`).
"""

import ctypes
import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpwitness.machine import COMPILING

#: Versions of numba whose layout of arguments and arrays this file knows: its tests pass with them.
KNOWN: Final = ("0.68.",)
#: Seconds in NumPy from which on compiling pays: it takes about 0.13, of which this process may have no use.
PAYS: Final = 0.05
#: What an image exports.
ENTRY: Final = "dpwitness_entry"
#: What numba's functions return where they raise nothing.
RESULT: Final = 0
#: Entries of arrays, and numbers: the C type of one, and LLVM's.
NUMBERS: Final[dict[str, tuple[Any, str]]] = {
    "|b1": (ctypes.c_uint8, "i8"),
    **{f"{'|' if n == 1 else '<'}{kind}{n}": (c, f"i{8 * n}") for kind, n, c in (
        ("i", 1, ctypes.c_int8), ("i", 2, ctypes.c_int16), ("i", 4, ctypes.c_int32), ("i", 8, ctypes.c_int64),
        ("u", 1, ctypes.c_uint8), ("u", 2, ctypes.c_uint16), ("u", 4, ctypes.c_uint32), ("u", 8, ctypes.c_uint64),
    )},
    "<f4": (ctypes.c_float, "float"),
    "<f8": (ctypes.c_double, "double"),
}  # fmt: skip
PYTHON: Final = {bool: "|b1", int: "<i8", float: "<f8"}
POINTER: Final = (ctypes.c_void_p, "ptr")
WORD: Final = (ctypes.c_int64, "i64")
#: What numba's runtime gives: memory of its layout, which is a count of references, destructor, its argument, data,
#: size, allocator. The arguments of an image count no references (null), so that every one that ends is one that was
#: made here. An array's entries begin at the first multiple of 64 behind that: by `aligned_alloc` of glibc 2.36 an
#: array takes 100 ns instead of 20. A list may grow, so that its entries lie apart; it alone has a destructor. An array
#: in C order takes another shape. For any other this is refused: numba raises then, and runs the same again itself,
#: unless the mechanism catches that.
MEMORY: Final = """
declare ptr @malloc(i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
declare ptr @llvm.ptrmask.p0.i64(ptr, i64)
%memory = type { i64, ptr, ptr, ptr, i64, ptr }
define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %large = icmp ugt i64 %size, 140737488355328
  %unusual = icmp ugt i32 %align, 64
  %refused = or i1 %large, %unusual
  br i1 %refused, label %none, label %some
none:
  ret ptr null
some:
  %room = add i64 %size, 111
  %block = call ptr @malloc(i64 %room)
  %full = icmp eq ptr %block, null
  br i1 %full, label %none, label %made
made:
  %last = getelementptr i8, ptr %block, i64 111
  %data = call ptr @llvm.ptrmask.p0.i64(ptr %last, i64 -64)
  %counted = insertvalue %memory { i64 1, ptr null, ptr null, ptr null, i64 0, ptr null }, ptr %data, 3
  %whole = insertvalue %memory %counted, i64 %size, 4
  store %memory %whole, ptr %block
  ret ptr %block
}
define ptr @NRT_MemInfo_new_varsize_dtor(i64 %size, ptr %destructor) {
  %block = call ptr @malloc(i64 48)
  %full = icmp eq ptr %block, null
  br i1 %full, label %none, label %some
none:
  ret ptr null
some:
  %data = call ptr @malloc(i64 %size)
  %over = icmp eq ptr %data, null
  br i1 %over, label %half, label %made
half:
  call void @free(ptr %block)
  ret ptr null
made:
  %counted = insertvalue %memory { i64 1, ptr null, ptr null, ptr null, i64 0, ptr null }, ptr %destructor, 1
  %placed = insertvalue %memory %counted, ptr %data, 3
  %whole = insertvalue %memory %placed, i64 %size, 4
  store %memory %whole, ptr %block
  ret ptr %block
}
define ptr @NRT_MemInfo_varsize_realloc(ptr %block, i64 %size) {
  %data.place = getelementptr %memory, ptr %block, i32 0, i32 3
  %before = load ptr, ptr %data.place
  %data = call ptr @realloc(ptr %before, i64 %size)
  %full = icmp eq ptr %data, null
  br i1 %full, label %none, label %made
none:
  ret ptr null
made:
  store ptr %data, ptr %data.place
  %size.place = getelementptr %memory, ptr %block, i32 0, i32 4
  store i64 %size, ptr %size.place
  ret ptr %data
}
define void @NRT_MemInfo_call_dtor(ptr %block) {
  %destructor.place = getelementptr %memory, ptr %block, i32 0, i32 1
  %destructor = load ptr, ptr %destructor.place
  %array = icmp eq ptr %destructor, null
  br i1 %array, label %end, label %list
list:
  %data.place = getelementptr %memory, ptr %block, i32 0, i32 3
  %data = load ptr, ptr %data.place
  call void %destructor(ptr %data)
  call void @free(ptr %data)
  br label %end
end:
  call void @free(ptr %block)
  ret void
}
define i32 @numba_attempt_nocopy_reshape(
  i64 %axes, ptr %lengths, ptr %strides, i64 %new.axes, ptr %new.lengths, ptr %new.strides, i64 %size, i32 %never
) {
  br label %axis
axis:
  %k = phi i64 [ %axes, %0 ], [ %j, %look ]
  %step = phi i64 [ %size, %0 ], [ %wider, %look ]
  %done = icmp eq i64 %k, 0
  br i1 %done, label %new.axis, label %look
look:
  %j = add i64 %k, -1
  %length.place = getelementptr i64, ptr %lengths, i64 %j
  %length = load i64, ptr %length.place
  %stride.place = getelementptr i64, ptr %strides, i64 %j
  %stride = load i64, ptr %stride.place
  %one = icmp eq i64 %length, 1
  %dense = icmp eq i64 %stride, %step
  %fine = or i1 %one, %dense
  %wider = mul i64 %step, %length
  br i1 %fine, label %axis, label %no
no:
  ret i32 0
new.axis:
  %m = phi i64 [ %new.axes, %axis ], [ %l, %write ]
  %new.step = phi i64 [ %size, %axis ], [ %new.wider, %write ]
  %all = icmp eq i64 %m, 0
  br i1 %all, label %yes, label %write
write:
  %l = add i64 %m, -1
  %new.stride.place = getelementptr i64, ptr %new.strides, i64 %l
  store i64 %new.step, ptr %new.stride.place
  %new.length.place = getelementptr i64, ptr %new.lengths, i64 %l
  %new.length = load i64, ptr %new.length.place
  %new.wider = mul i64 %new.step, %new.length
  br label %new.axis
yes:
  ret i32 1
}
"""
#: What an image may call besides: functions of libc and libm that keep nothing.
LIBRARY: Final = frozenset((
    "memcpy", "memmove", "memset", "malloc", "realloc", "free", "exp", "exp2", "expm1", "log", "log2", "log10",
    "log1p", "pow", "sqrt", "cbrt", "hypot", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "tgamma", "lgamma", "floor", "ceil", "trunc",
    "round", "rint", "fmod", "ldexp", "frexp", "copysign", "fabs", "fmin", "fmax", "nearbyint",
))  # fmt: skip


#: One thread at a time writes or links an image: of two linkers made at once one would be dropped, with its code.
_linking = threading.RLock()

#: Images that a folder keeps, the last used ones, of 10 to 100 kB each; and seconds for which reading one does not
#: count as using it again.
KEPT: Final = 1_000
USED_AGAIN: Final = 86_400.0


class NoImage(Exception):
    """A function or an argument that numba alone can run."""


#: Flags of an array that tell types apart: its order in memory, whether it is aligned, whether it can be written to.
C_ORDER, F_ORDER, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400


def words_of(arguments: Sequence[Any], words: list[Any], told: int) -> tuple[Any, ...]:
    """Append the words of arguments as numba's functions take them; return what their types follow from.

    `told`: the flags of arrays that count. It stands before every call, 5 µs for three arrays: so no more than is
    needed. Raises `NoImage` for a whole number beyond 64 bits.
    """
    key: list[Any] = []
    for value in arguments:
        kind = type(value)
        if kind is np.ndarray:
            key += (value.dtype, value.ndim, value.flags.num & told)
            words += (None, None, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
            continue
        key.append(kind)
        if kind is tuple:
            key.append(words_of(value, words, told))
        elif kind is np.random.Generator:
            c = value.bit_generator.ctypes
            calls = [ctypes.cast(f, ctypes.c_void_p).value for f in (c.next_uint64, c.next_uint32, c.next_double)]
            words += (None, c.state_address, c.state.value, *calls, 0, None, None)
        elif kind is int and not -(2**63) <= value < 2**63:
            raise NoImage
        else:
            words.append(value.item() if isinstance(value, np.generic) else value)
    return tuple(key)


def types_of(arguments: Sequence[Any], told: int) -> tuple[str, list[tuple[Any, str]]]:
    """Return the types of arguments in a text, as numba tells them apart, and those of their words.

    Raises `NoImage` for what is neither a number, an array of numbers, a generator, nor a tuple of such.
    """
    names: list[str] = []
    types: list[tuple[Any, str]] = []
    for value in arguments:
        kind = type(value)
        if kind is np.ndarray:
            flags = value.flags.num
            if value.dtype.str not in NUMBERS or not flags & ALIGNED:
                raise NoImage
            layout = "C" if flags & C_ORDER else "F" if flags & F_ORDER else "A"
            names.append(f"{value.dtype.str}{value.ndim}{layout}{'r' if told & WRITEABLE & ~flags else ''}")
            types += [POINTER, POINTER, WORD, WORD, POINTER, *[WORD] * (2 * value.ndim)]
        elif kind is tuple:
            inner, more = types_of(value, told)
            names.append(f"({inner})")
            types += more
        elif kind is np.random.Generator:
            names.append("generator")
            types += [POINTER, *[WORD] * 6, POINTER, POINTER]
        else:
            name = value.dtype.str if isinstance(value, np.generic) else PYTHON.get(kind, "")
            if name not in NUMBERS:
                raise NoImage
            names.append(name)
            types.append(NUMBERS[name])
    return " ".join(names), types


class Compiled:
    """A function as machine code: its image where there is one, numba's dispatcher where there is none.

    `make(True)` returns the dispatcher, `make(False)` one that only compiles, and sooner. `key()` names all that the
    function depends on besides the types of its arguments; None where nothing may be kept. Images lie in `folder()`.
    Where not `read_only`, one image does for arrays that can be written to and for those that cannot: the function must
    know. `plain`: the same in NumPy, which runs as long as there is no image and it has taken little time.
    """

    def __init__(
        self,
        make: Callable[[bool], Any],
        key: Callable[[], str] | None,
        folder: Callable[[], Path],
        *,
        read_only: bool,
        plain: Callable[..., object] | None = None,
    ) -> None:
        self._make, self._plain = make, plain
        self._seconds = 0.0  # that `plain` has taken
        self._folder = folder
        self._key = key
        self._read_only = read_only
        self._told = C_ORDER | F_ORDER | ALIGNED | (WRITEABLE if read_only else 0)
        self._images: dict[tuple[Any, ...], Callable[..., int] | None] = {}
        self._absent: set[tuple[Any, ...]] = set()  # from the disk, for these arguments
        self._lock = threading.RLock()
        self._made: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run it; return its whole number. Of a function without one, what is returned means nothing.

        Raises what the function raises, and what numba's compiler does.
        """
        if self._key is None or not _known():
            return self.dispatcher(*arguments)
        words: list[Any] = []
        try:
            key = words_of(arguments, words, self._told)
            image = self._images[key]
        except NoImage:
            image = None
        except KeyError:
            with self._lock:
                if key not in self._images:
                    late = self._plain if self._seconds < PAYS else None
                    image = None if late and key in self._absent else self._image(arguments, make=late is None)
                    if late is not None and image is None:
                        self._absent.add(key)
                        began = time.thread_time()
                        result = late(*arguments)
                        self._seconds += time.thread_time() - began
                        return result
                    self._images[key] = image
                image = self._images[key]
        if image is None:
            return self.dispatcher(*arguments)
        states = [(x.bit_generator, x.bit_generator.state) for x in arguments if type(x) is np.random.Generator]
        result, error = ctypes.c_int64(), ctypes.c_void_p()
        code = image(ctypes.byref(result), ctypes.byref(error), *words)
        if code == RESULT:
            return result.value
        for generator, state in states:  # numba has the exception: it runs the same once more
            generator.state = state
        return self.dispatcher(*arguments)

    @property
    def dispatcher(self) -> Any:
        """What numba made of it."""
        with self._lock:
            if self._made is None:
                self._made = self._make(True)
            return self._made

    def _image(self, arguments: Sequence[object], *, make: bool) -> Callable[..., int] | None:
        """The image, which is made where there is none, if it may be; None where there is none then."""
        try:
            name, types = types_of(arguments, self._told)
        except NoImage:
            return None
        settings = sorted(x for x in os.environ.items() if x[0].startswith("NUMBA_") and x[0] != "NUMBA_CACHE_DIR")
        text = repr((self._key and self._key(), name, settings, _versions(), _host()))
        path = self._folder() / f"_dpwitness_image_{hashlib.sha256(text.encode()).hexdigest()[:24]}.o"
        code = _read(path, text)
        if code is None:
            if not make:
                return None
            code = self._written(path, text, arguments, types)
        try:
            with _linking:
                return _linked(code, [c for c, _ in types]) if code else None
        except RuntimeError:  # what it calls is not there
            return None

    def _written(self, path: Path, text: str, arguments: Sequence[object], types: list[tuple[Any, str]]) -> bytes:
        """Make an image and write it; an empty one where none can be made."""
        import numba

        typeof: Callable[[Any], Any] = numba.typeof
        signature = tuple(typeof(value) for value in arguments)
        if not self._read_only:
            signature = tuple(t.copy(readonly=False) if isinstance(t, numba.types.Array) else t for t in signature)
        dispatcher = self._make(False)
        if not hasattr(dispatcher, "compile"):  # NUMBA_DISABLE_JIT
            return b""
        dispatcher.compile(signature)
        COMPILING.start()
        try:
            with _linking:
                code = _object_file(dispatcher, signature, types)
        except NoImage:
            code = b""
        except RuntimeError:  # LLVM refuses what it wrote itself: the next process tries again
            return b""
        finally:
            COMPILING.stop()
        try:
            partial = path.with_suffix(f".{os.getpid()}.tmp")
            partial.write_bytes(_digest(text, code) + code)
            partial.replace(path)
            _tidy(path.parent)
        except OSError:  # a full disk: the next process makes it again
            pass
        return code


def _digest(text: str, code: bytes) -> bytes:
    """What stands before an image in its file, so that no other image and no part of one is run in its place."""
    return hashlib.sha256(text.encode() + code).digest()


def _read(path: Path, text: str) -> bytes | None:
    """An image that a process has written under that name; None where there is none, or the file is damaged."""
    try:
        found = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):  # a folder that cannot be written to
        if time.time() - path.stat().st_mtime > USED_AGAIN:
            path.touch()
    size = hashlib.sha256().digest_size
    return found[size:] if found[:size] == _digest(text, found[size:]) else None


def _tidy(folder: Path) -> None:
    """Remove the images that were not used for the longest time, where there are too many, and those half written.

    Any process may do so at any time: one that has read an image needs the file no more, another makes it again.
    """
    used: list[tuple[float, Path]] = []
    for path in folder.glob("_dpwitness_image_*"):
        with suppress(FileNotFoundError):  # another process has removed it
            used.append((path.stat().st_mtime, path))
    used.sort(reverse=True)
    last = time.time() - USED_AGAIN
    images = [path for _, path in used if path.suffix == ".o"]
    ended = [path for at, path in used if path.suffix == ".tmp" and at < last]  # with the process that wrote it
    for path in images[KEPT:] + ended:
        path.unlink(missing_ok=True)


def _object_file(dispatcher: Any, signature: tuple[Any, ...], types: list[tuple[Any, str]]) -> bytes:
    """The object file of a compiled function. Raises `NoImage` where it needs more than an image has."""
    binding = _llvm()
    compiled = dispatcher.overloads[signature]
    if str(compiled.signature.return_type) not in ("int64", "none"):
        raise NoImage
    machine = _jit()[0]
    module = binding.parse_assembly(dispatcher.inspect_llvm(signature))
    module.link_in(binding.parse_assembly(MEMORY))
    name = compiled.fndesc.llvm_func_name
    for function in module.functions:
        if function.name == name:
            if [str(argument.type) for argument in function.arguments] != ["ptr", "ptr", *(t for _, t in types)]:
                raise NoImage
            function.name = ENTRY
        elif not function.is_declaration:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    passes = binding.create_new_module_pass_manager()
    if not hasattr(passes, "add_global_dead_code_eliminate_pass"):  # an earlier llvmlite
        raise NoImage
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(0)))
    needed = [function.name for function in module.functions if function.is_declaration]
    variables = [variable for variable in module.global_variables if variable.is_declaration]
    if variables or not all(called in LIBRARY or called.startswith("llvm.") for called in needed):
        raise NoImage
    return bytes(machine.emit_object(module))


def _linked(code: bytes, types: list[Any]) -> Callable[..., int]:
    """An image, ready to be called; without the GIL, as `ctypes` calls. Raises `RuntimeError`."""
    binding = _llvm()
    _, jit, trackers, numbers = _jit()
    library = binding.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(ENTRY)
    tracker = library.link(jit, f"dpwitness_{next(numbers)}")
    trackers.append(tracker)  # the code stays where it is for as long as the process
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *types)(tracker[ENTRY])


def _llvm() -> Any:
    from llvmlite import binding  # type: ignore[import-untyped]  # it has no types

    return binding


@cache
def _jit() -> tuple[Any, Any, list[Any], Iterator[int]]:
    """LLVM's compiler for this processor, its linker, and what holds the code of all images, and numbers for them."""
    binding = _llvm()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()

    def machine() -> Any:
        target = binding.Target.from_default_triple()
        return target.create_target_machine(  # with numba's own choices: position-independent code takes 3 % longer
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten(),
            opt=3,
            reloc="static" if target.name.startswith("x86") else "default",
            codemodel="jitdefault",
            jit=True,
        )

    return machine(), binding.create_lljit_compiler(machine(), suppress_errors=True), [], count()


@cache
def _known() -> bool:
    return version("numba").startswith(KNOWN)


@cache
def _host() -> str:
    """The processor that code is made for."""
    binding = _llvm()
    return f"{binding.get_process_triple()} {binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


@cache
def _versions() -> tuple[str, ...]:
    return (
        sys.version,
        np.__version__,
        version("numba"),
        version("llvmlite"),
        Path(__file__).read_text(encoding="utf-8"),
    )
