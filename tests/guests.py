"""Guests in the tests of the core and of packages that do without them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

in_guests = pytest.mark.skipif(find_spec("ajuste_guest") is None, reason="ajuste_guest is not installed")
"""A test that plans or measures something in guests, which takes their package."""
