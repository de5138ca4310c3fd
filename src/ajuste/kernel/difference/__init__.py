"""What differs between the build options of two kernels, and why."""
