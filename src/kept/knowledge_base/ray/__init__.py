"""Ingestion spread over a Ray cluster: workers embed, this process writes."""
