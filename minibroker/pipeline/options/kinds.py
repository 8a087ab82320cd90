"""Kinds of values that only the pipeline has: places of files, settings of their stores, a speed.

The other kinds are those of the whole program, in `minibroker.cli.kinds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.cli.errors import UsageError
from minibroker.cli.kinds import Kind, Many, Pairs, check_topic, is_path, near
from minibroker.pipeline.files.object_stores import known_names

if TYPE_CHECKING:
    from collections.abc import Mapping


class Directory(Kind):
    """A directory of a job: a path, or a URL that Spark knows; see `places`."""

    def is_placed(self, value: str) -> bool:
        """Return whether a value names a directory, and nothing else."""
        return bool(value)


class DirectoryOrTopic(Directory):
    """A directory if there is a `/` in it (or it is `.`), else a topic."""

    def is_placed(self, value: str) -> bool:
        """Return whether a value is the directory of the two."""
        return is_path(value)


class StorageSettings(Pairs):
    """Settings of a store, by the names of Spark, PyIceberg or deltalake."""

    def of_words(self, words: Any) -> dict[str, str]:
        """Return them; Spark's with or without `spark.hadoop.`. Raises UsageError."""
        return self._checked(super().of_words(words))

    def of_python(self, value: Mapping[str, str]) -> dict[str, str]:
        """Return them as `of_words` does."""
        return self._checked(super().of_python(value))

    @staticmethod
    def _checked(settings: Mapping[str, str]) -> dict[str, str]:
        texts = {name.removeprefix("spark.hadoop."): text for name, text in settings.items()}
        for name in texts:
            if name not in (names := known_names()):
                raise UsageError(
                    f"{name} is no setting of an object store here{near(name, names)}: expected "
                    f"one of {', '.join(names)}"
                )
        return texts


def speed_of(text: str) -> float | None:
    """Return a speed such as `1x`, `0.5x` or `60x` as a factor, `max` as None.

    Raises UsageError.
    """
    if text == "max":
        return None
    try:
        factor = float(text.removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not 0 < factor < float("inf"):
        raise UsageError(f"{text!r}: expected 1x, 0.5x, 60x and the like, or max")
    return factor


def topic_or_directory(text: str) -> str:
    """Return a path as it is, and anything else if it can be a topic. Raises UsageError."""
    return text if is_path(text) else check_topic(text)


EXPRESSION: Final = Kind("EXPR")
EXPRESSIONS: Final = Many("EXPR", is_split=False)
DIRECTORY: Final = Directory("DIR", completes="directory")
DIRECTORY_OR_TOPIC: Final = DirectoryOrTopic("TOPIC|DIR", topic_or_directory, completes="directory")
STORAGE: Final = StorageSettings()
