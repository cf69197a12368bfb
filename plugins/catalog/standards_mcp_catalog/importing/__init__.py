"""Import, rename, remove and export the standards of a store."""
