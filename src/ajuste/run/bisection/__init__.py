"""Which version, option or revision of a kernel a difference came with."""
