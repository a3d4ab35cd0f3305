"""Where machine code is kept on disk: only where nobody else can put any, since what lies there is executed."""

import atexit
import os
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """Where driver modules are kept: $DPWITNESS_CACHE_DIR, else the user's cache folder, else `private_folder`.

    What lies there is executed. So a folder is used only if it is the user's own and no one else may write to it or
    put another in its place; numba's own setting NUMBA_CACHE_DIR, where given, must be such a folder too.
    """
    given = os.environ.get("DPWITNESS_CACHE_DIR")
    folder = Path(given) if given else user_cache_path("dpwitness", appauthor=False)
    if not numbas_folder_is_ours():
        return private_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if only_ours(folder) and os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass  # a read-only home: compile anew in each process rather than refuse to work
    return private_folder()


def numbas_folder_is_ours() -> bool:
    """Whether numba's setting NUMBA_CACHE_DIR, where given, is a folder that nobody else can write to."""
    import numba  # 0.4 s; who asks for the folder compiles

    folder = numba.config.CACHE_DIR  # type: ignore[attr-defined]  # set at run time
    return not folder or (Path(folder).is_dir() and only_ours(Path(folder)))


def only_ours(folder: Path) -> bool:
    """Whether a folder is the user's own, and nobody but the user and root can change it or what leads to it."""
    if not hasattr(os, "getuid"):
        return True  # access lists instead of owners and modes: a user's folders are the user's
    own = os.getuid()
    inner = folder.resolve()
    status = inner.stat()
    if status.st_uid != own or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    for outer in inner.parents:
        status = outer.stat()
        shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in (own, 0) or shared:
            return False
    return True


@cache
def private_folder() -> Path:
    """A folder for this process alone, removed at its end."""
    folder = tempfile.mkdtemp(prefix="dpwitness-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
