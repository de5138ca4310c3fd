"""A study from plan to verdict, on a testbed."""
