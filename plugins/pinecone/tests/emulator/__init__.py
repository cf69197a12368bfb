"""An emulator of Pinecone for tests."""
