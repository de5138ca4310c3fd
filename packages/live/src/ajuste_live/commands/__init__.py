"""The commands of ajuste-live."""
