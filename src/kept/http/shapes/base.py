"""The shape that all others are: some members named, more allowed."""

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """An object of which the members that are always there are named."""

    model_config = ConfigDict(extra="allow")
