"""A port that listens and is no ZooKeeper."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from minibroker.container.zookeeper_port import dismiss, listen, main
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_connection_is_closed_at_once(tmp_path: Path) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text("clientPort=0\ndataDir=/var/lib/zookeeper/data\n")
    with listen(str(file)) as listening:
        thread = threading.Thread(target=dismiss, args=(listening,))
        thread.start()
        address = ("127.0.0.1", listening.getsockname()[1])
        with socket.create_connection(address, 60) as client:
            assert client.recv(1) == b""
        thread.join(60)


def test_an_impossible_setting_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text("clientPort=many")
    with pytest.raises(ConfigError, match="clientPort=many"):
        listen(str(file))
    assert main([str(tmp_path / "none")]) == 1
    assert "cannot read the configuration file" in capsys.readouterr().err
    with socket.create_server(("", 0)) as taken:
        file.write_text(f"clientPort={taken.getsockname()[1]}")
        assert main([str(file)]) == 1
    assert "in use" in capsys.readouterr().err
