"""The places that run trials, behind one interface: the host and guests."""
