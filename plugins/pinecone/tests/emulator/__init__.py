"""A Pinecone of our own for tests."""
