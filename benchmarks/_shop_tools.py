"""The three tools of `three_tools`, written once for all servers that it compares.

A server process imports this module from a folder of its own, so it imports no other benchmark.
`API` and `REDIS` in the environment are the addresses of the shop's HTTP API and of its Redis.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
from typing import Any

import httpx2
from redis.asyncio import Redis
from typing_extensions import TypedDict


class Item(TypedDict):
    """A product in a cart."""

    product_id: int
    quantity: int


@functools.cache
def _api() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=os.environ["API"], timeout=10)


@functools.cache
def _redis() -> Redis:
    return Redis.from_url(os.environ["REDIS"], decode_responses=True)


async def search_products(
    category: str = "Electronics",
    min_price: float = 50.0,
    max_price: float = 500.0,
    limit: int = 10,
) -> str:
    """Search a category for products in a price range, with their ranks in popularity."""
    query = {"category": category, "min_price": min_price, "max_price": max_price, "limit": limit}
    response, popular = await asyncio.gather(
        _api().get("/products/search", params=query),
        _redis().zrange("shop:popular", 0, 9, desc=True),
    )
    result = response.raise_for_status().json()
    top_ids = [int(member.removeprefix("product:")) for member in popular]
    ranks = {product_id: rank for rank, product_id in enumerate(top_ids, 1)}
    products = [
        {key: product[key] for key in ("id", "sku", "name", "price", "rating")}
        | {"popularity_rank": ranks.get(product["id"], 0)}
        for product in result["products"]
    ]
    return json.dumps({"total": result["total"], "products": products, "most_popular_ids": top_ids})


async def get_user_cart(user_id: str) -> str:
    """Return the cart of a user, with the first five orders."""
    cart = await _redis().hgetall(f"shop:cart:{user_id}")
    items = json.loads(cart["items"])
    response, orders = await asyncio.gather(
        _api().get(f"/products/{items[0]['product_id']}"),
        _redis().lrange(f"shop:orders:{user_id}", 0, 4),
    )
    return json.dumps(
        {
            "user_id": user_id,
            "items": items,
            "first_product": response.raise_for_status().json()["name"],
            "orders": [json.loads(order) for order in orders],
        }
    )


async def checkout(user_id: str, items: list[Item]) -> str:
    """Order products for a user."""
    pipeline = _redis().pipeline(transaction=False)
    pipeline.incr(f"shop:checkouts:{user_id}")
    pipeline.rpush(f"shop:orders:{user_id}", json.dumps(items))
    pipeline.zincrby("shop:popular", 1, f"product:{items[0]['product_id']}")
    order: dict[str, Any] = {"user_id": user_id, "items": items}
    response, counts = await asyncio.gather(
        _api().post("/cart/calculate", json=order), pipeline.execute()
    )
    total = response.raise_for_status().json()["total"]
    return json.dumps(
        {"status": "confirmed", "total": total, "items": len(items), "checkouts": counts[0]}
    )


TOOLS = (search_products, get_user_cart, checkout)
