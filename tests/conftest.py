"""What holds for every test."""

from hypothesis import settings

# A busy machine is no fault of the code under test: examples are bounded in number, not in time.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")
