"""The commands of README.md and docs/ work in an empty directory.

The commands run in a shell as they stand there, but for ports, which a test does not choose. Each
has a check of what it leaves; a new one without a check fails here, and so does a new section. The
pipeline's are in `tests/pipeline/test_readme.py`.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from importlib.metadata import metadata
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support import readme
from tests.support.clients import confluent_consume
from tests.support.processes import free_port
from tests.support.shell import SECONDS, environment, recipe_of, run_command, serving
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)

ROOT = readme.ROOT
PIPELINE = (
    "Pipeline",
    "Production traffic in a test broker",
    "Watching lag",
    "Values as columns",
    "In Python",
    "In jobs of your own",
)
TESTS_IN_PYTHON = (
    "In a test",
    "A secured broker",
    "Say who may do what",
    "A test",
    "In Python tests",
    "Wait for consumers",
    "Each Kafka release",
    "Fixtures of your own",
    "A registry in a test",
    "Faults and time",
    "A test with three brokers",
    "Faults of several brokers",
)
TRACE = ROOT / "docs" / "how-to" / "trace.md"
CONSOLE = ("The console", "A console that only reads")
SERVICE_UNDER_TEST = "The service under test"
OUTGROWING = "To Apache Kafka 4, and back"


def commands(section: str) -> list[str]:
    """Return the commands of a section that are run."""
    commands_of_section = readme.commands(
        block for block in readme.blocks() if block.section == section
    )
    return [command for command in commands_of_section if readme.reason_not_to_run(command) is None]


def example(section: str) -> str:
    """Return the only block of Python in a section."""
    (text,) = (
        block.text
        for block in readme.blocks()
        if (block.section, block.language) == (section, "python")
    )
    return text


def run_all(
    lines: list[str], directory: Path, address: str, checks: dict[str, Callable[[str], bool]]
) -> None:
    """Run each of `lines`, and check its output or files.

    Args:
        checks: start of a command → its check of the output.
    """
    for command in lines:
        (check,) = (check for start, check in checks.items() if command.startswith(start))
        printed = run_command(command.replace("127.0.0.1:9092", address), directory)
        assert check(printed), f"{command} printed {printed}"


def test_every_section_has_a_test_or_a_reason() -> None:
    tested = {readme.TOP, "A broker", "Starting it", *TESTS_IN_PYTHON, "From any language"}
    tested |= {"Looking inside", "In the background", SERVICE_UNDER_TEST, "With one command"}
    tested |= {"With one flag", "Access", "Look and change", *CONSOLE}
    tested |= {"Seeds", "Lines of a seed", "A seed at the start", "Record a seed"}  # test_seeds.py
    tested |= {"Records, seeds and waits", "Records on the command line", "Waits in a script"}
    tested |= {"Groups on the command line", "Secured brokers"}  # test_command_line_page.py
    tested |= {"Bring 0.7 logs in", "Bring 0.7 consumers along"}  # test_import_07.py
    tested |= {"Look a position up"}  # as above
    tested |= {OUTGROWING, "A schema registry"}
    tested |= {
        "A proxy before any Kafka",
        "A proxy in a test",
        "Faults of a proxy over HTTP",
    }  # test_proxy_page.py
    tested |= {block.section for block in readme.blocks([TRACE])}  # test_trace_page.py
    without = {
        (block.section, text)
        for block in readme.blocks()
        if block.section not in tested.union(PIPELINE)
        for text in (readme.commands([block]) or [block.text])
        if readme.reason_not_to_run(text) is None
    }
    assert not without


def test_no_reason_is_left_over() -> None:
    texts = [*readme.commands(readme.blocks()), *(block.text for block in readme.blocks())]
    unused = {
        start
        for start in readme.NOT_RUN
        if not any(text.lstrip().startswith(start) for text in texts)
    }
    assert not unused


def test_pip_commands_name_existing_extras() -> None:
    extras = metadata("minibroker").get_all("Provides-Extra") or []
    lines = [line for line in readme.commands(readme.blocks()) if line.startswith("pip install")]
    extras_of_lines = [
        re.fullmatch(r"pip install (?:\.|'\.\[(\w+)\]'( [\w-]+)?)", line) for line in lines
    ]
    assert [match and match[1] in {None, *extras} for match in extras_of_lines] == [True] * len(
        lines
    )


def test_make_knows_each_target() -> None:
    pages = [*readme.PAGES, ROOT / "CONTRIBUTING.md"]
    lines = [line for line in readme.commands(readme.blocks(pages)) if line.startswith("make ")]
    assert len(lines) > 1
    for line in lines:
        assert re.search(rf"^{line.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_first_commands_and_a_look_at_what_they_left(tmp_path: Path) -> None:
    first, *clients = commands(readme.TOP)
    assert commands("A broker") == [first, *clients]  # the first page of docs/
    assert recipe_of("run") == f"{first} --listen 127.0.0.1:9092"  # as without the flag
    with serving(f"{first} --listen 127.0.0.1:0", tmp_path) as address:
        run_all(
            [f"{command} --bootstrap {address}" for command in clients],
            tmp_path,
            address,
            {
                "echo hello | minibroker produce": lambda printed: (
                    confluent_consume(address, "greetings", 1) == ["hello"] and not printed
                ),
                "minibroker consume": lambda printed: printed == "hello\n",
            },
        )
        commit_in_partition_7(address)
    assert [path.name for path in tmp_path.iterdir()] == ["minibroker-data"]
    run_all(
        commands("Looking inside"),
        tmp_path,
        address,
        {
            "minibroker dump-log --print-data-log": lambda printed: (
                "Dumping minibroker-data/orders-0/00000000000000000000.log" in printed
                and "payload: an order" in printed
            ),
            "minibroker dump-log --offsets-decoder": lambda printed: (
                "payload: " in printed and GROUP_IN_PARTITION_7 in printed
            ),
            "minibroker check-log": lambda printed: printed.endswith("sound\n"),
        },
    )


def test_a_broker_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    up, *others = commands("In the background")
    listening = "minibroker listening on 127.0.0.1:"
    assert run_command(f"{up} --listen 127.0.0.1:0", tmp_path).startswith(listening)
    run_all(
        others,
        tmp_path,
        "",
        {
            "minibroker status": lambda printed: "topics   1\n" in printed,
            "minibroker reset": lambda printed: printed.startswith(listening),
            "minibroker stop": lambda printed: printed == "minibroker stopped\n",
        },
    )
    assert (tmp_path / "minibroker" / "broker.log").exists()


GROUP_IN_PARTITION_7 = "group-9"


def commit_in_partition_7(address: str) -> None:
    """Write a record to `orders`, and let a group read it."""
    producer = Producer({"bootstrap.servers": address})
    producer.produce("orders", b"an order")
    assert producer.flush(SECONDS) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP_IN_PARTITION_7})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()


def test_a_broker_from_a_test_in_any_language(tmp_path: Path, monkeypatch: Any) -> None:
    """The block in Python, with a client inserted at its place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", environment()["PATH"])
    names: dict[str, Any] = {"use": lambda address: answers.append(round_trip(address))}
    answers: list[list[str]] = []
    text = example("Starting it")
    assert "\n...\n" in text
    exec(text.replace("\n...\n", "\nuse(address)\n"), names)
    names["broker"].stdout.close()
    assert answers == [["value"]]
    assert names["broker"].returncode == 0
    assert list(tmp_path.iterdir()) == []


