"""Which class a property of topics is of: whether its remote topic gets it always, usually or never. Pure.

`config.properties.exclude` or a filter class decides as in MirrorMaker 2: usually or never. Three keys move a property
to another class, and are empty unless somebody does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from srm_spark.core.filter_plugins import CONFIG_PROPERTIES, is_kafkas_own, load_filter
from srm_spark.core.filters import NameFilter

EXCLUDE_KEY = "config.properties.exclude"


class ConfigClass(Enum):
    """When a remote topic gets a property; in this order the keys decide, the first one that names it."""

    NEVER = "never"
    ALWAYS = "always"
    """What is in force on the source topic, its default, too."""
    USUALLY = "usually"
    """What is set on the source topic; its default by `use.defaults.from`."""

    @property
    def key(self) -> str:
        """The key that moves properties to this class."""
        return f"config.properties.{self.value}"


class Classified(NamedTuple):
    """The class of one property, and what decided."""

    config_class: ConfigClass
    key: str
    pattern: str | None = None
    """Of that key; None where no pattern decided."""

    @property
    def reason(self) -> str:
        """Why a property is left out."""
        return f"{self.key} leaves it out" if self.pattern is None else f"{self.key} has {self.pattern}"


@dataclass(frozen=True)
class ConfigClasses:
    """The rules of one flow."""

    exclude: tuple[str, ...] = ()
    filter_class: str = ""
    """`package.module:Class` of a filter of the user's own; empty for the usual one."""
    moved: Mapping[ConfigClass, tuple[str, ...]] = field(default_factory=dict)
    """Class → patterns of the properties that were moved to it."""
    _filter: NameFilter = field(init=False, repr=False, compare=False)
    _moved: tuple[tuple[ConfigClass, NameFilter], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises PluginError and PatternError as `load_filter`."""
        rules = load_filter(CONFIG_PROPERTIES, self.filter_class, (".*",), self.exclude)
        object.__setattr__(self, "_filter", rules)
        moved = tuple((one, NameFilter(self.moved.get(one, ()))) for one in ConfigClass)
        object.__setattr__(self, "_moved", moved)

    def of(self, name: str) -> ConfigClass:
        """The class of a property."""
        return self.classify(name).config_class

    def classify(self, name: str) -> Classified:
        """The class of a property, and what decided."""
        return next(self._by_key(name), None) or self._by_filter(name)

    def _by_key(self, name: str) -> Iterator[Classified]:
        for one, patterns in self._moved:
            if (pattern := patterns.included_by(name)) is not None:
                yield Classified(one, one.key, pattern)

    def _by_filter(self, name: str) -> Classified:
        is_ours = is_kafkas_own(CONFIG_PROPERTIES, self.filter_class)
        pattern = self._filter.excluded_by(name) if is_ours else None
        taken = ConfigClass.USUALLY if self._filter.matches(name) else ConfigClass.NEVER
        return Classified(taken, EXCLUDE_KEY if is_ours else CONFIG_PROPERTIES.key, pattern)
