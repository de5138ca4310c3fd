"""The shape of a metric over the levels of numeric factors: regions, the set of the best, what goes along with it."""
