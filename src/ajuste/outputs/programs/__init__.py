"""Readers of what programs write, one file each, which nothing lists.

``parse`` reads the output of a workload; the catalogue calls it by the file's name (``parser``). ``TEXTS`` and
``DOCUMENTS`` are the formats of files that ``ajuste analyse`` reads.
"""
