"""Free memory: what can be used without evicting or swapping anything."""

from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")
_KIB = 1024
_LIMITS = (
    ("memory.max", "memory.current", ""),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
)


def free_bytes(proc: Path = PROC, groups: Path = GROUPS) -> int:
    """Return the free memory of this machine, or of our control group if that is less.

    Pages of files can be taken back, so they count as free. A system that does not
    say has none.
    """
    try:
        memory = _table(proc / "meminfo")
    except OSError:
        return 0
    machine = memory.get("MemAvailable:", 0) * _KIB
    return max(0, min([machine, *_rooms(proc, groups)]))


def _rooms(proc: Path, groups: Path) -> Iterator[int]:
    """Yield what is left of every limit that this process is under."""
    for folder in _folders(proc, groups):
        for limit, usage, prefix in _LIMITS:
            try:
                most = int((folder / limit).read_text())
                used = int((folder / usage).read_text())
                memory = _table(folder / "memory.stat")
            except (OSError, ValueError):
                continue
            names = (f"{prefix}inactive_file", f"{prefix}active_file")
            yield most - used + sum(memory.get(name, 0) for name in names)


def _folders(proc: Path, groups: Path) -> Iterator[Path]:
    """Yield the folders of our control group and of those around it."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds in {"", "memory"}:
            own = groups / kinds / path.strip("/")
            yield own
            yield from (up for up in own.parents if up.is_relative_to(groups))


def _table(path: Path) -> dict[str, int]:
    """Read lines of a name and a number."""
    rows = (line.split() for line in path.read_text().splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}
