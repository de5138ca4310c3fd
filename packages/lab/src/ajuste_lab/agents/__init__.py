"""The interface of the lab for agents and other programs, with its limits."""
