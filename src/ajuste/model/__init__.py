"""What there is: the words of Ajuste as frozen data. This package imports nothing else of ours."""
