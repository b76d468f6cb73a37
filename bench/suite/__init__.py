"""The parts of bench/run.py. Decisions are pure functions with tests; code that handles processes is separate."""
