"""`python -m benchmarks.secured`: secured listeners beside Apache Kafka 3.9.1, and the authorizer.

Both brokers have the same `server.properties` and run at the same time. In each round a row
measures one, then the other, and the order changes from round to round. A first round warms up,
Java above all, and is not counted. Rows:

    tls         ProducerPerformance and ConsumerPerformance through TLS 1.3, records of 1 KB; the
                consumer reads a short load and a long one
    logins      SCRAM-SHA-256 logins a second by four clients, each on a connection of its own
    neighbour   p99 of a producer without TLS while 100 TLS handshakes a second come in, alone, and
                while they come in at a broker of its own
    authorizer  broker CPU of raw Produce and of a small Fetch with an authorizer, and without
                (minibroker alone: pairs of fresh brokers, the two of a pair in turns)

Certificates have RSA keys of 2048 bits, as in Kafka's documentation. Prints a table for
`docs/measured.md`. Takes about seven minutes; without Java, minibroker alone is measured.
"""

import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import trustme

from benchmarks import machine, open_loop, pairs, wire
from benchmarks.children import Child
from benchmarks.choices import row_parser
from benchmarks.peers import KAFKA_SCRIPT_FLAGS, START_PATIENCE_S
from benchmarks.rows.load import parse_consumer, parse_producer, producer_command, tool_command
from benchmarks.secured_clients import ITERATIONS, SALT, USER, salted_password
from benchmarks.table import number
from minibroker.broker.config.authorizers import ACL_AUTHORIZER
from minibroker.broker.security.acl_words import PatternType, Permission
from minibroker.broker.security.acls import Operation, ResourceType
from tests.support import java, peers
from tests.support.certificates import write_stores
from tests.support.configured import ConfiguredMinibroker
from tests.support.processes import free_port
from tests.support.wire import WireClient

KAFKA, MINIBROKER = "Kafka 3.9.1", "minibroker"
BUDGETS_S: Final = {"tls": 200.0, "logins": 45.0, "neighbour": 120.0, "authorizer": 150.0}
"""Row → the time after which no further turn begins."""
ROWS: Final = tuple(BUDGETS_S)
RECORD_BYTES: Final = 1_000
LOGIN_CLIENTS: Final = 4
HANDSHAKES_PER_S: Final = 100
NEIGHBOUR_PER_S: Final = 300
IN_FLIGHT: Final = 50
_READ_BYTES: Final = 1 << 18
_SCRAM_LINE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_TOPIC: Final = "secured"
_LONG_TOPIC: Final = "secured-long"


class Sizes(NamedTuple):
    """How long everything takes."""

    rounds: int
    records: int
    long_records: int
    login_s: float
    neighbour_s: float
    authorizer_pairs: int
    """Pairs of fresh brokers."""
    authorizer_bursts: int
    """Bursts of requests to each broker of a pair."""
    burst_s: float


FULL: Final = Sizes(3, 250_000, 1_000_000, 4.0, 6.0, 8, 6, 0.4)
QUICK: Final = Sizes(1, 50_000, 100_000, 1.0, 3.0, 2, 3, 0.3)


class Line(NamedTuple):
    """One line of the table."""

    label: str
    values: dict[str, float]
    """Broker → value."""
    ratio: float | None
    """The value that the bar is about: minibroker by Kafka, or by itself."""
    bar: float
    is_least: bool
    """True if the ratio has to be at least the bar, False: at most."""
    note: str = ""

    def render(self) -> str:
        """Return the line as Markdown."""
        cells = [number(self.values[name]) if name in self.values else "-" for name in _COLUMNS]
        if self.ratio is None:
            return f"| {' | '.join([self.label, *cells, '-', '', ''])} |"
        is_met = self.ratio >= self.bar if self.is_least else self.ratio <= self.bar
        bar = f"{'≥' if self.is_least else '≤'} {self.bar:g}"
        ratio = f"{self.ratio:.2f}{self.note}"
        return f"| {' | '.join([self.label, *cells, ratio, bar, 'yes' if is_met else 'NO'])} |"


_COLUMNS: Final = (MINIBROKER, KAFKA)


