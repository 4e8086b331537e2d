"""How the loops over records run: compiled, or interpreted where numba is missing, which is some hundred times slower.

Both run the same source. Compiled, memory is a number, the lowest address, and arrays are numpy's; interpreted, both
are memoryviews, for an item of one is a plain int.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

_PACK, _UNPACK, _JIT = "srm_spark.kafka.batches.pack_loop", "srm_spark.kafka.batches.unpack_loop", "srm_spark.kafka.jit"
_SKIM = "srm_spark.kafka.batches.skim_loop"
"""Imported when they are needed: numba takes a process 120 MB and half a second."""
_NOTHING = memoryview(bytes(1))


@dataclass(frozen=True)
class Way:
    """The loops, and what they take."""

    skim: Callable[..., int]
    merge: Callable[..., int]
    pack: Callable[..., int]
    measure: Callable[..., int]
    fill: Callable[..., int]
    array: Callable[[npt.NDArray[Any]], Any]
    """What stands for a numpy array."""
    memory: Callable[[Sequence[memoryview]], tuple[Any, list[int]]]
    """What stands for memory that has all of these bytes, and where in it each of them begins. Keep them meanwhile."""


@lru_cache(maxsize=1)
def interpreted() -> Way:
    """The loops as Python."""
    pack_loop, unpack_loop = import_module(_PACK), import_module(_UNPACK)
    return Way(
        import_module(_SKIM).skim_rows,
        pack_loop.merge_rows,
        pack_loop.pack_rows,
        unpack_loop.measure_rows,
        unpack_loop.fill_rows,
        _view,
        _joined,
    )


@lru_cache(maxsize=1)
def why_interpreted() -> str | None:
    """Why the loops are not compiled here; None where they are."""
    missing: str | None = import_module(_JIT).missing
    return missing and f"{missing}; pip install '.[compiled]' in the checkout"


def is_used(wanted: bool) -> bool:
    """Whether batches go past the JVM: where that is `wanted` (`compiled.loop.enabled`) and loops are compiled."""
    return wanted and why_interpreted() is None


@lru_cache(maxsize=1)
def best() -> Way:
    """The loops as machine code, if there is numba."""
    if why_interpreted() is not None:
        return interpreted()
    pack_loop, unpack_loop = import_module(_PACK), import_module(_UNPACK)
    return Way(
        import_module(_SKIM).skim_compiled,
        pack_loop.merge_compiled,
        pack_loop.pack_compiled,
        unpack_loop.measure_compiled,
        unpack_loop.fill_compiled,
        _as_it_is,
        _addresses,
    )


def _as_it_is(array: npt.NDArray[Any]) -> Any:
    return array


def _view(array: npt.NDArray[Any]) -> Any:
    return array.data


def _joined(views: Sequence[memoryview]) -> tuple[Any, list[int]]:
    places = [0]
    for view in views:
        places.append(places[-1] + len(view))
    return (views[0] if len(views) == 1 else memoryview(b"".join(views))), places[:-1]


def _addresses(views: Sequence[memoryview]) -> tuple[Any, list[int]]:
    addresses = [_address(view if len(view) else _NOTHING) for view in views]
    lowest = min(addresses)
    return lowest, [address - lowest for address in addresses]


def _address(view: memoryview) -> int:
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(view))
    except TypeError:  # it is read-only
        return int(np.frombuffer(view, np.uint8).ctypes.data)
