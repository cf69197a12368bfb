"""The three tools of `three_tools`, written once for all servers that it compares.

A server process imports this module from a folder of its own, so it imports no other benchmark.
`API` and `REDIS` in the environment are the addresses of the shop's HTTP API and of its Redis.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Mapping
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
def _redis() -> Any:  # redis types the results of sync and async commands as one union
    host, port = os.environ["REDIS"].split(":")
    return Redis(host=host, port=int(port), decode_responses=True)


async def search_products(
    category: str = "Electronics",
    min_price: float = 50.0,
    max_price: float = 500.0,
    limit: int = 10,
) -> str:
    """Search a category for products in a price range, with their ranks in popularity."""
    prices = {"min_price": min_price, "max_price": max_price}
    query = {"category": category, **prices, "limit": limit}
    result, top_ids = await asyncio.gather(_get("/products/search", query), _most_popular())
    ranks = {product_id: rank for rank, product_id in enumerate(top_ids, 1)}
    products = [
        {key: product[key] for key in ("id", "sku", "name", "price", "rating")}
        | {"popularity_rank": ranks.get(product["id"], 0)}
        for product in result["products"]
    ]
    return json.dumps({"total": result["total"], "products": products, "most_popular_ids": top_ids})


async def get_user_cart(user_id: str) -> str:
    """Return the cart of a user, with the first five orders."""
    cart: dict[str, str] = await _redis().hgetall(f"shop:cart:{user_id}")
    items: list[Item] = json.loads(cart["items"])
    product, orders = await asyncio.gather(
        _get(f"/products/{items[0]['product_id']}"), _first_orders(user_id)
    )
    answer = {"user_id": user_id, "items": items, "first_product": product["name"]}
    return json.dumps({**answer, "orders": orders})


async def checkout(user_id: str, items: list[Item]) -> str:
    """Order products for a user."""
    total, checkouts = await asyncio.gather(_price(user_id, items), _record(user_id, items))
    answer = {"status": "confirmed", "total": total, "items": len(items), "checkouts": checkouts}
    return json.dumps(answer)


async def _get(path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
    response = await _api().get(path, params=query)
    answer: dict[str, Any] = response.raise_for_status().json()
    return answer


async def _price(user_id: str, items: list[Item]) -> float:
    response = await _api().post("/cart/calculate", json={"user_id": user_id, "items": items})
    total: float = response.raise_for_status().json()["total"]
    return total


async def _most_popular() -> list[int]:
    members: list[str] = await _redis().zrange("shop:popular", 0, 9, desc=True)
    return [int(member.removeprefix("product:")) for member in members]


async def _first_orders(user_id: str) -> list[list[Item]]:
    orders: list[str] = await _redis().lrange(f"shop:orders:{user_id}", 0, 4)
    return [json.loads(order) for order in orders]


async def _record(user_id: str, items: list[Item]) -> int:
    """Add an order in one round trip, and return how many checkouts the user has made."""
    pipeline = _redis().pipeline(transaction=False)
    pipeline.incr(f"shop:checkouts:{user_id}")
    pipeline.rpush(f"shop:orders:{user_id}", json.dumps(items))
    pipeline.zincrby("shop:popular", 1, f"product:{items[0]['product_id']}")
    counts: list[int] = await pipeline.execute()
    return counts[0]


TOOLS = (search_products, get_user_cart, checkout)