class Secured:
    """A broker with the listeners PLAINTEXT, SSL and SASL_PLAINTEXT."""

    def __init__(
        self,
        name: str,
        directory: Path,
        zookeeper: str | None,
        stores: dict[str, str],
        **settings: str,
    ) -> None:
        self.name = name
        directory.mkdir()
        self.ports = {kind: free_port() for kind in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT")}
        listeners = ",".join(f"{kind}://127.0.0.1:{port}" for kind, port in self.ports.items())
        peer = peers.KafkaPeer(
            "3.9.1",
            directory,
            zookeeper=zookeeper or "127.0.0.1:1",
            settings={
                "listeners": listeners,
                "advertised.listeners": listeners,
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": _SCRAM_LINE,
                **stores,
                **{key.replace("_", "."): value for key, value in settings.items()},
            },
            log_dir=directory / "data",
            port=self.ports["PLAINTEXT"],
        )
        peer.settings.pop("log.retention.ms")  # the tests' own
        peer.prepare()
        if name == KAFKA:
            options = [java.log_option("tools")]
            command = peers.kafka_command(
                java.KAFKA_39, directory, options=options, jvm=KAFKA_SCRIPT_FLAGS
            )
        else:
            command = ConfiguredMinibroker(peer, directory / "output.log").command()
            command += ["--zookeeper", zookeeper] if zookeeper else ["--set", "zookeeper.connect="]
        self.child = Child(command, output=directory / "output.log", directory=directory)
        wire.wait_for_metadata(
            self.ports["PLAINTEXT"], timeout_s=START_PATIENCE_S, check=self.child.check
        )

    def client(self) -> WireClient:
        """Return a connection without TLS."""
        return WireClient("127.0.0.1", self.ports["PLAINTEXT"])

    def create_topic(self, name: str) -> None:
        """Create a topic with one partition that has a leader."""
        connection = wire.Connection(self.ports["PLAINTEXT"])
        wire.create_topic(connection, name)
        wire.wait_for_leader(connection, name)
        connection.close()

    def add_user(self) -> None:
        """Let the user of the logins in."""
        change = {
            "name": USER,
            "mechanism": 1,
            "iterations": ITERATIONS,
            "salt": SALT,
            "salted_password": salted_password(),
        }
        with self.client() as client:
            answer = client.call(
                "alter_user_scram_credentials", 0, deletions=[], upsertions=[change]
            )
        assert answer["results"][0]["error_code"] == 0, answer


def _turns(row: str, count: int, least: int = 1) -> Iterator[int]:
    """Yield the numbers of the turns of a row, fewer than `count` where its time is over."""
    start_s = time.perf_counter()
    for turn in range(count):
        if turn >= least and time.perf_counter() - start_s > BUDGETS_S[row]:
            _say(f"{row}: {turn} of {count} turns, the machine is too slow for more")
            return
        yield turn


def _in_turn(brokers: list[Secured], turn: int) -> list[Secured]:
    """Return the brokers in the order of a turn: who comes second finds a warmer machine."""
    return brokers if turn % 2 else brokers[::-1]


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _compared(
    label: str,
    samples_by_broker: dict[str, list[float]],
    bar: float,
    *,
    is_less_better: bool = False,
) -> Line:
    """Return a line with the median of each broker, and how many times better minibroker is."""
    values = {name: _median(samples) for name, samples in samples_by_broker.items()}
    ratio = None
    if KAFKA in values:
        ours, kafka = values[MINIBROKER], values[KAFKA]
        ratio = kafka / ours if is_less_better else ours / kafka
    return Line(label, values, ratio, bar, is_least=True)


# Rows


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stdout[-500:]}")
    return done.stdout


class _TlsLoad(NamedTuple):
    """Results of Kafka's load tools in one turn, in the order of `_TLS_LINES`."""

    produced: float
    consumed: float
    consumed_long: float
    produce_cpu: float
    consume_cpu: float


_TLS_LINES: Final = (
    ("TLS, ProducerPerformance 1 KB, records/s", 1.2, False),
    ("TLS, ConsumerPerformance 1 KB, {short} MB, MB/s", 1.2, False),
    ("TLS, ConsumerPerformance 1 KB, {long} MB, MB/s", 1.2, False),
    ("TLS, broker CPU producing, s/GB", 1.0, True),
    ("TLS, broker CPU consuming {long} MB, s/GB", 1.0, True),
)
"""Label, bar, and whether less is better."""


