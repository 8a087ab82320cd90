"""Every key has one line in our words; the texts are not loaded before somebody asks."""

from __future__ import annotations

import subprocess
import sys

from minibroker.broker.config.broker_keys import BROKER_KEYS
from minibroker.broker.config.documentation import _load, line_of
from minibroker.broker.config.entity_keys import CLIENT_METRICS_KEYS, GROUP_KEYS
from minibroker.broker.config.topic_keys import TOPIC_KEYS

SCOPES = {
    "broker": BROKER_KEYS,
    "topic": TOPIC_KEYS,
    "group": GROUP_KEYS,
    "client-metrics": CLIENT_METRICS_KEYS,
}


def test_every_key_has_a_line() -> None:
    missing = [
        (scope, key) for scope, keys in SCOPES.items() for key in keys if not line_of(scope, key)
    ]
    assert missing == []
    assert line_of("broker", "nobody.knows") is None


def test_every_line_has_a_key_and_is_a_sentence() -> None:
    for (scope, name), line in _load().items():
        assert name in SCOPES[scope], name
        assert line.endswith("."), name
        assert line[0].isupper() or line.startswith(("min.", "gzip", "lz4", "zstd")), name


def test_a_topics_key_has_the_line_of_its_broker_key() -> None:
    assert line_of("topic", "retention.ms") == line_of("broker", "log.retention.ms")


def test_start_up_does_not_load_the_texts() -> None:
    code = (
        "import sys, minibroker.broker.config.dynamic, minibroker.broker.config.describe; "
        "print([m for m in sys.modules if 'documentation' in m or 'entity_keys' in m])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
