"""The parts of `make release`: versions, the changelog, the list of components, the source archive."""
