"""Reports of recorded trials: scheduling, costs, and where decisions part."""
