"""The commands of ajuste-lab."""
