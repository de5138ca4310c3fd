"""The first layout."""

from __future__ import annotations

from alembic import op

from ajuste.store.schema import METADATA

revision = "1"
down_revision = None


def upgrade() -> None:
    """Make all tables. With a second layout these become a copy of their own, and that one what alters them."""
    METADATA.create_all(op.get_bind())
