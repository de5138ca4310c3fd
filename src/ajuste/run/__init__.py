"""A study from plan to verdict; also proofs, bisection, gate, campaigns and live experiments."""
