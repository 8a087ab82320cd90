"""`meta.properties`: whose log directory this is. Written at the first start, compared at every
other.

    #
    #Sat Nov 21 01:12:06 UTC 2026
    broker.id=0
    version=0
    cluster.id=vPeOCWypqUOSepEvx0cbog

Java's properties format; the order of the keys has no meaning. A directory of another broker or of
another cluster must not be served: its partitions are somebody else's.

Source: Kafka MetaProperties, MetaPropertiesEnsemble, PropertiesUtils; FORMAT.md section 7.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.files import Files
from minibroker.kafka.errors import CorruptionError, StorageError
from minibroker.kafka.java_formats.properties import parse_properties

_DAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MS_A_DAY = 86_400_000


class MetaProperties(NamedTuple):
    """The contents of the file; any key may be absent and is None then."""

    broker_id: int | None
    cluster_id: str | None
    directory_id: str | None = None


def _civil_date(days: int) -> tuple[int, int, int]:
    """Days since 1970-01-01 → (year, month, day), proleptic Gregorian.

    By arithmetic, because importing `datetime` costs the start of the broker more than this line is
    worth. The era is 400 years, counted from a 1st of March so that leap days come last.
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def java_date(now_ms: int) -> str:
    """Milliseconds since the epoch → the form of java.util.Date, in UTC."""
    days, rest_ms = divmod(now_ms, _MS_A_DAY)
    year, month, day = _civil_date(days)
    seconds = rest_ms // 1000
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{_DAYS[days % 7]} {_MONTHS[month - 1]} {day:02d} {clock} UTC {year}"


def encode_properties(properties: MetaProperties, now_ms: int) -> bytes:
    """Return the file's bytes (ISO 8859-1, as Java writes properties), version 0: ZooKeeper
    mode.
    """
    lines = ["#", f"#{java_date(now_ms)}"]
    if properties.broker_id is not None:
        lines.append(f"broker.id={properties.broker_id}")
    if properties.directory_id is not None:
        lines.append(f"directory.id={properties.directory_id}")
    lines.append("version=0")
    if properties.cluster_id is not None:
        lines.append(f"cluster.id={properties.cluster_id}")
    lines.append("")
    return "\n".join(lines).encode("latin-1")


def decode_properties(content: bytes, path: str) -> MetaProperties:
    """Return the contents of a file. Raises CorruptionError where they are not Java properties, or
    version or broker id are not numbers Kafka would accept.
    """
    try:
        values = parse_properties(content.decode("latin-1"))
    except ValueError as error:
        raise CorruptionError(f"{path}: {error}") from error
    version = values.get("version", "0")
    if version not in ("0", "1"):
        raise CorruptionError(f"{path}: version {version!r}, expected 0 or 1")
    broker = values.get("broker.id" if version == "0" else "node.id")
    try:
        broker_id = int(broker) if broker is not None else None
    except ValueError as error:
        raise CorruptionError(f"{path}: broker.id {broker!r} is not a number") from error
    return MetaProperties(broker_id, values.get("cluster.id"), values.get("directory.id"))


def read_properties(files: Files, directory: str) -> MetaProperties | None:
    """Return the directory's file, None where there is none. Raises CorruptionError, OSError."""
    path = f"{directory}/{names.META_PROPERTIES}"
    try:
        content = files.read_all(path)
    except FileNotFoundError:
        return None
    return decode_properties(content, path)


def stored_broker_id(files: Files, directories: Iterable[str]) -> int | None:
    """Return the broker id in the first of these directories that has one, None where none has.
    A directory that cannot be read is left out: the start says what is wrong with it.
    """
    for directory in directories:
        with suppress(CorruptionError, OSError):
            found = read_properties(files, directory)
            if found is not None and found.broker_id is not None:
                return found.broker_id
    return None


def write_properties(files: Files, directory: str, properties: MetaProperties, now_ms: int) -> None:
    """Replace the directory's file atomically and durably. Raises OSError."""
    path = f"{directory}/{names.META_PROPERTIES}"
    files.write_atomically(path, encode_properties(properties, now_ms))


def check_properties(
    found: MetaProperties, *, broker_id: int, cluster_id: str | None, directory: str
) -> None:
    """Raises StorageError, one sentence, where the directory is another broker's or cluster's."""
    if cluster_id is not None and found.cluster_id is not None and found.cluster_id != cluster_id:
        raise StorageError(
            f"the data directory {directory} belongs to cluster {found.cluster_id}, but this "
            f"broker is in cluster {cluster_id}: use the metadata it was written with, or another "
            "--data-dir"
        )
    if found.broker_id is not None and found.broker_id != broker_id:
        raise StorageError(
            f"the data directory {directory} belongs to broker.id {found.broker_id}, but broker.id "
            f"is configured as {broker_id}: set broker.id={found.broker_id}, or use another "
            "--data-dir"
        )
