"""Tests of what decides, without servers."""
