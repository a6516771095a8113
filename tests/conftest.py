"""What holds for every test."""

import os

from hypothesis import settings

# A busy machine is no fault of the code under test: examples are bounded in number, not in time. A gate takes the same
# ones each time, so that it turns red for what changed; everywhere else they are new in every run.
settings.register_profile("any-machine", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("any-machine")

# Where the tests themselves run in a pod, no server of theirs is to watch the cluster around it.
os.environ.pop("KUBERNETES_SERVICE_HOST", None)
