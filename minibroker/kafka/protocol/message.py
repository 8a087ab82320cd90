"""The base class of every generated message and struct: comparison and a printed form."""


def not_carried(message: str, field: str, version: int) -> ValueError:
    """Return the error for a value that is set and has no place in the version being written."""
    return ValueError(f"{message} version {version} cannot carry {field}, but it is set")


def null_not_carried(field: str, version: int) -> ValueError:
    """Return the error for None in a version where the field has no null."""
    return ValueError(f"{field} is None, which version {version} cannot say")


_SECRET = frozenset({"auth_bytes", "hmac", "salted_password"})
"""Names of fields that hold passwords or keys; a printed message may come into a log."""


JsonFields = tuple[tuple[str, str, int, int, bool], ...]
"""Name, type (that of a struct is its class), first and last version, and whether it is tagged."""


class Message:
    """Base class of every generated message and struct: comparison and a printed form only."""

    __slots__: tuple[str, ...] = ()
    JSON_FIELDS: JsonFields = ()
    """The fields of the class, for its JSON."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # fields change

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}=[hidden]" if name in _SECRET else f"{name}={getattr(self, name)!r}"
            for name in self.__slots__
        )
        return f"{type(self).__name__}({fields})"