def tls(brokers: list[Secured], sizes: Sizes, directory: Path, trusted: Path) -> list[Line]:
    """Return the lines of Kafka's load tools through TLS.

    A consumer of `sizes.records` compiles its code most of the time, so a longer load is read, too.
    """
    config = directory / "client.properties"
    config.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={trusted}\n"
    )
    for broker in brokers:
        broker.create_topic(_LONG_TOPIC)
        _run(
            producer_command(
                f"localhost:{broker.ports['PLAINTEXT']}",
                _LONG_TOPIC,
                RECORD_BYTES,
                sizes.long_records,
            )
        )
    loads: dict[str, list[_TlsLoad]] = {broker.name: [] for broker in brokers}
    for turn in _turns("tls", sizes.rounds + 1, least=2):
        for broker in _in_turn(brokers, turn):
            load = _tls_load(broker, f"tls-{turn}", sizes, config)
            if turn:  # the first one warms up
                loads[broker.name].append(load)
            _say(
                f"tls: {broker.name} {load.produced:.0f} records/s, {load.consumed:.0f} and"
                f" {load.consumed_long:.0f} MB/s"
            )
    lines = []
    for index, (label, bar, is_less_better) in enumerate(_TLS_LINES):
        samples_by_broker = {
            name: [load[index] for load in of_broker] for name, of_broker in loads.items()
        }
        text = label.format(short=_megabytes(sizes.records), long=_megabytes(sizes.long_records))
        lines.append(_compared(text, samples_by_broker, bar, is_less_better=is_less_better))
    return lines


def _tls_load(broker: Secured, topic: str, sizes: Sizes, config: Path) -> _TlsLoad:
    """Write a new topic and read it, then read the long topic."""
    broker.create_topic(topic)
    options = f"--bootstrap-server localhost:{broker.ports['SSL']} --command-config {config}"
    load = f"--record-size {RECORD_BYTES} --throughput -1 --command-property acks=1"
    cpu_at_start = broker.child.cpu_seconds()
    produced = parse_producer(
        _run(
            tool_command(
                "ProducerPerformance",
                f"{options} --topic {topic} --num-records {sizes.records} {load}",
            )
        )
    )
    produce_cpu = broker.child.cpu_seconds() - cpu_at_start
    consumed = _consume(f"{options} --topic {topic} --num-records {sizes.records}")
    cpu_at_start = broker.child.cpu_seconds()
    consumed_long = _consume(f"{options} --topic {_LONG_TOPIC} --num-records {sizes.long_records}")
    consume_cpu = broker.child.cpu_seconds() - cpu_at_start
    return _TlsLoad(
        produced,
        consumed,
        consumed_long,
        produce_cpu / (sizes.records * RECORD_BYTES / 1e9),
        consume_cpu / (sizes.long_records * RECORD_BYTES / 1e9),
    )


def _consume(arguments: str) -> float:
    return parse_consumer(_run(tool_command("ConsumerPerformance", arguments)))


def _megabytes(records: int) -> int:
    return records * RECORD_BYTES // 1_000_000


