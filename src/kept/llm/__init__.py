"""Language models behind OpenAI-compatible services, and what they are used for."""
