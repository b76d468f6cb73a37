"""Tests of the decisions of a release, without cargo and without network."""
