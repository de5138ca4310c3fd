"""The commands of ajuste-fleet."""
