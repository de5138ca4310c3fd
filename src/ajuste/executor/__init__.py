"""The places that run trials, behind one interface: the host is one; packages add others."""
