"""What is known of tunables, workloads, metrics, kernels and studies, as TOML, and its loader."""
