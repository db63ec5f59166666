"""How much memory a fit needs, against what the machine has."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .methods import Method


def machine_memory() -> int | None:
    """Bytes this process may use: the machine's, or its control group's if that is less. None: unknown."""
    sizes = []
    with suppress(AttributeError, ValueError, OSError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no such file, or "max"
            sizes.append(int(Path(limit).read_text()))
    return min(sizes, default=None)


def free_memory() -> int | None:
    """Bytes that can be had without swapping, as far as the system tells."""
    has = machine_memory()
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                available = 1024 * int(line.split()[1])
                return available if has is None else min(has, available)
    return has


def require_memory(x: NDArray[Any], k: int, method: Method, copies: int, later: int = 0) -> None:
    """Refuse before any work what cannot fit: x as it is, copies of it, and what the method keeps, or what is `later`
    kept in its place."""
    n, d = x.shape
    kept = max(method.memory(n, d, k), later)
    require_bytes((1 + copies) * x.nbytes + kept, f"{type(method).__name__} with n={n}, d={d}, k={k}")


def require_bytes(needed: int, what: str) -> None:
    has = machine_memory()
    if has is not None and needed > has:
        raise MemoryError(f"{what} needs {needed / 2**30:.1f} GiB of memory, this machine has {has / 2**30:.1f} GiB")
