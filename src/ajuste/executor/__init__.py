"""The places that run trials, behind one interface: the host; packages add others."""
