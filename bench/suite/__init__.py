"""The parts of bench/run.py: what decides is pure and tested, what touches processes stands beside it."""
