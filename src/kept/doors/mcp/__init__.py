"""The Model Context Protocol: the knowledge base as tools and resources of a client."""
