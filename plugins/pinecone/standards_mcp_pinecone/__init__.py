"""The catalog's store in Pinecone; the catalog finds it by an entry point of this wheel."""
