"""Milvus for collections beyond one machine; documents stay in a store beside it."""

from kept.stores.milvus.store import MilvusStore, open_store

__all__ = ["MilvusStore", "open_store"]
