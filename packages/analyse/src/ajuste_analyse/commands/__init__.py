"""The command of ajuste-analyse."""
