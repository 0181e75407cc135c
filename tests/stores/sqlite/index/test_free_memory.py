"""Free memory: what the machine has, less what a control group forbids."""

from pathlib import Path

import pytest

from kept.stores.sqlite.index.free_memory import free_bytes

GIB = 1 << 30


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Make a machine with 8 GiB available, and ourselves in the group /app/web."""
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    reported = (
        f"MemTotal: 1 kB\nMemAvailable: {8 * GIB // 1024} kB\nHugePages_Total: 0\n"
    )
    (folder / "meminfo").write_text(reported)
    (folder / "self" / "cgroup").write_text("0::/app/web\n")
    return folder


def limited(folder: Path, most: str, used: int, of_files: int, *, v1: bool) -> None:
    """Make the files of a control group."""
    folder.mkdir(parents=True, exist_ok=True)
    names = (
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        if v1
        else ("memory.max", "memory.current", "")
    )
    (folder / names[0]).write_text(f"{most}\n")
    (folder / names[1]).write_text(f"{used}\n")
    reported = f"anon 5\n{names[2]}inactive_file {of_files}\n{names[2]}active_file 0\n"
    (folder / "memory.stat").write_text(reported)


def test_this_machine_has_free_memory() -> None:
    """Where the system reports it, some memory is free, and not more than all."""
    if not Path("/proc/meminfo").exists():
        pytest.skip("this system does not say how much memory is free")

    assert 0 < free_bytes() < 1 << 60


def test_without_a_limit_it_is_what_the_machine_has(proc: Path, tmp_path: Path) -> None:
    """A group that may have all counts for nothing."""
    limited(tmp_path / "groups" / "app" / "web", "max", GIB, 0, v1=False)

    assert free_bytes(proc, tmp_path / "groups") == 8 * GIB


def test_a_group_has_its_limit_less_what_is_in_use(proc: Path, tmp_path: Path) -> None:
    """Pages of files are in use, but can be taken back."""
    groups = tmp_path / "groups"
    limited(groups / "app" / "web", str(4 * GIB), 3 * GIB, 2 * GIB, v1=False)

    assert free_bytes(proc, groups) == 3 * GIB


def test_the_limit_of_a_group_around_ours_counts(proc: Path, tmp_path: Path) -> None:
    """The tightest of all limits decides."""
    groups = tmp_path / "groups"
    limited(groups / "app" / "web", str(4 * GIB), GIB, 0, v1=False)
    limited(groups, str(2 * GIB), GIB, 0, v1=False)

    assert free_bytes(proc, groups) == GIB


def test_older_control_groups_are_understood(proc: Path, tmp_path: Path) -> None:
    """Version 1 has a folder for memory, and other names."""
    (proc / "self" / "cgroup").write_text("5:cpu,cpuacct:/x\n4:memory:/app\n0::/\n")
    groups = tmp_path / "groups"
    limited(groups / "memory" / "app", str(2 * GIB), GIB, GIB // 2, v1=True)

    assert free_bytes(proc, groups) == GIB + GIB // 2


def test_a_group_over_its_limit_has_nothing(proc: Path, tmp_path: Path) -> None:
    """There is never less than nothing."""
    groups = tmp_path / "groups"
    limited(groups / "app" / "web", str(GIB), 2 * GIB, 0, v1=False)

    assert free_bytes(proc, groups) == 0


def test_a_system_without_memory_figures_has_none_free(tmp_path: Path) -> None:
    """So nothing is taken that might be needed."""
    assert free_bytes(tmp_path, tmp_path) == 0