def round_trip(address: str) -> list[str]:
    producer = Producer({"bootstrap.servers": address})
    producer.produce("topic", b"value")
    assert producer.flush(SECONDS) == 0
    return confluent_consume(address, "topic", 1)


@pytest.mark.parametrize("section", TESTS_IN_PYTHON)
def test_the_tests_in_python_pass(tmp_path: Path, section: str) -> None:
    """Run them as a user does: pasted into a file, by pytest in a process of its own."""
    (tmp_path / "my_service.py").write_text(example(SERVICE_UNDER_TEST))
    (tmp_path / "test_pasted.py").write_text(example(section))
    options = "-q -W error -o asyncio_default_fixture_loop_scope=function -p no:cacheprovider"
    printed = run_command(f"python -m pytest {options}", tmp_path)
    passed = re.search(r"(\d+) passed", printed)
    assert passed is not None, printed
    assert int(passed[1]) >= example(section).count("def test_")  # one may run several times


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_three_brokers_with_one_command(tmp_path: Path) -> None:
    serve, look = commands("With one command")
    printed = [block.text for block in readme.blocks() if block.section == "With one command"]
    assert printed[-1] == "minibroker listening on 127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094\n"
    with serving(f"{serve} --listen 127.0.0.1:0", tmp_path) as address:
        command = re.sub(r"-b \S+", f"-b {address}", look)
        output = run_command(command, tmp_path)
    assert " 3 brokers:" in output
    assert output.count("leader") == 6
    assert all(
        len(replicas.split(",")) == 3 for replicas in re.findall(r"replicas: (\S+),", output)
    )
    data = tmp_path / "minibroker-data"
    assert {"broker-0", "broker-1", "broker-2"} < {path.name for path in data.iterdir()}


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_a_secured_broker(tmp_path: Path) -> None:
    serve, look = commands("A secured broker")
    with serving(f"{serve} --listen 127.0.0.1:0", tmp_path) as address:
        run_all(
            [look],
            tmp_path,
            address,
            {"kcat": lambda printed: f"broker 0 at {address} (controller)" in printed},
        )


