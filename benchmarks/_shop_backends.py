"""What the three tools of `three_tools` talk to: a catalogue, its mock HTTP API, and Redis.

`python _shop_backends.py PORT` serves the API. The data have the sizes of TM Dev Lab's: 100,000
products in 20 categories, 10,000 carts, 1,000 users with 20 orders each. They come from a fixed
seed, so the load generator knows every right answer.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import random
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from _http_servers import free_port, running

CATEGORIES = ("Electronics", *(f"Category {number}" for number in range(2, 21)))
PRODUCTS, CARTS, BUYERS, ORDERS = 100_000, 10_000, 1_000, 20
QUERY: dict[str, Any] = {
    "category": "Electronics",
    "min_price": 50.0,
    "max_price": 500.0,
    "limit": 10,
}
BOUGHT = ({"product_id": 42, "quantity": 2}, {"product_id": 1337, "quantity": 1})


@functools.cache
def catalogue() -> tuple[dict[str, Any], ...]:
    """Return all products; the one with the id N is at N - 1."""
    numbers = random.Random(33)  # noqa: S311  - made-up data
    return tuple(
        {
            "id": product_id,
            "sku": f"P{product_id:06}",
            "name": f"Product {product_id}",
            "category": CATEGORIES[product_id % len(CATEGORIES)],
            "brand": f"Brand {numbers.randrange(50)}",
            "price": numbers.randrange(100, 100_000) / 100,
            "stock": numbers.randrange(500),
            "rating": numbers.randrange(10, 51) / 10,
            "tags": numbers.sample(["new", "sale", "popular", "gift", "eco", "last"], 3),
            "weight": numbers.randrange(1, 1000) / 100,
            "description": f"This is the product with the number {product_id} of the shop.",
        }
        for product_id in range(1, PRODUCTS + 1)
    )


@functools.cache
def search(category: str, min_price: float, max_price: float, limit: int) -> dict[str, Any]:
    """Return the cheapest products of a category in a price range, and how many there are."""
    hits = [
        product
        for product in catalogue()
        if product["category"] == category and min_price <= product["price"] <= max_price
    ]
    cheapest = sorted(hits, key=itemgetter("price"))
    return {"total": len(hits), "products": cheapest[:limit]}


def price_of(items: Sequence[dict[str, Any]]) -> float:
    """Return the price of an order, with tax, and shipping if it is small."""
    prices: list[float] = [
        catalogue()[item["product_id"] - 1]["price"] * item["quantity"] for item in items
    ]
    net = sum(prices)
    return round(net * 1.085 + (0 if net >= 100 else 5.99), 2)


def cart_of(number: int) -> list[dict[str, int]]:
    """Return the cart of a user, by the user's number."""
    numbers = random.Random(number)  # noqa: S311  - made-up data
    return [
        {"product_id": numbers.randint(1, PRODUCTS), "quantity": numbers.randint(1, 3)}
        for _ in range(2 + number % 2)
    ]


def orders_of(number: int) -> list[list[dict[str, int]]]:
    """Return the orders of a user before the load begins, oldest first."""
    return [cart_of(number * ORDERS + position) for position in range(ORDERS)]


def most_popular() -> list[int]:
    """Return the ids of the ten most popular products; no load changes them."""
    return list(range(PRODUCTS, PRODUCTS - 10, -1))


def user_id(number: int) -> str:
    return f"user-{number:05}"


def seed(redis: Any) -> None:
    """Replace all data in Redis by those at the start."""
    redis.flushdb()
    pipeline = redis.pipeline(transaction=False)
    for number in range(1, CARTS + 1):
        cart = {"user_id": user_id(number), "items": json.dumps(cart_of(number))}
        pipeline.hset(f"shop:cart:{user_id(number)}", mapping=cart)
    for number in range(1, BUYERS + 1):
        orders = map(json.dumps, orders_of(number))
        pipeline.rpush(f"shop:orders:{user_id(number)}", *orders)
    # Checkouts add 1 to a product far below these ten.
    scores = {f"product:{product_id}": product_id * 1000 for product_id in range(1, PRODUCTS + 1)}
    pipeline.zadd("shop:popular", scores)
    pipeline.execute()


@contextmanager
def redis_server(folder: Path) -> Generator[int]:
    """Run a Redis that keeps nothing on disk, and give its port."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    with running([*command, "--save", "", "--appendonly", "no"], dict(os.environ), port):
        yield port


@contextmanager
def api_server() -> Generator[int]:
    """Run the mock HTTP API in a process of its own, and give its port."""
    port = free_port()
    with running([sys.executable, __file__, str(port)], dict(os.environ), port):
        yield port


def _search_answer(target: str) -> bytes:
    given = {key: values[0] for key, values in parse_qs(urlsplit(target).query).items()}
    prices = (float(given["min_price"]), float(given["max_price"]))
    return json.dumps(search(given["category"], *prices, int(given["limit"]))).encode()


def _answer(target: str, body: bytes) -> bytes:
    if target.startswith("/products/search?"):
        return _search_answer(target)
    if target == "/cart/calculate":
        return json.dumps({"total": price_of(json.loads(body)["items"])}).encode()
    return json.dumps(catalogue()[int(target.removeprefix("/products/")) - 1]).encode()


async def _serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while head := await _next_head(reader):
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        body = await reader.readexactly(int(length or 0))
        answer = _answer(head.split(b" ", 2)[1].decode(), body)
        headers = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer)
        writer.write(b"HTTP/1.1 200 OK\r\n" + headers + answer)
    writer.close()


async def _next_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


async def _serve(port: int) -> None:
    catalogue()
    async with await asyncio.start_server(_serve_connection, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
