"""Where trials run, behind one interface."""
