"""The commands of ajuste-ci."""
