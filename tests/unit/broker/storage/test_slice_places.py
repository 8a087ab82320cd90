"""The places of slices that are in use."""

from __future__ import annotations

import gc

from minibroker.broker.storage.slice_places import SlicePlaces


def test_a_slice_has_its_place_as_long_as_it_is_in_use() -> None:
    places = SlicePlaces()
    content = memoryview(bytes(100))
    first, second = content[10:], content[10:]
    places.note(first, "a", 10)
    assert places.place_of(first) == ("a", 10)
    assert places.place_of(second) is None
    assert places.place_of(first[1:]) is None
    assert places.place_of(b"bytes of no file") is None
    del first
    assert not places


def test_a_new_slice_does_not_have_the_place_of_one_that_is_gone() -> None:
    places = SlicePlaces()
    content = memoryview(bytes(100))
    for position in range(50):
        view = content[position:]
        places.note(view, "a", position)
        assert places.place_of(view) == ("a", position)
        del view
        assert places.place_of(content[position:]) is None
    assert not places


def test_the_slices_of_a_file_that_changes_have_no_place() -> None:
    places = SlicePlaces()
    content = memoryview(bytes(100))
    first, second, other = content[1:], content[2:], content[3:]
    places.note(first, "a", 1)
    places.note(second, "a", 2)
    places.note(other, "b", 3)
    places.forget("a")
    assert places.place_of(first) is places.place_of(second) is None
    assert places.place_of(other) == ("b", 3)
    del first, second, other
    assert not places


class Ring:
    """Refers to itself and to a slice, which goes when the collector comes."""

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.ring = self


def test_a_slice_that_the_collector_drops_meanwhile_is_no_error() -> None:
    """The collector may come with any object that is made, so within `forget`, too."""
    content = memoryview(bytes(10_000))
    threshold = gc.get_threshold()
    for allocations in range(0, 700, 50):
        gc.disable()
        places = SlicePlaces()
        views = [content[position:] for position in range(800)]
        for position, view in enumerate(views):
            places.note(view, "a", position)
        gc.collect()
        ring = Ring(content[1:])
        places.note(ring.view, "b", 1)
        del ring
        objects = [Ring(content) for _ in range(allocations)]
        try:
            gc.enable()
            places.forget("c")
        finally:
            gc.set_threshold(*threshold)
        assert len(places) in (800, 801)
        del objects, view
