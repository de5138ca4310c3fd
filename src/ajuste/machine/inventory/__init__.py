"""Inventory of the machine: a document of facts, taken in milliseconds, that names neither the machine nor its user."""