def test_users_from_a_file(tmp_path: Path) -> None:
    serve, _ = commands("With one flag")
    (tmp_path / "users").write_text("alice:secret\nbob:other\n")
    names = serve.split(" --user")[0]
    with serving(f"{names} --user @users --listen 127.0.0.1:0", tmp_path) as address:
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        bob = {**login, "sasl.username": "bob", "sasl.password": "other"}
        producer = Producer({"bootstrap.servers": address, **bob})
        assert producer.list_topics(timeout=SECONDS).brokers


def test_a_certificate_with_one_flag(tmp_path: Path) -> None:
    _, serve = commands("With one flag")
    with serving(f"{serve} --listen 127.0.0.1:0", tmp_path) as address:
        authority = tmp_path / "minibroker-data-tls" / "ca.pem"
        tls = {"security.protocol": "SSL", "ssl.ca.location": str(authority)}
        producer = Producer({"bootstrap.servers": address, **tls})
        assert producer.list_topics(timeout=SECONDS).brokers


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_control_api_by_hand(tmp_path: Path) -> None:
    serve, *calls = commands("From any language")
    control = f"127.0.0.1:{free_port()}"
    with serving(serve.replace("127.0.0.1:9093", control), tmp_path) as address:
        wait_until((tmp_path / "ready").exists, "the ready file is there")
        assert (tmp_path / "ready").read_text().splitlines() == [
            f"minibroker listening on {address}",
            f"minibroker control on http://{control}",
        ]
        before_ms = time.time() * 1000

        def faults() -> list[dict[str, Any]]:
            rules: list[dict[str, Any]] = json.loads(
                run_command(f"curl -s {control}/faults", tmp_path)
            )
            return rules

        run_all(
            [
                call.replace("curl", "curl -sS", 1).replace("127.0.0.1:9093", control)
                for call in calls
            ],
            tmp_path,
            address,
            {
                f"curl -sS {control}/health/ready": lambda text: json.loads(text)["ready"],
                f"curl -sS {control}/metrics": lambda text: "\nkafka_" in text,
                f"curl -sS {control}/faults": lambda _: (
                    [(fault["id"], fault["error"], fault["times"]) for fault in faults()]
                    == [(1, "NOT_LEADER_OR_FOLLOWER", 2)]
                ),
                "curl -sS -X DELETE": lambda _: faults() == [],
                f"curl -sS {control}/clock": lambda text: (
                    json.loads(text)["now_ms"] - before_ms >= 600_000
                ),
            },
        )


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_schema_registry_by_hand(tmp_path: Path) -> None:
    serve, *calls = commands("A schema registry")
    registry = f"127.0.0.1:{free_port()}"
    line = serve.replace("127.0.0.1:8081", registry)
    with serving(f"{line} --listen 127.0.0.1:0 --ready-file ready", tmp_path) as address:
        wait_until((tmp_path / "ready").exists, "the ready file is there")
        assert (tmp_path / "ready").read_text().splitlines() == [
            f"minibroker listening on {address}",
            f"minibroker registry on http://{registry}",
        ]
        printed = [
            json.loads(run_command(call.replace("127.0.0.1:8081", registry), tmp_path))
            for call in calls
        ]
    latest = {"subject": "orders-value", "version": 1, "id": 1, "schema": '"string"'}
    assert printed == [{"id": 1}, latest, {"compatibility": "FULL"}]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_records_over_http_by_hand(tmp_path: Path) -> None:
    serve, *_ = commands("From any language")
    control = f"127.0.0.1:{free_port()}"
    with serving(serve.replace("127.0.0.1:9093", control), tmp_path) as address:
        wait_until((tmp_path / "ready").exists, "the ready file is there")
        calls = [
            call.replace("curl", "curl -sS", 1)
            .replace("127.0.0.1:9093", control)
            .replace("timeout_ms=10000", "timeout_ms=0")
            for call in commands("Records, seeds and waits")
        ]
        place = {"partition": 0, "offset": 0}
        run_all(
            calls,
            tmp_path,
            address,
            {
                f"curl -sS {control}/topics/orders/records -d": lambda text: (
                    json.loads(text) == {"records": [place]}
                ),
                f"curl -sS '{control}/topics/orders/records?format": lambda text: (
                    [record["value"] for record in json.loads(text)["records"]] == [{"amount": 12}]
                ),
                "curl -sS -H": lambda _: (tmp_path / "orders.jsonl").read_text().count("\n") == 1,
                f"curl -sS {control}/seeds": lambda text: (
                    json.loads(text)["records"] == {"orders": 1}
                ),
                f"curl -sS '{control}/groups": lambda text: "no such group" in text,
            },
        )


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_topics_and_groups_over_http_by_hand(tmp_path: Path) -> None:
    serve, *_ = commands("From any language")
    control = f"127.0.0.1:{free_port()}"
    with serving(serve.replace("127.0.0.1:9093", control), tmp_path):
        wait_until((tmp_path / "ready").exists, "the ready file is there")
        answers = [
            json.loads(
                run_command(
                    call.replace("curl", "curl -sS --fail", 1).replace("127.0.0.1:9093", control),
                    tmp_path,
                )
            )
            for call in commands("Look and change")
            if "--no-buffer" not in call
        ]
    creation, settings, offsets, group, transactions, *_, deleted = answers
    assert (creation["name"], len(creation["partitions"]), deleted) == (
        "invoices",
        2,
        {"name": "invoices"},
    )
    own = {setting["name"] for setting in settings if not setting["is_default"]}
    assert own == {"retention.ms"}
    assert [place["new_offset"] for place in offsets] == [0, 0]
    assert (group["group"], group["lag"], transactions["transactions"]) == ("audit", 0, [])


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_tokens_and_tls_of_the_control_api(tmp_path: Path) -> None:
    make, *calls = commands("Access")
    run_command(make, tmp_path)
    for serve, ask in zip(calls[::2], calls[1::2], strict=True):
        port = str(free_port())
        with serving(f"{serve} --listen 127.0.0.1:0".replace("9093", port), tmp_path):
            call = ask.replace("curl", "curl -sS --fail").replace("9093", port)
            printed = run_command(call, tmp_path)
            assert "\nkafka_" in printed or json.loads(printed)["ready"]
            if "read.token" in call:
                refused = call.replace("-sS --fail", "-sS -X POST").replace("metrics", "reset")
                assert "only reads" in run_command(refused, tmp_path)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("section", CONSOLE)
