"""The plots of a report as files of their own, drawn without a browser."""
