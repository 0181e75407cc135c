"""Milvus for collections beyond one machine; documents stay in a store beside it."""
