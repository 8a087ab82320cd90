"""The life that a broker and a cluster have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.testing import Broker, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.testing.in_process import InProcess

KINDS = [(Broker, "broker"), (lambda: Cluster(2), "cluster")]


@pytest.mark.parametrize(("make", "noun"), KINDS)
def test_calls_need_a_start(make: Callable[[], InProcess], noun: str) -> None:
    served = make()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=f"this {noun} is not running: use it in a with"):
            served.call(lambda: None)
        served.start()
        assert served.call(lambda: 1) == 1
        with pytest.raises(RuntimeError, match="running: stop it before"):
            served.start()
        served.stop()
        served.stop()


@pytest.mark.parametrize(("make", "noun"), KINDS)
async def test_a_loop_may_start_it_too(make: Callable[[], InProcess], noun: str) -> None:
    assert noun
    async with make() as served:
        assert served.call(lambda: 1) == 1


@pytest.mark.parametrize("make", [Broker, Cluster])
def test_data_without_a_directory_go_at_the_end(
    make: Callable[..., InProcess], tmp_path: Path
) -> None:
    served = make()
    with served:
        own = Path(served._own_dir or "")
        assert own.is_dir()
    assert not own.exists()
    kept = make(data_dir=tmp_path / "new" / "data")
    with kept:
        assert kept._own_dir is None
    assert list((tmp_path / "new" / "data").iterdir())
