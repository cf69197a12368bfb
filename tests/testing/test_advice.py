"""What `check_plugin` says of what plugins declare."""

from __future__ import annotations

from typing import Annotated

import pytest

from standards_mcp import Plugin, PluginSettings, Variable, tool
from standards_mcp.testing import check_plugin


class ShopPlugin(Plugin):
    @tool(read_only=True)
    def price(self) -> str:
        """Say what a book costs."""
        return "9"


def test_a_method_that_takes_away_a_declared_one_is_told():
    class SalePlugin(ShopPlugin):
        def price(self) -> str:
            return "7"

    class QuietPlugin(ShopPlugin):
        price = None  # type: ignore[assignment]

    with pytest.raises(AssertionError, match="'price' overrides a declared one"):
        check_plugin(SalePlugin, name="shop")
    check_plugin(QuietPlugin, name="shop")
    check_plugin(ShopPlugin, name="shop", calls=[("price", {})])


def test_a_text_with_the_variable_of_a_secret_is_told():
    class FindSettings(PluginSettings):
        """Settings.

        Attributes:
            access: What the service asks for.
        """

        access: Annotated[str, Variable("FIND_API_KEY")] = ""

    plugin = type("FindPlugin", (Plugin,), {"settings_type": FindSettings})
    with pytest.raises(AssertionError, match="'access' looks like a secret; declare it as"):
        check_plugin(plugin, name="find")
