"""`minibroker serve --registry` as a process: its users, its certificate, wrong options."""

from __future__ import annotations

import base64
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from tests.support.broker import Minibroker
from tests.support.certificates import authority_pem, broker_certificate, pem_of
from tests.support.processes import ManagedProcess, free_port
from tests.support.registry_calls import ask, posted, register

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 60


def basic(user: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"}


@pytest.fixture(scope="module")
def users_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a registry with users."""
    directory = tmp_path_factory.mktemp("users")
    (directory / "users").write_text("bob:b:c\n")
    port = free_port()
    words = ["--registry", f"127.0.0.1:{port}", "--registry-user", "alice:secret"]
    words += ["--registry-user", f"@{directory / 'users'}"]
    broker = Minibroker(directory / "data", directory / "log", arguments=words)
    broker.start()
    yield f"http://127.0.0.1:{port}"
    broker.stop()


def test_user_with_the_right_password_is_served(users_url: str) -> None:
    for user in ("alice:secret", "bob:b:c"):
        assert ask(users_url, "GET", "/subjects", headers=basic(user)).status == 200
    config = {"url": users_url, "basic.auth.user.info": "alice:secret"}
    with SchemaRegistryClient(config) as client:
        assert client.register_schema("a", Schema('"int"', "AVRO")) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {},
        basic("alice:wrong"),
        basic("alice:"),
        basic("nobody:secret"),
        basic("alice"),
        {"Authorization": "Basic !"},
        {"Authorization": "Basic \xe9"},
        {"Authorization": "Bearer secret"},
    ],
)
def test_caller_without_the_password_is_not_served(users_url: str, headers: dict[str, str]) -> None:
    answer = ask(users_url, "GET", "/subjects", headers=headers)
    assert (answer.status, answer.code) == (401, 401)
    assert answer.headers["www-authenticate"].startswith("Basic ")


def test_client_hears_that_its_password_is_wrong(users_url: str) -> None:
    config = {"url": users_url, "basic.auth.user.info": "alice:wrong"}
    with (
        SchemaRegistryClient(config) as client,
        pytest.raises(SchemaRegistryError, match="Unauthorized"),
    ):
        client.get_subjects()


def test_registry_is_served_over_https(tmp_path: Path) -> None:
    (tmp_path / "registry.pem").write_text(pem_of(broker_certificate()))
    (tmp_path / "ca.pem").write_text(authority_pem())
    port = free_port()
    words = ["--registry", f"localhost:{port}", "--registry-tls", str(tmp_path / "registry.pem")]
    broker = Minibroker(tmp_path / "data", tmp_path / "log", arguments=words)
    broker.start()
    try:
        config = {
            "url": f"https://localhost:{port}",
            "ssl.ca.location": str(tmp_path / "ca.pem"),
        }
        with SchemaRegistryClient(config) as client:
            assert client.register_schema("a", Schema('"int"', "AVRO")) == 1
    finally:
        broker.stop()


def test_registries_forward_over_https_with_the_name_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "registry.pem").write_text(pem_of(broker_certificate()))
    (tmp_path / "ca.pem").write_text(authority_pem())
    ready = tmp_path / "ready"
    words = ["--brokers", "2", "--ready-file", str(ready), "--registry-user", "alice:secret"]
    words += ["--registry", "localhost:0", "--registry-tls", str(tmp_path / "registry.pem")]
    serve = [sys.executable, "-m", "minibroker", "serve", "--memory", "--listen", "127.0.0.1:0"]
    process = ManagedProcess([*serve, *words], tmp_path / "log")
    try:
        process.wait_until(ready.exists, SECONDS, "two brokers")
        urls = [line.split()[-1] for line in ready.read_text().splitlines()[1:]]
        ids = []
        for number, url in enumerate(urls):
            config = {
                "url": url,
                "ssl.ca.location": str(tmp_path / "ca.pem"),
                "basic.auth.user.info": "alice:secret",
            }
            with SchemaRegistryClient(config) as client:
                ids.append(client.register_schema(f"s{number}", Schema('"int"', "AVRO")))
                assert client.get_latest_version(f"s{number}").schema_id == 1
        assert ids == [1, 1]
    finally:
        process.stop()


def test_control_apis_of_all_brokers_show_a_registry_with_users(tmp_path: Path) -> None:
    """One of them forwards what it is asked, and the caller has no user of the registry."""
    ready = tmp_path / "ready"
    words = ["--brokers", "2", "--ready-file", str(ready), "--control", "127.0.0.1:0"]
    words += ["--registry", "127.0.0.1:0", "--registry-user", "alice:sec:ret"]
    serve = [sys.executable, "-m", "minibroker", "serve", "--memory", "--listen", "127.0.0.1:0"]
    process = ManagedProcess([*serve, *words], tmp_path / "log")
    try:
        process.wait_until(ready.exists, SECONDS, "two brokers")
        lines = ready.read_text().splitlines()
        urls = [line.split()[-1] for line in lines if line.startswith("minibroker control on")]
        for number, url in enumerate(urls):
            posting = (f"{url}/registry", "POST", f"/subjects/s{number}/versions", posted('"int"'))
            assert ask(*posting).body == {"id": 1}
        for url in urls:
            assert ask(f"{url}/registry", "GET", "/subjects").body == ["s0", "s1"]
        assert len(urls) == 2
    finally:
        process.stop()


def test_schemas_are_there_after_a_stop(tmp_path: Path) -> None:
    port = free_port()
    words = ["--registry", f"127.0.0.1:{port}"]
    broker = Minibroker(tmp_path / "data", tmp_path / "log", arguments=words)
    url = f"http://127.0.0.1:{port}"
    broker.start()
    schema_id = register(url, "a", '"int"')
    broker.stop()
    broker.start()
    assert ask(url, "GET", "/subjects/a/versions/latest").body["id"] == schema_id
    assert register(url, "a", '"long"') == schema_id + 1
    broker.stop()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--registry-user", "a:b"], "--registry-user needs --registry HOST:PORT"),
        (["--registry-tls", "SSL"], "--registry-tls needs --registry HOST:PORT"),
        (
            ["--registry", "0.0.0.0:0", "--user", "a:b"],
            "--registry 0.0.0.0:0 can be reached from other machines",
        ),
        (
            ["--registry", "127.0.0.1:0", "--registry-tls", "nothing"],
            "--registry-tls nothing: no listener has this name",
        ),
        (["--registry", "127.0.0.1:0", "--set", "broker.id=-2"], "broker.id"),
        (["--registry", "192.0.2.1:9"], "--registry 192.0.2.1:9: cannot listen"),
        (["--registry", "127.0.0.1:65535", "--brokers", "2"], "65536 is none"),
    ],
)
def test_start_with_wrong_options_says_why(words: list[str], sentence: str) -> None:
    serve = [sys.executable, "-m", "minibroker", "serve", "--memory", "--listen", "127.0.0.1:0"]
    ended = subprocess.run(
        [*serve, *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 1, ended
    assert sentence in ended.stderr.splitlines()[-1]
