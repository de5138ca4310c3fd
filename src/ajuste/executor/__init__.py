"""Where trials run, behind one interface: the host, a guest, a cluster."""
