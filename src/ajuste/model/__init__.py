"""The words of Ajuste as frozen data. This package imports nothing else of ours."""
