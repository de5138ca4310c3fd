"""Switchback experiments: verdicts from slices of time on a live system, under one treatment or another."""
