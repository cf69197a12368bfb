"""The files of the embedded catalog, which the host closes at its end."""

from __future__ import annotations

import gc
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp_catalog import Catalog
from standards_mcp_catalog.plugin import CatalogPlugin

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at open files in /proc"),
]


def held_below(folder: Path) -> set[str]:
    """Return the files below *folder* that this process has open or mapped into its memory."""
    maps = Path("/proc/self/maps").read_text("utf-8").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in maps if line.count("/")}
    for descriptor in Path("/proc/self/fd").iterdir():
        if descriptor.is_symlink():
            paths.add(str(descriptor.readlink()))
    return {path for path in paths if path.startswith(str(folder))}


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True], ids=["cleanly", "by a failure"])
async def test_every_file_of_the_catalog_is_released_when_the_host_ends(
    own_catalog: Path, tmp_path: Path, *, fails: bool
):
    plugin = PluginInfo(name="catalog", load=lambda: CatalogPlugin)
    table = {"path": str(own_catalog), "backend": "local"}
    settings = Settings(state_dir=tmp_path / "state", plugins={"catalog": table})
    host = Host(LoadedSettings(settings, None), installed=[plugin])
    host.load()
    with pytest.raises(RuntimeError, match="over") if fails else nullcontext():
        async with host.running():
            assert (await host.service(Catalog).search("comparing fractions", 1)).hits
            held = {Path(path).name for path in held_below(own_catalog)}
            assert held >= {"catalog.sqlite3", "vectors.npy"}
            if fails:
                raise RuntimeError("over")
    gc.collect()
    assert held_below(own_catalog) == set()
