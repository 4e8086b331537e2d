"""Loops over bytes that are written once: numba compiles them, or the interpreter runs them where numba is missing.

What a loop reads lies somewhere in `memory_at(base)`: compiled, everything from the address `base` on; interpreted,
the bytes that are `base`. Nothing here checks where it reads: that is the loops' own work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from srm_spark.kafka.loop_cache import cache_folder

_F = TypeVar("_F", bound=Callable[..., Any])

try:
    import numba
    from numba import njit
    from numba import types as numba_types
    from numba.core.caching import UserProvidedCacheLocator
    from numba.extending import intrinsic, overload, register_jitable

    types: Any = numba_types  # partly annotated, and wrongly
    _carray: Any = numba.__dict__["carray"]
    _config: Any = numba.config  # its names are made when it is imported
    missing: str | None = None
    """Why numba cannot be used; None where it can."""

    class LoopLocator(UserProvidedCacheLocator):
        """Where numba keeps a loop: in a folder whose name says all of which it is made.

        numba's own ones add the path of the package: what a packed environment brings would be compiled anew by each
        worker of each executor, for half a minute.
        """

        @classmethod
        def get_suitable_cache_subpath(cls, _: str) -> str:
            return ""

        def get_source_stamp(self) -> str:
            return ""
except ImportError as error:
    types, missing = None, str(error)


def shared(function: _F) -> _F:
    """A function that loops call, compiled together with them."""
    if types is not None:
        register_jitable(inline="never")(function)
    return function


def compiled(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Machine code that runs without the interpreter's lock, kept on disk where there is a folder to keep it in."""

    def compile_(function: Callable[..., Any]) -> Any:
        try:
            with _kept():
                return njit(signature, nogil=True, cache=True)(function)
        except RuntimeError:  # there is no folder to keep it in
            return njit(signature, nogil=True)(function)

    return compile_


@contextmanager
def _kept() -> Iterator[None]:
    """Let numba keep machine code in a folder that is named by all of which it is made.

    By itself it knows a function by its own file alone, and would go on with code that was made of older helpers and
    constants, of another file or another version of this package.
    """
    before = _config.CACHE_DIR, _config.CACHE_LOCATOR_CLASSES
    folder = cache_folder(before[0])
    if folder is not None:
        _config.CACHE_DIR, _config.CACHE_LOCATOR_CLASSES = str(folder), f"{__name__}.{LoopLocator.__name__}"
    try:
        yield
    finally:
        _config.CACHE_DIR, _config.CACHE_LOCATOR_CLASSES = before


def memory_at(base: Any) -> Any:
    """What a loop reads from."""
    return base


def move(out: Any, to: Any, memory: Any, at: Any, count: Any) -> None:
    """Copy `count` bytes."""
    out[to : to + count] = memory[at : at + count]


if types is not None:
    _ALL = 2**62
    """Bytes behind an address, more than there are."""
    _copy = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))

    @intrinsic
    def _pointer(_: Any, address: Any) -> Any:
        def generate(__: Any, builder: Any, ___: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], byte.as_pointer())

        import llvmlite.ir  # noqa: PLC0415 - brought by numba, which may be missing

        byte = llvmlite.ir.IntType(8)
        return types.CPointer(types.uint8)(address), generate

    _at: Any = _pointer

    @overload(memory_at)
    def _memory_at(base: Any) -> Any:  # noqa: ARG001 - numba compares names
        def all_behind(base: Any) -> Any:
            return _carray(_at(base), _ALL)

        return all_behind

    @overload(move)
    def _move(out: Any, to: Any, memory: Any, at: Any, count: Any) -> Any:  # noqa: ARG001 - numba compares names
        def copy(out: Any, to: Any, memory: Any, at: Any, count: Any) -> Any:
            _copy(out.ctypes.data + to, memory.ctypes.data + at, count)

        return copy
