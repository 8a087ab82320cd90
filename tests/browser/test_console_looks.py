"""Every scene of the console: accessible, light and dark, and as wide as the window."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import accessibility_checker
from tests.browser.content import OPTIONS, SCENES, filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.browser.chromium import BrowserWatch, ConsolePage
    from tests.browser.conftest import ConsoleBroker

_EXCESS = "return document.documentElement.scrollWidth - innerWidth"
_UNFOLD = "for (const one of document.querySelectorAll('details')) one.open = true"
_FOLLOW_FOCUS = """
const reach = "a[href], button, input, select, textarea, summary, [tabindex='0']";
const able = () =>
  [...document.querySelectorAll(reach)].filter((one) => one.checkVisibility() && !one.disabled);
const label = (one) => `${one.tagName} ${one.name || one.textContent.slice(0, 40) || one.type}`;
const main = document.querySelector("main");
const first = main.contains(document.activeElement) ? document.activeElement : main;
const walk = { steps: 0, problems: [], last: first };
const follow = ({ target }) => {
  if (!walk.last || target === first) return; // it begins anew behind the end
  const { outlineStyle, outlineWidth } = getComputedStyle(target);
  if (outlineStyle === "none" || parseFloat(outlineWidth) < 1) {
    walk.problems.push(`not visible: ${label(target)}`);
  }
  const all = able();
  if (!all.includes(target)) return; // a place that scrolls
  const { last } = walk;
  if (!last.isConnected) { // its row has gone meanwhile
    walk.last = target;
    return;
  }
  const isBehind = (one) =>
    last.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING;
  const next = all.find(isBehind);
  walk.last = next && target;
  if (!next) return;
  walk.steps += 1;
  if (next !== target) walk.problems.push(`${label(target)} comes before ${label(next)}`);
};
main.addEventListener("focusin", follow);
window.endWalk = () => {
  main.removeEventListener("focusin", follow);
  return [walk.steps, walk.problems];
};
"""
"""Follows the focus in the view: steps, and problems."""
DIALOGS = ("topic-delete", "topic-setting")
STEPS = 50
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


def test_a_keyboard_walks_each_scene_in_order_and_the_focus_is_visible(
    full_page: ConsolePage,
) -> None:
    faults: dict[str, list[str]] = {}
    for name, scene in SCENES.items():
        scene.show(full_page)
        if name in DIALOGS:
            continue
        full_page.driver.execute_script(_UNFOLD)
        full_page.driver.execute_script(_FOLLOW_FOCUS)
        full_page.driver.switch_to.active_element.send_keys(Keys.TAB * STEPS)
        steps, problems = full_page.driver.execute_script("return endWalk()")
        faults |= {name: problems} if problems else {}
        assert steps > 3, name
    assert faults == {}, json.dumps(faults, indent=2)


@pytest.mark.parametrize("name", DIALOGS)
def test_escape_closes_a_dialog_and_the_focus_returns(full_page: ConsolePage, name: str) -> None:
    SCENES[name].show(full_page)
    in_dialog = "return document.activeElement.closest('dialog') !== null"
    assert full_page.driver.execute_script(in_dialog)
    full_page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    full_page.until(lambda: full_page.find_all("dialog") == [])
    assert full_page.driver.switch_to.active_element.text == SCENES[name].opener
    assert full_page.find("h1").text == SCENES[name].title


def test_a_view_that_comes_closes_the_dialog_of_the_last_one(full_page: ConsolePage) -> None:
    for name in DIALOGS:
        SCENES[name].show(full_page)
        full_page.go("groups")
        full_page.until(lambda: full_page.find("h1").text == "Groups")
        assert full_page.find_all("dialog") == []
