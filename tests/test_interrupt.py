"""Ctrl-C with keep_partial: the iteration ends, the model is fitted as far as it went; a second one stops at once."""

import os
import signal
import threading

import numpy as np
import pytest
from problems import blobs

from k2means import K2Means
from k2means.interrupt import Interruption


def press_at(iteration, times=1):
    """A hook that presses Ctrl-C when this iteration is told."""

    def step(self, record):
        if record.iteration == iteration:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        return self.asked

    return step


def test_the_model_is_fitted_as_far_as_it_went(monkeypatch):
    x = blobs(2000, 6, 50, np.float32)
    model = K2Means(50, random_state=0, keep_partial=True, tol=0)
    monkeypatch.setattr(Interruption, "__call__", press_at(3))
    with pytest.raises(KeyboardInterrupt, match="after iteration 3"):
        model.fit(x)
    monkeypatch.undo()
    three = K2Means(50, random_state=0, tol=0, max_iter=3).fit(x)
    assert model.n_iter_ == 3
    assert model.cluster_centers_.tobytes() == three.cluster_centers_.tobytes()
    assert (model.labels_ == model.predict(x)).all()


def test_a_second_one_stops_at_once_and_leaves_the_model_as_it_was(monkeypatch):
    x = blobs(2000, 6, 50, np.float32)
    model = K2Means(50, random_state=0, keep_partial=True, tol=0)
    monkeypatch.setattr(Interruption, "__call__", press_at(3, times=2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(x)
    assert not hasattr(model, "labels_")


def test_without_keep_partial_nothing_changes_for_signals():
    x = blobs(500, 4, 20, np.float32)
    before = signal.getsignal(signal.SIGINT)
    K2Means(20, random_state=0).fit(x)
    K2Means(20, random_state=0, keep_partial=True).fit(x)
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_of_the_main_thread_it_fits_as_ever():
    x, done = blobs(500, 4, 20, np.float32), []
    worker = threading.Thread(target=lambda: done.append(K2Means(20, random_state=0, keep_partial=True).fit(x)))
    worker.start()
    worker.join()
    assert done[0].labels_.tobytes() == K2Means(20, random_state=0).fit(x).labels_.tobytes()


def test_of_several_runs_the_best_so_far_is_kept(monkeypatch):
    x = blobs(800, 4, 30, np.float32)
    model = K2Means(30, n_init=5, random_state=0, keep_partial=True)
    monkeypatch.setattr(Interruption, "__call__", press_at(2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(x)
    assert model.n_iter_ == 2
