"""The options of `minibroker dump-log`: Kafka's flags under their names, and files.

Source: Kafka DumpLogSegmentsOptions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from minibroker.cli.declaration import Names, Option
from minibroker.cli.errors import UsageError
from minibroker.cli.kinds import SWITCH, Kind, Many

if TYPE_CHECKING:
    from minibroker.tools.decoders import Decoder

INT_MAX: Final = 2**31 - 1
_MAX_MESSAGE_SIZE: Final = 5 * 1024 * 1024
_CLASSES: Final = ("StringDecoder", "IntegerDecoder", "LongDecoder", "DefaultDecoder")

OUTPUT: Final = "Output"
DECODERS: Final = "Records"
INDEXES: Final = "Indexes"


def _bytes(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= INT_MAX):
        raise UsageError(f"{text}: expected a number of bytes up to {INT_MAX}")
    return int(text)


def _decoder_class(name: str) -> str:
    from minibroker.tools.decoders import field_decoder, known_classes  # noqa: PLC0415  not for help

    if field_decoder(name) is None:
        raise UsageError(f"{name}: expected one of {known_classes()}")
    return name


_BYTES: Final = Kind("N", _bytes)
_CLASS: Final = Kind("CLASS", _decoder_class, choices=_CLASSES)


def _files(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


class DumpPlan(NamedTuple):
    """The options of `dump-log`."""

    named_files: Annotated[
        tuple[str, ...],
        Option("FILE", Many("FILE", is_split=False, completes="file"), "a file of a log"),
    ] = ()
    listed_files: Annotated[
        tuple[str, ...],
        Option(
            "--files",
            Kind("FILE[,FILE...]", _files, completes="file"),
            "files, as Kafka's tool takes them",
        ),
    ] = ()
    iterates: Annotated[
        bool,
        Option("--deep-iteration", SWITCH, "each record of a batch, not only the batch", DECODERS),
    ] = False
    prints_fields: Annotated[
        bool, Option("--print-data-log", SWITCH, "keys and values, too", DECODERS)
    ] = False
    without_metadata: Annotated[
        bool, Option("--skip-record-metadata", SWITCH, "keys and values only", DECODERS)
    ] = False
    key_class: Annotated[
        str | None,
        Option(
            "--key-decoder-class",
            _CLASS,
            "decoder of keys: StringDecoder, IntegerDecoder, LongDecoder, DefaultDecoder "
            "(hexadecimal)",
            DECODERS,
            default="StringDecoder",
        ),
    ] = None
    value_class: Annotated[
        str | None,
        Option(
            "--value-decoder-class",
            _CLASS,
            "decoder of values, one of these, too",
            DECODERS,
            default="StringDecoder",
        ),
    ] = None
    of_offsets: Annotated[
        bool, Option("--offsets-decoder", SWITCH, "records of __consumer_offsets", DECODERS)
    ] = False
    of_transactions: Annotated[
        bool,
        Option("--transaction-log-decoder", SWITCH, "records of __transaction_state", DECODERS),
    ] = False
    of_metadata: Annotated[
        bool,
        Option(
            "--cluster-metadata-decoder",
            SWITCH,
            "records of a KRaft controller's __cluster_metadata",
            DECODERS,
        ),
    ] = False
    of_remote: Annotated[
        bool,
        Option(
            "--remote-log-metadata-decoder",
            SWITCH,
            "records of __remote_log_metadata (tiered storage)",
            DECODERS,
        ),
    ] = False
    of_shares: Annotated[
        bool,
        Option("--share-group-state-decoder", SWITCH, "records of __share_group_state", DECODERS),
    ] = False
    sanity_only: Annotated[
        bool,
        Option(
            "--index-sanity-check",
            SWITCH,
            "check whether a broker would accept this index",
            INDEXES,
        ),
    ] = False
    verify_only: Annotated[
        bool,
        Option(
            "--verify-index-only",
            SWITCH,
            "compare an index with its .log and print no entry",
            INDEXES,
        ),
    ] = False
    max_message_size: Annotated[
        int,
        Option(
            "--max-message-size", _BYTES, "largest batch expected where an index points to", INDEXES
        ),
    ] = _MAX_MESSAGE_SIZE
    max_bytes: Annotated[
        int,
        Option("--max-bytes", _BYTES, "only the first N bytes of a .log", OUTPUT, default="all"),
    ] = INT_MAX
    is_json: Annotated[bool, Option("--json", SWITCH, "one JSON object on each line", OUTPUT)] = (
        False
    )

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files in the order in which they are dumped."""
        return (*self.listed_files, *self.named_files)

    @property
    def prints_data(self) -> bool:
        """Return whether keys and values are shown: a decoder asks for them, too."""
        has_class = self.key_class is not None or self.value_class is not None
        return self.prints_fields or has_class or self._topic_decoder is not None

    @property
    def is_deep(self) -> bool:
        """Return whether the records of a batch are shown."""
        return self.iterates or self.prints_data

    @property
    def _topic_decoder(self) -> tuple[str, str] | None:
        """Return module and function of the decoder of a topic, None for keys and values.

        Of several the first one counts, as in Kafka.
        """
        decoders = (
            (self.of_offsets, ("coordinator_records", "decode_group_record")),
            (self.of_transactions, ("coordinator_records", "decode_transaction_record")),
            (self.of_metadata, ("metadata_records", "decode_metadata_record")),
            (self.of_remote, ("remote_records", "decode_remote_record")),
            (self.of_shares, ("coordinator_records", "decode_share_record")),
        )
        return next((decoder for is_given, decoder in decoders if is_given), None)

    def decoder(self) -> Decoder:
        """Return the decoder of a record that Kafka would choose; its module is loaded now."""
        if (of_topic := self._topic_decoder) is not None:
            module, name = of_topic
            decode: Decoder = getattr(import_module(f"minibroker.tools.{module}"), name)
            return decode
        from minibroker.tools.decoders import field_decoder, fields  # noqa: PLC0415  not for help

        key, value = (
            field_decoder(name or _CLASSES[0]) for name in (self.key_class, self.value_class)
        )
        assert key is not None
        assert value is not None
        return fields(key, value)


def check(plan: DumpPlan, names: Names) -> None:
    """Raise UsageError if there is no file to dump."""
    if not plan.files:
        raise UsageError("no file is given: dump-log FILE..., or --files FILE,FILE")
