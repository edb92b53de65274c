"""For tests of tools, agents and plugins: a provider that plays a script."""

from thena_core.testing.provider import FakeProvider

__all__ = ["FakeProvider"]
