"""A kernel's build options: what a .config says, and why Kconfig gave an option its value."""