def test_the_console_is_at_its_address(tmp_path: Path, section: str) -> None:
    (serve,) = commands(section)
    control = f"127.0.0.1:{free_port()}"
    command = f"{serve} --listen 127.0.0.1:0".replace("127.0.0.1:9093", control)
    with serving(command, tmp_path):
        page = run_command(f"curl -sS -H 'Accept: text/html' {control}", tmp_path)
        assert 'src="/console/console.js"' in page
        as_a_page = f"curl -sS -H 'Sec-Fetch-Site: same-origin' {control}/views"
        may_write = json.loads(run_command(as_a_page, tmp_path))["may_write"]
        assert may_write is ("--console-read-only" not in serve)


def test_the_commands_of_the_way_to_kafka_and_back(tmp_path: Path) -> None:
    """Kafka's own commands are left out: in tests/outgrowing it starts, here nobody serves."""
    hand_over, take_back, serve, hand_over_of_three = commands(OUTGROWING)
    (start_of_kafka, *starts_of_three) = [
        command
        for command in readme.commands(b for b in readme.blocks() if b.section == OUTGROWING)
        if command.startswith("kafka-")
    ]
    with serving(f"{serve} --listen 127.0.0.1:0 --topic t:3", tmp_path):
        pass
    assert start_of_kafka in run_command(hand_over, tmp_path)
    assert f"\n{serve} --data-dir minibroker-data\n" in run_command(take_back, tmp_path)
    with serving(f"{serve} --listen 127.0.0.1:0", tmp_path) as address:
        listing = run_command(f"minibroker topics --bootstrap {address}", tmp_path)
        assert re.search(r"^  t +3 +1 +0 ", listing, re.MULTILINE)
    directory = tmp_path / "three"
    directory.mkdir()
    with serving("minibroker serve --brokers 3 --listen 127.0.0.1:0", directory):
        pass
    output = run_command(hand_over_of_three, directory)
    assert [line for line in output.splitlines() if line.startswith("kafka-")] == starts_of_three
