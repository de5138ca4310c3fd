"""The sealed evaluator: proposals are explored in the open, and confirmed where their proposer cannot look."""
