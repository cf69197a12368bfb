"""The store in Pinecone."""
