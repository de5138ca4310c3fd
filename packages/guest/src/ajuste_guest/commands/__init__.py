"""Commands of the package."""
