"""The arguments of `check-log` and of `dump-log`.

`check-log` takes directories and a few switches. `dump-log` takes Kafka's flags under Kafka's
names, files without a flag, and `--json`; a flag's value stands behind it or behind `=`. Both are
written by hand, as the rest of the command line is.

Source: Kafka DumpLogSegmentsOptions.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Final

from minibroker.broker.config.options import UsageError
from minibroker.tools.decoders import Decoder, decode_text, field_decoder, fields, known_classes

CHECK_LOG_HELP: Final = """\
minibroker check-log: check a data directory for damage; nothing is changed

  minibroker check-log [FLAG]... DIR...

  --strict     report as broken also what the recovery after a crash would mend
  --deep       uncompress batches and check every record
  --json       one JSON object on each line
  --quiet      no notes, only damage

DIR is a data directory (of minibroker or of Apache Kafka), several of one broker, or the directory
of a partition. The broker should not be running: a file that it is writing looks torn.
Every finding names file and position. Notes are leftovers, and defects that the next start mends.
Exit codes: 0 without damage, 1 with damage, 2 for wrong usage.

  minibroker check-log minibroker-data
  minibroker check-log --deep --json minibroker-data/orders-0
"""


class CheckArguments:
    """Arguments of `check-log`."""

    __slots__ = ("directories", "is_deep", "is_json", "is_quiet", "is_strict")

    def __init__(
        self,
        directories: Sequence[str],
        *,
        is_deep: bool = False,
        is_json: bool = False,
        is_quiet: bool = False,
        is_strict: bool = False,
    ) -> None:
        self.directories = list(directories)
        self.is_deep = is_deep
        self.is_json = is_json
        self.is_quiet = is_quiet
        self.is_strict = is_strict


def parse_check_log(words: Sequence[str]) -> CheckArguments:
    """Parse the arguments behind `check-log`. Raises UsageError."""
    switches = set()
    directories = []
    for word in words:
        if not word.startswith("--"):
            directories.append(word.rstrip("/") or "/")
        elif word in _CHECK_SWITCHES:
            switches.add(word)
        else:
            raise UsageError(f"unknown argument {word!r}")
    if not directories:
        raise UsageError("no directory is given: check-log DIR")
    return CheckArguments(
        directories,
        is_deep="--deep" in switches,
        is_json="--json" in switches,
        is_quiet="--quiet" in switches,
        is_strict="--strict" in switches,
    )


_CHECK_SWITCHES: Final = frozenset({"--deep", "--json", "--quiet", "--strict"})


INT_MAX: Final = 2**31 - 1
_MAX_MESSAGE_SIZE: Final = 5 * 1024 * 1024

DUMP_LOG_HELP: Final = """\
minibroker dump-log: print the contents of segment files, as Kafka's DumpLogSegments does

  minibroker dump-log [FLAG]... FILE...

  --files FILE[,FILE...]        files, as Kafka's tool takes them
  --deep-iteration              each record of a batch, not only the batch
  --print-data-log              keys and values, too
  --skip-record-metadata        keys and values only
  --max-bytes N                 only the first N bytes of a .log
  --key-decoder-class CLASS     decoder of keys: StringDecoder (default), IntegerDecoder,
  --value-decoder-class CLASS     LongDecoder, DefaultDecoder (hexadecimal)
  --offsets-decoder             records of __consumer_offsets
  --transaction-log-decoder     records of __transaction_state
  --cluster-metadata-decoder    records of a KRaft controller's __cluster_metadata
  --remote-log-metadata-decoder records of __remote_log_metadata (tiered storage)
  --share-group-state-decoder   records of __share_group_state
  --index-sanity-check          check whether a broker would accept this index
  --verify-index-only           compare an index with its .log and print no entry
  --max-message-size N          largest batch expected where an index points to (5242880)
  --json                        one JSON object on each line

