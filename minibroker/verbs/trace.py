"""`minibroker trace`: the conversation of clients and brokers in a capture, or in a dialogue."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Names, Option, Part, Verb
from minibroker.cli.errors import EXIT_OK, CommandError, UsageError
from minibroker.cli.kinds import (
    ADDRESS,
    COUNT,
    DURATION,
    FILE,
    PORT_MAX,
    SWITCH,
    TEXT,
    TOPIC,
    Kind,
    Many,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.trace.connections import CaptureTally
    from minibroker.trace.exchange import Exchange
    from minibroker.trace.selection import Selection
    from minibroker.trace.subject import TopicNames

STDIN: Final = "-"
TLS_SERVERS_SHOWN: Final = 4
"""Servers with TLS that the last line names."""
SELECTION: Final = "Requests"
LAYOUT: Final = "Layout"
SERVING: Final = "Play it again"


def _port(text: str) -> int:
    """Return a port. Raises UsageError."""
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:6]) <= PORT_MAX):
        raise UsageError(f"{text!r}: expected a port, such as 9092")
    return int(text)


def _api(text: str) -> str:
    """Return the name of an API. Raises UsageError."""
    from minibroker.cli.kinds import near  # noqa: PLC0415  only with the option
    from minibroker.kafka.protocol.api_keys import APIS  # noqa: PLC0415

    names = {api.name.lower(): api.name for api in APIS.values()}
    if text.lower() not in names:
        raise UsageError(f"{text!r}: no API has this name{near(text, names.values())}")
    return names[text.lower()]


class SelectionOptions(NamedTuple):
    """The requests that are shown."""

    apis: Annotated[
        Sequence[str],
        Option("--api", Many("NAME[,...]", _api), "only these APIs, such as Fetch", SELECTION),
    ] = ()
    client: Annotated[
        str,
        Option("--client", TEXT, "only clients with this in their id or address", SELECTION),
    ] = ""
    topic: Annotated[str, Option("--topic", TOPIC, "only requests about this topic", SELECTION)] = (
        ""
    )
    errors: Annotated[
        bool, Option("--errors", SWITCH, "only requests with an error in the answer", SELECTION)
    ] = False
    slow_ms: Annotated[
        int,
        Option("--slow", DURATION, "only requests that took so long or longer", SELECTION),
    ] = 0

    def selection(self) -> Selection:
        """Return the selection."""
        from minibroker.trace.selection import Selection  # noqa: PLC0415  not for help

        return Selection(tuple(self.apis), self.client, self.topic, self.errors, self.slow_ms)


class TracePlan(NamedTuple):
    """The options of the verb."""

    pcap: Annotated[
        str | None,
        Option(
            "--pcap",
            FILE,
            "a capture of the network, as tcpdump and Wireshark write it; - reads it from a pipe",
        ),
    ] = None
    dialogue: Annotated[
        str | None,
        Option("--dialogue", FILE, "a recorded conversation: the lines of trace --json"),
    ] = None
    ports: Annotated[
        Sequence[int],
        Option(
            "--port",
            Many("N[,...]", _port),
            "ports of the brokers in the capture",
            default="any with Kafka's protocol",
        ),
    ] = ()
    chosen: Annotated[SelectionOptions, Part(SelectionOptions)] = SelectionOptions()
    most: Annotated[
        int | None, Option("--count", COUNT, "end after N requests", SELECTION, short="-n")
    ] = None
    is_full: Annotated[
        bool, Option("--full", SWITCH, "show every field of requests and answers", LAYOUT)
    ] = False
    is_json: Annotated[
        bool,
        Option(
            "--json", SWITCH, "show each request as a line of JSON, which --dialogue reads", LAYOUT
        ),
    ] = False
    svg: Annotated[
        str | None,
        Option("--svg", FILE, "draw a short conversation as a picture", LAYOUT),
    ] = None
    seed: Annotated[
        str | None,
        Option(
            "--seed",
            Kind("FILE.jsonl", completes="file"),
            "write the topics and the records that were produced, as a seed for serve --seed",
            SERVING,
        ),
    ] = None
    serve: Annotated[
        tuple[str, int] | None,
        Option(
            "--serve",
            ADDRESS,
            "be a broker that answers as it was recorded, and refuses other requests",
            SERVING,
        ),
    ] = None
    html: Annotated[
        str | None,
        Option("--html", FILE, "write a page with the conversation as a diagram", LAYOUT),
    ] = None

    @property
    def shows_lines_alone(self) -> bool:
        """Return whether only lines of requests are shown, and no field is asked for."""
        outputs = (self.is_full, self.is_json, self.svg, self.seed, self.serve, self.html)
        return not any(outputs) and not self.chosen.topic


def check(plan: TracePlan, names: Names) -> None:
    """Raise UsageError for options that do not go together."""
    if (plan.pcap is None) == (plan.dialogue is None):
        raise UsageError(f"give either {names['pcap']} or {names['dialogue']}")
    if plan.ports and plan.pcap is None:
        raise UsageError(f"{names['ports']} needs {names['pcap']}")
    if plan.seed is not None and plan.pcap == STDIN:
        raise UsageError(f"{names['seed']} reads a capture twice: write it into a file")
    layouts = [
        name for name in ("is_full", "is_json", "html", "svg", "seed") if getattr(plan, name)
    ]
    if plan.serve is not None and (plan.html or plan.svg or plan.seed):
        layouts.append("serve")
    if len(layouts) > 1:
        raise UsageError(f"{names[layouts[-2]]} and {names[layouts[-1]]} do not go together")


def run(plan: TracePlan, out: TextIO, errors: TextIO) -> int:
    """Show the exchanges; return the exit code.

    Raises CommandError, CaptureError, DialogueError, OSError.
    """
    if plan.html is not None or plan.svg is not None:
        _write_page(plan, plan.html or plan.svg or "", errors)
        return EXIT_OK
    if plan.seed is not None:
        from minibroker.verbs.trace_seed import write_seed  # noqa: PLC0415  for --seed only

        names: TopicNames = {}
        counts = write_seed(lambda: _chosen(plan, io.StringIO(), names), names, plan.seed)
        errors.write(f"minibroker trace: {counts}\n")
        return EXIT_OK
    if plan.serve is not None:
        from minibroker.verbs.trace_serving import serve  # noqa: PLC0415  for --serve only

        return serve(
            _chosen(plan, errors), plan.serve, _writer(plan, out, is_live=True), out, errors
        )
    write = _writer(plan, out, is_live=plan.pcap == STDIN)
    for exchange in _chosen(plan, errors):
        write(exchange)
    return EXIT_OK


def _writer(plan: TracePlan, out: TextIO, *, is_live: bool) -> Callable[[Exchange], None]:
    """Return the function that writes an exchange in the layout of the plan."""
    from minibroker.trace.layouts import writer_to  # noqa: PLC0415  not for help

    return writer_to(out, is_full=plan.is_full, is_json=plan.is_json, is_live=is_live)


def _write_page(plan: TracePlan, target: str, errors: TextIO) -> None:
    """Write the page or the picture. Raises CommandError, CaptureError, DialogueError."""
    if not Path(target).absolute().parent.is_dir():
        raise CommandError(f"{target} cannot be written: its directory is not there")
    try:
        from minibroker.trace.page import ConversationPage  # noqa: PLC0415  not for help
        from minibroker.trace.picture import EXCHANGES_MAX, picture  # noqa: PLC0415
    except ImportError:
        raise CommandError("a page needs Jinja2: pip install 'minibroker[trace]'") from None
    title = f"Conversation in {Path(plan.pcap or plan.dialogue or '').name}"
    if plan.svg is None:
        page = ConversationPage(title)
        for exchange in _chosen(plan, errors):
            page.add(exchange)
        text = page.render()
    else:
        chosen = list(islice(_chosen(plan, errors), EXCHANGES_MAX + 1))
        if len(chosen) > EXCHANGES_MAX:
            raise CommandError(
                f"a picture has at most {EXCHANGES_MAX} requests: choose fewer, or take --html"
            )
        text = picture(chosen, title)
    try:
        Path(target).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise CommandError(f"{target} cannot be written: {error.strerror}") from None


def _chosen(plan: TracePlan, errors: TextIO, names: TopicNames | None = None) -> Iterator[Exchange]:
    """Yield the exchanges that the plan chooses, up to its count; `names` gets ids of topics."""
    names = {} if names is None else names
    selection = plan.chosen.selection()
    count = 0
    for exchange in _exchanges(plan, names, errors):
        if selection.takes(exchange, names):
            yield exchange
            count += 1
            if count == plan.most:
                return


def _exchanges(plan: TracePlan, names: TopicNames, errors: TextIO) -> Iterator[Exchange]:
    """Yield all exchanges of the file. Raises CommandError, CaptureError, DialogueError."""
    path = Path(plan.pcap or plan.dialogue or "")
    if not path.is_file() and plan.pcap != STDIN:
        raise CommandError(f"{path} is no file")
    if plan.pcap is None:
        yield from _of_dialogue(path, names)
        return
    from minibroker.trace.capture import read_capture  # noqa: PLC0415  not for help
    from minibroker.trace.connections import CapturedConnections  # noqa: PLC0415
    from minibroker.trace.decode import decode, read_head  # noqa: PLC0415
    from minibroker.trace.glance import glance  # noqa: PLC0415

    connections = CapturedConnections(plan.ports)
    # Metadata says the names of topics.
    apis = {*plan.chosen.apis, "Metadata"} if plan.chosen.apis else None
    reader = glance if plan.shows_lines_alone else decode
    for frames in read_capture(path, connections):
        if apis is None or (frames.head or read_head(frames.request)).api in apis:
            yield reader(frames, names)
    errors.write(f"minibroker trace: {_summary(connections.tally)}\n")


def _of_dialogue(path: Path, names: TopicNames) -> Iterator[Exchange]:
    """Yield the exchanges of JSON lines. Raises DialogueError, OSError."""
    from minibroker.trace.json_lines import read_exchanges  # noqa: PLC0415  not for help
    from minibroker.trace.subject import learn_names  # noqa: PLC0415

    with path.open(encoding="utf-8", errors="replace") as lines:
        for exchange in read_exchanges(lines):
            if exchange.answer is not None:
                learn_names(exchange.answer, names)
            yield exchange


def _summary(tally: CaptureTally) -> str:
    """Return a sentence about a capture."""
    from minibroker.trace.batches import count_of  # noqa: PLC0415  not for help

    text = (
        f"{count_of(tally.requests, 'request')} on {count_of(tally.connections, 'connection')}"
        f" in {count_of(tally.packets, 'packet')}"
    )
    if tally.tls_connections:
        text += f"; {count_of(tally.tls_connections, 'connection')} with TLS cannot be read: "
        servers = sorted(tally.tls_servers.items(), key=lambda item: -item[1])
        text += ", ".join(f"{count} to {server}" for server, count in servers[:TLS_SERVERS_SHOWN])
        if len(servers) > TLS_SERVERS_SHOWN:
            text += f" and {len(servers) - TLS_SERVERS_SHOWN} more"
    if tally.lost_bytes:
        text += f"; {count_of(tally.lost_bytes, 'byte')} of requests or answers are missing"
    if tally.lost_fragments:
        text += f"; {count_of(tally.lost_fragments, 'fragment')} of packets without the others"
    for link, count in tally.unread_packets.items():
        text += f"; {count_of(count, 'packet')} of link type {link} not read"
    return text


VERB: Final = Verb(
    name="trace",
    does="show the requests and answers of clients and brokers in a capture of the network",
    plan=TracePlan,
    run=run,
    check=check,
    usage="--pcap FILE",
    groups=(SELECTION, LAYOUT, SERVING),
    notes="""\
