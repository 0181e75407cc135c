"""The example knowledge base: a fictional company's handbook, and questions on it."""
