"""The arguments of what plugins contribute: schemas, and values fitted and checked by them."""
