"""One profile for hypothesis: no deadlines (machines differ), the same examples every time in CI."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "k2means", deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("ci", parent=settings.get_profile("k2means"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "k2means")
