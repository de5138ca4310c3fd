"""A distribution's archive, read over HTTP without apt and dpkg: signed lists of packages, and their files.

Source: https://wiki.debian.org/DebianRepository/Format.
"""
