"""The HTTP service: the knowledge bases of many tenants behind one door."""
