"""Everything with weights or a model server behind it."""
