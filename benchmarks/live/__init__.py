"""A live service to experiment on: redis under a load that drifts, and what the guards take."""
