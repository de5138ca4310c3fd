"""The commands of ajuste-profiles."""
