"""Writing so that nothing is lost: under a temporary name, synced, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def check_new(path: Path, *, overwrite: bool) -> None:
    """Refuse to write over what is there, before any work."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no directory {str(path.parent)!r} to write {path.name!r} to")
    if not overwrite and (path.exists() or path.is_symlink()):
        raise FileExistsError(f"{str(path)!r} exists; it is not written over unless you ask for it (overwrite)")


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name only when it is complete and on disk. What was there stays until then."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def sync_directory(directory: Path) -> None:
    """Make a rename last. Some file systems cannot; they have their own ways."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
