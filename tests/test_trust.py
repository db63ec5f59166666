"""Threads, forks and signals of the user's own do what the user expects."""

import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from problems import Problem, bind, blobs
from subprocesses import run_script
from test_threads import everything

from k2means import GDI, K2, Elkan, Lloyd, PlusPlus, Stop, cluster

METHODS = (Lloyd(), Elkan(), K2(6), K2(6, bounds="hamerly"))


def fit(seed, threads=2):
    x = blobs(2000, 8, 20, np.float32, seed)
    return everything(cluster(x, 20, method=METHODS[seed % 4], init=GDI(), stop=Stop(max_iter=8), n_threads=threads))


def test_fits_in_several_threads_at_once_give_what_each_gives_alone():
    alone = [fit(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fit, range(8))) == alone


def test_joblib_threads_give_what_one_fit_gives():
    assert joblib.Parallel(n_jobs=3, backend="threading")(joblib.delayed(fit)(s) for s in range(4)) == [
        fit(s) for s in range(4)
    ]


def test_joblib_processes_give_what_one_fit_gives():
    x = blobs(500, 4, 8, np.float64)
    got = joblib.Parallel(n_jobs=2, backend="loky")(
        joblib.delayed(cluster)(x, 8, seed=s, n_threads=2) for s in range(2)
    )
    assert [everything(r) for r in got] == [everything(cluster(x, 8, seed=s)) for s in range(2)]


def test_a_fit_in_a_thread_that_is_not_the_main_one_ends():
    # signals are for the main thread; asking for them elsewhere must do no harm
    results = []
    thread = threading.Thread(target=lambda: results.append(fit(0)))
    thread.start()
    thread.join()
    assert results == [fit(0)]


# ---- forks -------------------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(sys.platform != "linux", reason="fork is not safe with system libraries elsewhere")


@needs_fork
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_process_forked_after_a_fit_can_fit(threads):
    script = """
        import os, sys
        import numpy as np
        from k2means import GDI, K2, PlusPlus, cluster
        x = np.random.default_rng(0).normal(size=(5000, 8))
        def fit():
            return [cluster(x, 30, init=init, method=K2(5), n_threads=int(sys.argv[1])).labels.tobytes()
                    for init in (GDI(), PlusPlus())]
        want = fit()
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(0 if fit() == want else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert fit() == want
        print("equal")
    """
    assert run_script(script, threads) == "equal"


@needs_fork
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_engine_lives_on_in_both_processes_after_a_fork(threads):
    script = """
        import os, sys
        import numpy as np
        from k2means import AKM, Elkan, K2, Lloyd, MiniBatch, _core
        from k2means.methods import Problem
        x = np.random.default_rng(0).normal(size=(5000, 8))
        threads = int(sys.argv[1])
        for method in (Lloyd(), Elkan(), K2(5), K2(5, bounds="hamerly"), AKM(5), MiniBatch(spacing=20)):
            problem = Problem(x, None, _core.survey(x, None, threads), x[:30].copy(), None, threads)
            whole, engine = method.bind(problem), method.bind(problem)
            for _ in range(6):
                whole.step()
            for _ in range(3):
                engine.step()
            child = os.fork()
            for _ in range(3):
                engine.step()
            equal = engine.centers().tobytes() == whole.centers().tobytes()
            del engine, whole
            if child == 0:
                os._exit(0 if equal else 1)
            assert equal and os.waitpid(child, 0)[1] == 0
        print("equal")
    """
    assert run_script(script, threads) == "equal"


# ---- the GIL and Ctrl-C ------------------------------------------------------------------------------------------

# Each would take far longer than it takes another thread to count to a million.
LONG = {
    "a large split": "divide(normal(1 << 20, 16), 2, 1 << 30)",
    "many splits": "divide(normal(300_000, 8), 200_000, 50)",
    "k-means++": "_core.plus_plus(normal(300_000, 8), None, 200_000, 1, 0, threads)",
    "greedy k-means++": "_core.plus_plus(normal(300_000, 8), None, 200_000, 8, 0, threads)",
    "an iteration of Lloyd": "engine(Lloyd(), normal(100_000, 64), 30_000).step()",
    "an iteration of Elkan": "engine(Elkan(), normal(20_000, 64), 10_000).step()",
    "an iteration of k2": "engine(K2(30), normal(100_000, 64), 30_000).step()",
    "an iteration of AKM": "engine(AKM(500), normal(100_000, 64), 30_000).step()",
    "an iteration of MiniBatch": "engine(MiniBatch(), normal(100_000, 64), 30_000).step()",
    "the graph of the centers": "engine(K2(30), normal(60_000, 64), 50_000, np.arange(60_000) % 50_000).step()",
    "nearest": "_core.nearest(normal(200_000, 64), normal(20_000, 64), None, threads)",
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("work", LONG, ids=str)
def test_another_thread_runs_and_ctrl_c_stops(work, threads):
    # If the GIL were held the other thread would never send the signal, and the work would run to its end.
    script = f"""
        import os, signal, sys, threading
        import numpy as np
        from k2means import AKM, Elkan, K2, Lloyd, MiniBatch, _core
        from k2means.methods import Problem
        threads = int(sys.argv[1])
        def normal(n, d):
            return np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
        def divide(x, k, iterations):
            return _core.gdi(x, None, _core.survey(x, None, threads), k, iterations, 0, threads)
        def engine(method, x, k, labels=None):
            labels = None if labels is None else labels.astype(np.int32)
            survey = _core.survey(x, None, threads)
            return method.bind(Problem(x, None, survey, x[:k].copy(), labels, threads))
        def press():
            count = 0
            while count < 1_000_000:
                count += 1
            os.kill(os.getpid(), signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=press, daemon=True).start()
        try:
            {LONG[work]}
        except KeyboardInterrupt:
            print("interrupted")
        else:
            print("finished")
    """
    assert run_script(script, threads) == "interrupted"


@pytest.mark.parametrize("threads", [1, 2])
def test_after_ctrl_c_the_next_fit_is_whole(threads):
    x = blobs(2000, 8, 20, np.float64)
    options = {"method": K2(6), "init": PlusPlus(), "n_threads": threads}
    want = everything(cluster(x, 20, **options))

    def interrupt(record):
        if record.iteration == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        cluster(x, 20, on_step=interrupt, **options)
    assert everything(cluster(x, 20, **options)) == want


def test_an_engine_keeps_the_arrays_it_reads():
    x = blobs(500, 8, 20, np.float64)
    want = bind(Lloyd(), Problem(x, x[:20].copy(), None, None))
    engine = bind(Lloyd(), Problem(x.copy(), x[:20].copy(), None, np.ones(len(x))))
    np.full_like(x, np.nan)  # takes the memory of the copy, if that was given back
    for _ in range(3):
        want.step(), engine.step()
    assert engine.centers().tobytes() == want.centers().tobytes()
