"""Tests of the decisions, without servers."""
