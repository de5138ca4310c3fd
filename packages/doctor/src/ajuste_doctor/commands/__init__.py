"""The command of ajuste-doctor."""
