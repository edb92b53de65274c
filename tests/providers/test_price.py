"""What tokens cost."""

from __future__ import annotations

import pytest

from thena_core.providers import Price


@pytest.mark.behaviour("V07")
@pytest.mark.parametrize(
    ("price", "cost"),
    [(Price(2.0, 8.0), 2.8), (Price(2.0, 8.0, cached=0.5), 1.9)],
    ids=["no-cache-price", "cache-price"],
)
def test_cost_of_a_call(price: Price, cost: float) -> None:
    """Cached tokens are priced apart where they have a price."""
    assert price.of(1_000_000, 100_000, 600_000) == pytest.approx(cost)
