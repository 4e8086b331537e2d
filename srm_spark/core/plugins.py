"""Classes of the user's own: a configuration names one as `package.module:Class`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from srm_spark.errors import PluginError


def load_class(key: str, path: str, instead_of_java: str) -> type:
    """The class that `key = path` names. Raises PluginError.

    `instead_of_java` says what to write where the path is a Java class, as files of MirrorMaker 2 have it.
    """
    loaded = _load(key, path, instead_of_java, "Class")
    if not isinstance(loaded, type):
        raise PluginError(key, path, f"is a {type(loaded).__name__}, expected a class", "write package.module:Class")
    return loaded


def load_function(key: str, path: str) -> Callable[..., Any]:
    """The function that `key = path` names. Raises PluginError."""
    loaded = _load(key, path, "write package.module:function", "function")
    if not callable(loaded):
        what = f"is a {type(loaded).__name__}, expected a function"
        raise PluginError(key, path, what, "write package.module:function")
    return loaded


def _load(key: str, path: str, instead_of_java: str, what: str) -> object:
    module, separator, name = path.partition(":")
    if not separator:
        raise PluginError(key, path, "a Java class cannot be loaded here", instead_of_java)
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # importing runs foreign code, which may raise anything
        raise PluginError(
            key,
            path,
            f"cannot be imported: {type(error).__name__}: {error}",
            f"put the package on the driver's Python path and write package.module:{what}",
        ) from error
