"""Writing so that nothing is lost: under a temporary name, synced, then renamed."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def check_new(path: Path, *, overwrite: bool) -> None:
    """Refuse what cannot be written, or is there, before any work."""
    if not path.parent.is_dir():
        raise NotADirectoryError(f"there is no directory {str(path.parent)!r} to write {path.name!r} to")
    if not overwrite and (path.exists() or path.is_symlink()):
        raise FileExistsError(f"{str(path)!r} exists; it is not written over unless you ask for it (overwrite)")
    with tempfile.TemporaryFile(dir=path.parent):  # an OSError tells why not
        pass


def check_not_input(path: Path, *inputs: Path | None) -> None:
    """Never write over what is read."""
    for given in inputs:
        if given is not None and path.exists() and path.samefile(given):
            raise FileExistsError(f"{str(path)!r} is the input {str(given)!r}; it is never written over")


def temporary(path: Path, ending: str = "part") -> Path:
    """A name beside it that nobody else has, not even after a crash or on another machine."""
    return path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex[:12]}.{ending}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write what takes this name only when it is complete and on disk. What was there stays till then."""
    partial = temporary(path)
    try:
        yield partial
        sync(partial)
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    sync_directory(path.parent)


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """`replacing`, opened for bytes."""
    with replacing(path) as partial, partial.open("wb") as file:
        yield file


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(directory: Path) -> None:
    """Make a rename last. Some file systems cannot; they have their own ways."""
    with suppress(OSError):
        sync(directory)