class Helper:
    """A client of `secured_clients` in a process of its own, ready to begin."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "benchmarks.secured_clients", *arguments]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._read("ready")

    def _read(self, expected: str = "") -> str:
        assert self._child.stdout is not None
        line = self._child.stdout.readline().strip()
        if not line or (expected and line != expected):
            raise RuntimeError(f"a client said {line!r} and ended with {self._child.wait()}")
        return line

    def begin(self) -> None:
        """Let it begin."""
        assert self._child.stdin is not None
        self._child.stdin.write("\n")
        self._child.stdin.flush()

    def end(self) -> int:
        """Wait for its end; return how much it did."""
        count = int(self._read())
        self._child.wait()
        return count


def logins(brokers: list[Secured], sizes: Sizes) -> list[Line]:
    """Return the lines of SCRAM logins."""
    rates: dict[str, list[float]] = {broker.name: [] for broker in brokers}
    cpu: dict[str, list[float]] = {broker.name: [] for broker in brokers}
    for broker in brokers:
        broker.add_user()
    for turn in _turns("logins", sizes.rounds + 1, least=2):
        for broker in _in_turn(brokers, turn):
            port = str(broker.ports["SASL_PLAINTEXT"])
            clients = [Helper("login", port, str(sizes.login_s)) for _ in range(LOGIN_CLIENTS)]
            cpu_at_start = broker.child.cpu_seconds()
            for client in clients:
                client.begin()
            count = sum(client.end() for client in clients)
            if turn:  # the first one warms up
                rates[broker.name].append(count / sizes.login_s)
                cpu[broker.name].append((broker.child.cpu_seconds() - cpu_at_start) * 1e6 / count)
            _say(f"logins: {broker.name} {count / sizes.login_s:.0f} a second")
    return [
        _compared("SCRAM-SHA-256 logins by four clients, a second", rates, 1.0),
        _compared("broker CPU of a login, µs", cpu, 1.0, is_less_better=True),
    ]


def _percentile_ms(broker: Secured, sizes: Sizes, seed: int) -> float:
    """Return the p99 of small requests of a producer without TLS."""
    connection = wire.Connection(broker.ports["PLAINTEXT"])
    request = wire.produce_frame(_TOPIC, wire.one_record_batch(bytes(RECORD_BYTES)))
    stream = open_loop.Stream(connection.socket, request, open_loop.kafka_size)
    count = int(NEIGHBOUR_PER_S * sizes.neighbour_s)
    stream.plan(open_loop.spread(count, NEIGHBOUR_PER_S, seed))
    open_loop.run([stream])
    connection.close()
    return sorted(stream.taken_s)[count * 99 // 100] * 1000


class _Neighbour(NamedTuple):
    """The p99 of a producer in one turn, in ms."""

    alone: float
    elsewhere: float
    """Beside handshakes at another broker: what sharing the machine costs."""
    own: float
    """Beside handshakes at its own broker."""
    came: float
    """Handshakes a second that its own broker did."""


def neighbour(brokers: list[Secured], aside: Secured, sizes: Sizes, trusted: Path) -> list[Line]:
    """Return the lines of a producer beside TLS handshakes.

    The clients that shake hands take the two cores, too, whichever broker they ask. So the same
    number of handshakes comes in at `aside`, a broker that nobody else uses.
    """
    turns: dict[str, list[_Neighbour]] = {broker.name: [] for broker in brokers}
    for broker in brokers:
        broker.create_topic(_TOPIC)
        _percentile_ms(broker, sizes, 0)
    for turn in _turns("neighbour", sizes.rounds):
        for broker in _in_turn(brokers, turn):
            alone = _percentile_ms(broker, sizes, turn)
            elsewhere, _ = _beside_handshakes(broker, aside, sizes, trusted, turn)
            own, came = _beside_handshakes(broker, broker, sizes, trusted, turn)
            turns[broker.name].append(_Neighbour(alone, elsewhere, own, came))
            _say(
                f"neighbour: {broker.name}, {came:.0f} handshakes a second, p99 {alone:.2f} →"
                f" {own:.2f} ms, {elsewhere:.2f} where they come in elsewhere"
            )
    medians = {
        name: _Neighbour(*map(_median, zip(*medians_of_turn, strict=True)))
        for name, medians_of_turn in turns.items()
    }
    beside = f"Produce p99 beside {HANDSHAKES_PER_S} TLS handshakes a second"
    return [
        _plain(
            "Produce p99 alone, ms",
            {name: medians_of_turn.alone for name, medians_of_turn in medians.items()},
        ),
        _plain(
            "TLS handshakes that came in, a second",
            {name: medians_of_turn.came for name, medians_of_turn in medians.items()},
        ),
        _moved(f"{beside}, ms", medians, "alone"),
        _plain(
            f"{beside} at another broker, ms",
            {name: medians_of_turn.elsewhere for name, medians_of_turn in medians.items()},
        ),
        _moved(f"{beside}, ms", medians, "elsewhere"),
    ]


def _beside_handshakes(
    broker: Secured, target: Secured, sizes: Sizes, trusted: Path, seed: int
) -> tuple[float, float]:
    """Return the p99 in ms of a producer at `broker` while handshakes come in at `target`, and how
    many did in a second.
    """
    seconds = sizes.neighbour_s + 0.5  # it goes on until the producer is done
    client = Helper(
        "shake", str(target.ports["SSL"]), str(trusted), str(HANDSHAKES_PER_S), str(seconds)
    )
    client.begin()
    p99_ms = _percentile_ms(broker, sizes, seed)
    return p99_ms, client.end() / seconds


def _plain(label: str, values: dict[str, float]) -> Line:
    """Return a line that has no bar."""
    return Line(label, values, None, 0, is_least=True)


def _moved(label: str, medians: dict[str, _Neighbour], without: str) -> Line:
    """Return the line of the p99 beside handshakes, by that `alone` or `elsewhere`."""
    ratios = {name: times.own / getattr(times, without) for name, times in medians.items()}
    note = f" of {without}" + (f"; Kafka {ratios[KAFKA]:.2f}" if KAFKA in ratios else "")
    values = {name: times.own for name, times in medians.items()}
    return Line(label, values, ratios[MINIBROKER], 2.0, is_least=False, note=note)


class SameRequest:
    """Sends one request again and again. Every answer has the size of the first one."""

    def __init__(self, port: int, request: bytes, check: Callable[[bytes], object]) -> None:
        self._socket = wire.Connection(port).socket
        self._socket.sendall(request)
        self._answer_bytes = 0
        answer = bytearray()
        while not self._answer_bytes or len(answer) < self._answer_bytes:
            answer += self._socket.recv(_READ_BYTES)
            self._answer_bytes = open_loop.kafka_size(answer)
        check(bytes(answer[8:]))
        self._requests = request * IN_FLIGHT
        self._request_bytes = len(request)

    def run(self, duration_s: float) -> int:
        """Keep `IN_FLIGHT` requests on their way for so long; return how many there were."""
        deadline = time.perf_counter() + duration_s
        count, received, answered = IN_FLIGHT, 0, 0
        self._socket.sendall(self._requests)
        while answered < count:
            received += len(self._socket.recv(_READ_BYTES))
            fresh = received // self._answer_bytes - answered
            answered += fresh
            if fresh and time.perf_counter() < deadline:
                self._socket.sendall(self._requests[: fresh * self._request_bytes])
                count += fresh
        return count


def _fetch_frame(topic: str) -> bytes:
    """Return a Fetch v11 without a session for the first record of a topic."""
    partition = struct.pack(">iiiqqi", 1, 0, -1, 0, -1, RECORD_BYTES)
    body = struct.pack(">iiiibii", -1, 0, 1, RECORD_BYTES, 0, 0, -1)
    body += struct.pack(">i", 1) + wire.string(topic) + partition + struct.pack(">i", 0)
    return wire.frame(1, 11, body + wire.string(""))


def _check_fetch(body: bytes) -> None:
    _, error, _, topics = struct.unpack_from(">ihii", body)
    (partition_error,) = struct.unpack_from(">h", body, 14 + 2 + len(_TOPIC) + 8)
    if error or topics != 1 or partition_error:
        raise wire.WireError(f"Fetch answered errors {error}, {partition_error}")


def _check_produce(body: bytes) -> None:
    error, _ = wire.produce_answer(body, _TOPIC)
    if error:
        raise wire.WireError(f"Produce answered error {error}")


def _permit(broker: Secured) -> None:
    """Give the client without a login the permissions that an application has."""
    acls = [
        {
            "resource_type": int(ResourceType.TOPIC),
            "resource_name": name,
            "resource_pattern_type": int(PatternType.LITERAL),
            "principal": "User:ANONYMOUS",
            "host": "*",
            "operation": int(operation),
            "permission_type": int(Permission.ALLOW),
        }
        for name in (_TOPIC, "another")
        for operation in (Operation.READ, Operation.WRITE)
    ]
    with broker.client() as client:
        answer = client.call("create_acls", 2, creations=acls)
    assert all(result["error_code"] == 0 for result in answer["results"]), answer


def authorizer(directory: Path, stores: dict[str, str], sizes: Sizes) -> list[Line]:
    """Return the lines of the hot path with an authorizer, and without.

    Two brokers that do the same differ by some percent, each as long as it runs: their memory lies
    in other places. So each of several pairs of fresh brokers gives one change.
    """
    requests = {
        "raw Produce": (
            wire.produce_frame(_TOPIC, wire.one_record_batch(b"x" * 100)),
            _check_produce,
        ),
        "small Fetch": (_fetch_frame(_TOPIC), _check_fetch),
    }
    costs: dict[str, list[tuple[float, float]]] = {label: [] for label in requests}
    for turn in _turns("authorizer", sizes.authorizer_pairs, least=6):
        (directory / f"pair-{turn}").mkdir()
        with _free_and_asked(directory / f"pair-{turn}", stores) as brokers:
            for label, (request, check) in requests.items():
                costs[label].append(_request_costs(brokers, request, check, sizes))
    return [_authorizer_line(label, costs_of_row) for label, costs_of_row in costs.items()]


@contextmanager
def _free_and_asked(directory: Path, stores: dict[str, str]) -> Iterator[tuple[Secured, Secured]]:
    """Give a broker without an authorizer and one with it. Both end at the end."""
    with ExitStack() as running:
        free = Secured(MINIBROKER, directory / "free", None, stores)
        running.callback(free.child.stop)
        checking = Secured(
            MINIBROKER,
            directory / "asked",
            None,
            stores,
            authorizer_class_name=ACL_AUTHORIZER,
            # Everything but topics with ACLs is open, so that the client can set them.
            allow_everyone_if_no_acl_found="true",
        )
        running.callback(checking.child.stop)
        _permit(checking)
        for broker in (free, checking):
            broker.create_topic(_TOPIC)
        yield free, checking


def _request_costs(
    brokers: tuple[Secured, Secured],
    request: bytes,
    check: Callable[[bytes], object],
    sizes: Sizes,
) -> tuple[float, float]:
    """Return the processor time in µs that each of the brokers takes for a request."""
    clients = [SameRequest(broker.ports["PLAINTEXT"], request, check) for broker in brokers]
    costs: tuple[list[float], list[float]] = ([], [])
    for client in clients:
        client.run(sizes.burst_s)
    for turn in range(sizes.authorizer_bursts):
        # The order changes: who comes second finds a warmer machine.
        for which in (0, 1) if turn % 2 else (1, 0):
            child = brokers[which].child
            cpu_at_start = child.cpu_seconds()
            count = clients[which].run(sizes.burst_s)
            costs[which].append((child.cpu_seconds() - cpu_at_start) * 1e6 / count)
    return _median(costs[0]), _median(costs[1])


def _authorizer_line(label: str, costs: list[tuple[float, float]]) -> Line:
    free, checking = zip(*costs, strict=True)
    changes = pairs.changes(free, checking)
    low, high = pairs.median_interval(changes)
    _say(f"authorizer: {label} {_median(changes):+.1%} ({low:+.1%} to {high:+.1%})")
    return Line(
        f"{label}, broker CPU with an authorizer, µs ({_median(free):.2f} without)",
        {MINIBROKER: _median(checking)},
        1 + _median(changes),
        1.03,
        is_least=False,
        note=f" of without ({1 + low:.2f} to {1 + high:.2f})",
    )


def _measure(rows: list[str], sizes: Sizes, directory: Path) -> list[Line]:
    authority = trustme.CA(organization_name="Benchmark", key_type=trustme.KeyType.RSA)
    certificate = authority.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.RSA)
    stores = write_stores(directory / "stores", certificate, authority.cert_pem.bytes().decode())
    trusted = Path(stores["ssl.truststore.location"])
    lines: list[Line] = []
    missing = java.missing_java()
    if missing is not None:
        _say(f"{KAFKA} is not measured: {missing}")
    with ExitStack() as running:
        brokers = []
        if set(rows) - {"authorizer"}:
            brokers.append(Secured(MINIBROKER, directory / "minibroker", None, stores))
            running.callback(brokers[-1].child.stop)
            if missing is None:
                zookeeper = peers.ZooKeeper(directory / "zookeeper")
                zookeeper.start()
                running.callback(zookeeper.stop)
                brokers.append(Secured(KAFKA, directory / "kafka", zookeeper.connect, stores))
                running.callback(brokers[-1].child.stop)
        if "tls" in rows:
            lines += tls(brokers, sizes, directory, trusted)
        if "logins" in rows:
            lines += logins(brokers, sizes)
        if "neighbour" in rows:
            aside = Secured(MINIBROKER, directory / "aside", None, stores)
            running.callback(aside.child.stop)
            lines += neighbour(brokers, aside, sizes, trusted)
    if "authorizer" in rows:
        lines += authorizer(directory, stores, sizes)
    return lines


def main() -> int:
    """Measure what was asked for; return 0: to fall short of a bar is a result."""
    arguments = row_parser("benchmarks.secured", ROWS).parse_args()
    facts = machine.facts()
    machine.warn_if_busy(facts)
    sizes = QUICK if arguments.quick else FULL
    start_s = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="secured-") as scratch:
        lines = _measure(arguments.rows, sizes, Path(scratch))
    print(f"| | {' | '.join(_COLUMNS)} | ratio | bar | met |\n|---|---:|---:|---:|---:|---|")
    print("\n".join(line.render() for line in lines))
    described = ", ".join(f"{key} {value}" for key, value in facts.items())
    print(
        f"\nMedians of {sizes.rounds} rounds at most; the authorizer: of {sizes.authorizer_pairs} "
        f"pairs of brokers, with the interval of the median. Took "
        f"{time.perf_counter() - start_s:.0f} s. {described}."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
