"""The page cache: which pages of a file are in memory, and prefetching others.

All of it is advice: a system that takes none reads what it needs when it needs it,
and no answer depends on it.
"""

import os
import weakref
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PAGE = 4096
FEW_ROWS = 16
# A look at a page is a system call, so only a sample of the rows is looked at, and a
# smaller one once all were in memory eight times in a row.
LOOKED_AT, LOOKED_AT_IF_SURE = 16, 4
SURE_AFTER = 8
# The default read-ahead window of Linux block devices.
_ONE_WISH = 1 << 17


class FilePages:
    """An open file, any part of which may be in memory or not."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)
        self.close = weakref.finalize(self, os.close, self._descriptor)
        self._held_in_a_row = 0

    @property
    def size(self) -> int:
        """How many bytes the file has now."""
        return os.fstat(self._descriptor).st_size

    def held(self, offset: int) -> bool | None:
        """Return whether the page at *offset* is in memory; None if unknown."""
        flag = getattr(os, "RWF_NOWAIT", None)
        if flag is None:
            return None
        try:
            # RWF_NOWAIT fails instead of reading from the disk; mincore() would need
            # the mapping.
            os.preadv(self._descriptor, [bytearray(1)], offset, flag)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True

    def want(self, offset: int, length: int) -> None:
        """Have these bytes read into memory, without waiting for them.

        Linux reads at most the disk's own read-ahead per call, 128 KiB unless it was
        configured, and drops the rest, hence the loop.
        """
        advise = getattr(os, "posix_fadvise", None)
        if advise is not None:
            for start in range(offset, offset + length, _ONE_WISH):
                most = min(_ONE_WISH, offset + length - start)
                advise(self._descriptor, start, most, os.POSIX_FADV_WILLNEED)

    def bring(self, offset: int, length: int) -> None:
        """Read these bytes into memory and nowhere else; other threads go on.

        Sent to nowhere, they are not copied: measured, a fifth of the processor time
        of asking for them, and a fiftieth of reading them.
        """
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            end = offset + length
            while offset < end:
                sent = os.sendfile(nowhere, self._descriptor, offset, end - offset)
                if not sent:
                    return
                offset += sent
        except OSError:
            self.want(offset, end - offset)
        finally:
            os.close(nowhere)

    def want_rows(self, rows: NDArray[np.integer], width: int) -> None:
        """Have *rows* of *width* bytes read at once, if some may be missing.

        Read one after the other, each would wait for the disk alone. Asking for what
        is there takes as long as using it, so it is not done any more once all that
        were looked at were there, several times in a row, until one is not.
        """
        if len(rows) < FEW_ROWS:
            return
        sure = self._held_in_a_row >= SURE_AFTER
        step = max(1, len(rows) // (LOOKED_AT_IF_SURE if sure else LOOKED_AT))
        if all(self.held(row * width) is not False for row in rows[::step].tolist()):
            self._held_in_a_row += 1
        else:
            self._held_in_a_row, sure = 0, False
        if not sure:
            for offset, length in stretches(rows, width):
                self.want(offset, length)


def stretches(rows: NDArray[np.integer], width: int) -> list[tuple[int, int]]:
    """Return where the pages of *rows* lie, neighbours together, in order."""
    start = np.sort(rows).astype(np.int64) * width
    first, last = start // PAGE, (start + width - 1) // PAGE
    apart = np.flatnonzero(first[1:] > last[:-1] + 1) + 1
    begins = first[np.concatenate([[0], apart])]
    ends = last[np.concatenate([apart - 1, [len(last) - 1]])] + 1
    lengths = (ends - begins) * PAGE
    return list(zip((begins * PAGE).tolist(), lengths.tolist(), strict=True))
