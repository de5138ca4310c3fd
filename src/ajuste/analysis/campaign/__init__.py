"""Campaigns: many proposals for one goal, one error budget over all of them; pure."""
