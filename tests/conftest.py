"""A busy machine is no failure: examples have no deadline of their own."""

from hypothesis import settings

settings.register_profile("doorward", parent=settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("doorward")
