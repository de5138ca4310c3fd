"""Print the table of docs/explanation/modelled-machine.md."""

from benchmarks.structures import table

print(table())
