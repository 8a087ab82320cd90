"""Named tuples that cost little to declare: `typing.NamedTuple` without its work at import.

`typing` compiles each annotation and a constructor for each class: 1.2 million instructions, and a
start declares fifty such classes, most of which it never fills. Here a class costs what any class
does. Its constructor is made when its first tuple is, and is the same from then on. For a checker
of types it is `typing.NamedTuple`. It stands below all rooms. Every module of a start uses it, but
for those that a wheel has compiled (`tests/unit/verbs/serve/test_start.py`).

A module that declares one begins with `from __future__ import annotations`.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

try:  # the reader of a field in C, which `collections` takes from the same place
    from _collections import _tuplegetter as _getter  # type: ignore[import-not-found]
except ImportError:
    from operator import itemgetter

    def _getter(position: int, _doc: str) -> Any:
        return property(itemgetter(position))


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_NAMEDTUPLE: Final[Callable[..., Any]] = collections.namedtuple
"""Untyped: a checker allows it literals alone."""


class _Fields(tuple[Any, ...]):
    """The methods of every named tuple."""

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    _field_defaults: ClassVar[dict[str, Any]] = {}

    def __new__(cls, *values: Any, **fields: Any) -> Self:
        """Make the constructor of the class, and with it the first tuple."""
        owner: Any = next(kind for kind in cls.__mro__ if "_fields" in vars(kind))
        defaults = owner._field_defaults.values()
        like = _NAMEDTUPLE(owner.__name__, owner._fields, defaults=defaults)
        owner.__new__ = staticmethod(like.__new__)
        first: Self = owner.__new__(cls, *values, **fields)
        return first

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Self:
        """Return a tuple of these values. Raises TypeError for another number of them."""
        result = tuple.__new__(cls, values)
        if len(result) != len(cls._fields):
            raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(result)}")
        return result

    def _replace(self, **changes: Any) -> Self:
        """Return a tuple with other values in these fields. Raises ValueError for others."""
        result = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"{type(self).__name__} has no fields {list(changes)}")
        return result

    def _asdict(self) -> dict[str, Any]:
        """Return field → value."""
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        pairs = zip(self._fields, self, strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


class _Declaration(type):
    """Turns the class below it into a tuple of its annotated fields."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]
    ) -> type:  # the class that it returns is of the usual kind
        if not bases:
            return super().__new__(cls, name, bases, namespace)
        if len(bases) > 1:
            raise TypeError(f"{name}: a named tuple has no other base class")
        if "__annotations__" not in namespace:
            raise TypeError(f"{name}: no fields; from __future__ import annotations is missing")
        fields = tuple(namespace["__annotations__"])
        defaults = {field: namespace[field] for field in fields if field in namespace}
        if tuple(defaults) != fields[len(fields) - len(defaults) :]:
            raise TypeError(f"{name}: a field without a default stands behind one with a default")
        for position, field in enumerate(fields):
            namespace[field] = _getter(position, f"Field {position}.")
        own = {"__slots__": (), "__match_args__": fields, "_fields": fields}
        return type(name, (_Fields,), {**namespace, **own, "_field_defaults": defaults})


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414  a name for others
else:

    class NamedTuple(metaclass=_Declaration):
        """The base of a class whose annotations are the fields of a tuple."""
