"""The collector pauses, nests, and comes back, whatever happens inside."""

from __future__ import annotations

import gc
import threading

import pytest

from irgrad.engine.support.pause import no_collections


def test_it_nests_and_restores() -> None:
    assert gc.isenabled()
    with no_collections():
        with no_collections():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), no_collections():
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with no_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_last_thread_out_turns_it_on() -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with no_collections():
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(30)
    with no_collections():
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()
