"""The catalogue of tunables, workloads, metrics, kernels and studies, as TOML, and its loader."""
