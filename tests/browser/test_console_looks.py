"""Every scene of the console: accessible, light and dark, and as wide as the window."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.chromium import accessibility_checker
from tests.browser.content import OPTIONS, SCENES, filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.browser.chromium import BrowserWatch, ConsolePage
    from tests.browser.conftest import ConsoleBroker

_EXCESS = "return document.documentElement.scrollWidth - innerWidth"
_UNFOLD = "for (const one of document.querySelectorAll('details')) one.open = true"
_CHECK = "axe.run().then((result) => arguments[0](result.violations))"


@pytest.fixture(scope="module")
def full_broker(start: Callable[..., ConsoleBroker]) -> Iterator[ConsoleBroker]:
    """Yield three brokers with topics, records, schemas, groups, transactions, quotas, faults."""
    broker = start(*OPTIONS)
    with filled(broker):
        yield broker


@pytest.fixture
def full_page(watch: BrowserWatch, full_broker: ConsoleBroker) -> ConsolePage:
    """Return their console."""
    page = watch.page(full_broker.url)
    page.open("topics")
    return page


def test_scenes_are_of_every_view(full_page: ConsolePage) -> None:
    views = {anchor.get_attribute("data-view") for anchor in full_page.find_all("#nav a")}
    assert {scene.view.partition("/")[0].partition("?")[0] for scene in SCENES.values()} == views


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_scene_has_a_serious_fault_of_accessibility(full_page: ConsolePage, scheme: str) -> None:
    full_page.prefer(scheme)
    full_page.driver.execute_script(accessibility_checker())
    faults: dict[str, Any] = {}
    for name, scene in SCENES.items():
        scene.show(full_page)
        full_page.driver.execute_script(_UNFOLD)
        faults |= {
            f"{name}: {violation['id']}": [node["html"] for node in violation["nodes"]][:3]
            for violation in full_page.driver.execute_async_script(_CHECK)
            if violation["impact"] in ("serious", "critical")
        }
    assert faults == {}, json.dumps(faults, indent=2)


@pytest.mark.parametrize("width", [360, 1024, 1600])
def test_no_scene_is_wider_than_the_window(full_page: ConsolePage, width: int) -> None:
    full_page.resize(width)
    for name, scene in SCENES.items():
        scene.show(full_page)
        assert full_page.driver.execute_script(_EXCESS) <= 0, name
        full_page.driver.execute_script(_UNFOLD)
        assert full_page.driver.execute_script(_EXCESS) <= 0, f"{name}, unfolded"
