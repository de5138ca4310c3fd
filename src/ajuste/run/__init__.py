"""A study from plan to verdict; also proofs."""
