"""Ports for servers that cannot choose a free one themselves."""

import os
import socket
from itertools import count

# Below those that the system hands out by itself, to servers and clients alike: what
# is free when it is looked for is free when the server starts, seconds later.
FIRST, MANY, APART = 20_000, 10_000, 97

_tried = count()


def free_port() -> int:
    """Return a free port; the workers of one run get different ones."""
    while True:
        port = FIRST + (os.getpid() * APART + next(_tried)) % MANY
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