Each request and its answer is a line: time (UTC), API, version, client, broker, what it is about,
the first error of the answer by name, and the time until the answer. A capture may begin in the
middle of connections, and may have lost packets: it goes on at the next request. Connections with
TLS cannot be read. Passwords and keys are shown nowhere.

--seed writes the records that brokers took, those of a transaction once it is committed. --serve
makes a broker of the recording: it answers each request as it was answered, with its own
address in place of the brokers', and says which request was not recorded. Its first line is
"minibroker listening on HOST:PORT"; it ends with Ctrl-C.

To capture: `tcpdump -i any -s 0 -w kafka.pcap 'tcp port 9092'`. To look on: `tcpdump -i any -s 0 -U
-w - 'tcp port 9092' | minibroker trace --pcap -`.
""",
    examples=(
        "trace --pcap kafka.pcap",
        "trace --pcap kafka.pcap --errors",
        "trace --pcap -",
        "trace --pcap kafka.pcap --api JoinGroup,SyncGroup --full",
        "trace --pcap kafka.pcap --json",
        "trace --pcap kafka.pcap --html conversation.html",
        "trace --pcap kafka.pcap --api JoinGroup,SyncGroup --svg rebalance.svg",
        "trace --dialogue conversation.jsonl --client shop --slow 100ms",
        "trace --dialogue conversation.jsonl --seed records.jsonl",
        "trace --dialogue conversation.jsonl --serve 127.0.0.1:9092",
    ),
)