The name of a file says its kind: .log, .index, .timeindex, .txnindex, .snapshot. An index is
compared with the .log beside it; mismatches are printed at the end, on stderr. Exit codes: 0; 1 if
a file cannot be read, or is so damaged that reading has to stop; 2 for wrong usage.

  minibroker dump-log minibroker-data/orders-0/00000000000000000000.log
  minibroker dump-log --print-data-log minibroker-data/orders-0/*.log | head
  minibroker dump-log --offsets-decoder minibroker-data/__consumer_offsets-7/*.log
"""


class DumpArguments:
    """Arguments of `dump-log`."""

    __slots__ = (
        "decoder",
        "files",
        "is_deep",
        "is_json",
        "max_bytes",
        "max_message_size",
        "prints_data",
        "sanity_only",
        "verify_only",
        "with_metadata",
    )

    def __init__(self) -> None:
        self.files: list[str] = []
        self.decoder: Decoder = fields(decode_text, decode_text)
        self.is_deep = False
        self.is_json = False
        self.prints_data = False
        self.sanity_only = False
        self.verify_only = False
        self.with_metadata = True
        self.max_bytes = INT_MAX
        self.max_message_size = _MAX_MESSAGE_SIZE


def parse_dump_log(words: Sequence[str]) -> DumpArguments:
    """Parse the arguments behind `dump-log`. Raises UsageError."""
    arguments = DumpArguments()
    flags: dict[str, str] = {}
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("--"):
            arguments.files.append(word)
            continue
        flag, equals, value = word.partition("=")
        if flag in _WITH_VALUE:
            flags[flag] = value if equals else _value_of(flag, remaining)
        elif equals or flag not in _DUMP_SWITCHES:
            raise UsageError(f"unknown argument {word!r}")
        else:
            flags[flag] = ""
    arguments.files = [*_split(flags.get("--files", "")), *arguments.files]
    if not arguments.files:
        raise UsageError("no file is given: dump-log FILE..., or --files FILE,FILE")
    _take_switches(arguments, flags)
    return arguments


def _take_switches(arguments: DumpArguments, flags: dict[str, str]) -> None:
    arguments.is_json = "--json" in flags
    arguments.sanity_only = "--index-sanity-check" in flags
    arguments.verify_only = "--verify-index-only" in flags
    arguments.with_metadata = "--skip-record-metadata" not in flags
    arguments.prints_data = "--print-data-log" in flags or any(
        flag.endswith(("-decoder", "-decoder-class")) for flag in flags
    )
    arguments.is_deep = "--deep-iteration" in flags or arguments.prints_data
    arguments.max_bytes = _number(flags, "--max-bytes", INT_MAX)
    arguments.max_message_size = _number(flags, "--max-message-size", _MAX_MESSAGE_SIZE)
    arguments.decoder = _decoder(flags)


def _decoder(flags: dict[str, str]) -> Decoder:
    """Return the decoder that Kafka would choose if several are given."""
    for flag, (module, name) in _RECORD_DECODERS.items():
        if flag in flags:
            of_topic: Decoder = getattr(import_module(f"minibroker.tools.{module}"), name)
            return of_topic
    chosen = []
    for flag in ("--key-decoder-class", "--value-decoder-class"):
        name = flags.get(flag, "StringDecoder")
        decoder = field_decoder(name)
        if decoder is None:
            raise UsageError(f"{flag} {name}: expected one of {known_classes()}")
        chosen.append(decoder)
    return fields(*chosen)


def _split(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _number(flags: dict[str, str], flag: str, default: int) -> int:
    text = flags.get(flag)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and int(text) <= INT_MAX):
        raise UsageError(f"{flag} {text}: expected a number of bytes up to {INT_MAX}")
    return int(text)


def _value_of(flag: str, remaining: Iterator[str]) -> str:
    value = next(remaining, None)
    if value is None or value.startswith("--"):
        raise UsageError(f"{flag} needs a value")
    return value


_RECORD_DECODERS: Final = {
    "--offsets-decoder": ("coordinator_records", "decode_group_record"),
    "--transaction-log-decoder": ("coordinator_records", "decode_transaction_record"),
    "--cluster-metadata-decoder": ("metadata_records", "decode_metadata_record"),
    "--remote-log-metadata-decoder": ("remote_records", "decode_remote_record"),
    "--share-group-state-decoder": ("coordinator_records", "decode_share_record"),
}
"""Flag → module and function, loaded when the flag is given."""
_WITH_VALUE: Final = frozenset(
    {
        "--files",
        "--key-decoder-class",
        "--max-bytes",
        "--max-message-size",
        "--value-decoder-class",
    }
)
_DUMP_SWITCHES: Final = frozenset(
    {
        *_RECORD_DECODERS,
        "--deep-iteration",
        "--index-sanity-check",
        "--json",
        "--print-data-log",
        "--skip-record-metadata",
        "--verify-index-only",
    }
)
