"""The indexes and operations of the emulated Pinecone: each operation answers one request.

Nothing is embedded: the score of a record is the share of the query's words that it has, and the
reranker's score is the share of the record's words that the query has.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from .contract import MAX_RECORDS, MAX_RERANKED, REQUESTS, ContractError, check, matches

MODELS = ("llama-text-embed-v2", "multilingual-e5-large")
RERANKERS = ("bge-reranker-v2-m3", "pinecone-rerank-v0")
DIMENSION = 8


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    query: dict[str, list[str]]
    body: Any
    at: float


@dataclass
class StoredIndex:
    name: str
    model: str = "llama-text-embed-v2"
    field_name: str = "content"
    describes_until_ready: int = 0
    namespaces: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)


class RefusedError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class PineconeStore:
    """The indexes of one project.

    Attributes:
        metadata_rate: Fetches by metadata that are allowed in a second.
    """

    metadata_rate = 5

    def __init__(self, url: str) -> None:
        self.url = url
        self.indexes: dict[str, StoredIndex] = {}
        self.requests: list[Request] = []
        self.lock = threading.RLock()

    def add_index(self, name: str = "common-core-standards", **fields: Any) -> StoredIndex:
        self.indexes[name] = StoredIndex(name, **fields)
        return self.indexes[name]

    def sent(self, path: str) -> list[Request]:
        """Return the requests whose path contains *path*, in order of arrival."""
        return [request for request in self.requests if path in request.path]

    def records(self, namespace: str = "standards") -> dict[str, dict[str, Any]]:
        return self.only_index.namespaces.setdefault(namespace, {})

    @property
    def only_index(self) -> StoredIndex:
        (index,) = self.indexes.values()
        return index

    # -- operations: each takes a request and returns the status and the answer

    def create(self, request: Request) -> tuple[int, Any]:
        body = request.body
        check(REQUESTS["create"], body)
        if body["name"] in self.indexes:
            raise RefusedError(409, "Resource already exists.")
        if body["embed"]["model"] not in MODELS:
            raise RefusedError(404, f"Model {body['embed']['model']} not found.")
        embed = body["embed"]
        self.add_index(
            body["name"], model=embed["model"], field_name=embed["field_map"]["text"],
            describes_until_ready=1,
        )  # fmt: skip
        return 201, self.described(self.indexes[body["name"]])

    def describe(self, request: Request) -> tuple[int, Any]:
        index = self.indexes.get(request.path.rsplit("/", 1)[1])
        if index is None:
            raise RefusedError(404, "Resource not found")
        index.describes_until_ready -= 1
        return 200, self.described(index)

    def described(self, index: StoredIndex) -> dict[str, Any]:
        ready = index.describes_until_ready <= 0
        fields = {index.field_name: {"type": "semantic_text", "model": index.model}}
        return {
            "name": index.name,
            "host": self.url,
            "status": {"ready": ready, "state": "Ready" if ready else "Initializing"},
            "deployment": {"deployment_type": "managed", "cloud": "aws", "region": "us-east-1"},
            "schema": {"fields": fields},
            "deletion_protection": "disabled",
            "tags": None,
        }

    def upsert(self, request: Request) -> tuple[int, Any]:
        lines = request.body
        if not 0 < len(lines) <= MAX_RECORDS:
            raise ContractError(f"a batch has 1 to {MAX_RECORDS} records, not {len(lines)}")
        for line in lines:
            check(REQUESTS["record"], line)
            check(REQUESTS["id"], line["_id"])
            if not str(line.get(self.only_index.field_name, "")).strip():
                raise ContractError(f"record {line['_id']} has no {self.only_index.field_name}")
            if len(json.dumps(line, ensure_ascii=False).encode()) > 40_960:
                raise ContractError("Metadata size exceeds the limit of 40960 bytes")
        stored = self.records(_namespace(request))
        for line in lines:
            fields = {name: _as_stored(value) for name, value in line.items() if name != "_id"}
            stored[line["_id"]] = fields
        return 201, None

    def search(self, request: Request) -> tuple[int, Any]:
        body = request.body
        check(REQUESTS["search"], body)
        query, rerank = body["query"], body.get("rerank")
        scored = self._scored(_namespace(request), query)
        hits = scored[: query["top_k"]]
        if rerank is not None:
            hits = self._reranked(hits, query["inputs"]["text"], rerank)
        answer = [{"_id": id_, "_score": score, "fields": fields} for score, id_, fields in hits]
        usage = {"read_units": 1, "embed_total_tokens": 5}
        if rerank is not None:
            usage["rerank_units"] = 1
        return 200, {"result": {"hits": answer}, "usage": usage, "namespace": _namespace(request)}

    def _scored(self, namespace: str, query: Any) -> list[tuple[float, str, dict[str, Any]]]:
        stored = self.records(namespace)
        if "filter" in query:
            matches(query["filter"], {})  # refuses a wrong filter even if nothing is stored
            stored = {i: f for i, f in stored.items() if matches(query["filter"], f)}
        words = _words(query["inputs"]["text"])
        scores = [
            (len(words & _words(fields["content"])) / len(words), id_, fields)
            for id_, fields in stored.items()
        ]
        return sorted(scores, key=lambda each: (-each[0], each[1]))

    @staticmethod
    def _reranked(hits: Any, text: str, rerank: Any) -> list[tuple[float, str, dict[str, Any]]]:
        if rerank["model"] not in RERANKERS:
            raise ContractError(f"unknown model {rerank['model']}")
        if len(hits) > MAX_RERANKED:
            raise ContractError(f"the reranker takes at most {MAX_RERANKED} documents")
        (name,) = rerank["rank_fields"]
        if any(name not in fields for _, _, fields in hits):
            raise ContractError(f"a record has no field {name}")
        whole = rerank.get("parameters", {}).get("truncate", "NONE") == "NONE"
        if whole and any(len(_words(fields[name])) > 500 for _, _, fields in hits):
            raise ContractError("Request contains a query+document pair of over 1024 tokens")
        words = _words(text)
        again = [
            (len(words & _words(fields[name])) / len(_words(fields[name])), id_, fields)
            for _, id_, fields in hits
        ]
        return sorted(again, key=lambda each: (-each[0], each[1]))[: rerank.get("top_n")]

    def fetch(self, request: Request) -> tuple[int, Any]:
        ids = request.query.get("ids", [])
        check(REQUESTS["ids"], ids)
        (namespace,) = request.query.get("namespace", [""])
        stored = self.records(namespace)
        found = {id_: _vector(id_, stored[id_]) for id_ in ids if id_ in stored}
        return 200, {"vectors": found, "namespace": namespace, "usage": {"readUnits": 1}}

    def fetch_by_metadata(self, request: Request) -> tuple[int, Any]:
        body = request.body
        check(REQUESTS["fetch_by_metadata"], body)
        recent = [each for each in self.sent("fetch_by_metadata") if request.at - each.at < 0.9]
        if len(recent) > self.metadata_rate:  # the current request included
            raise RefusedError(429, "too many fetches by metadata in a second")
        matches(body["filter"], {})
        stored = sorted(self.records(body.get("namespace", "")).items())
        found = [(id_, fields) for id_, fields in stored if matches(body["filter"], fields)]
        start, limit = int(body.get("paginationToken", "0")), body.get("limit", 100)
        page = {id_: _vector(id_, fields) for id_, fields in found[start : start + limit]}
        answer = {"vectors": page, "namespace": body.get("namespace", ""), "usage": {}}
        if start + limit < len(found):
            answer["pagination"] = {"next": str(start + limit)}
        return 200, answer

    def list(self, request: Request) -> tuple[int, Any]:
        query = {name: values[0] for name, values in request.query.items()}
        limit = int(query.get("limit", "100"))
        check(REQUESTS["limit"], limit)
        namespace = query.get("namespace", "")
        ids = sorted(self.records(namespace))
        start = int(query.get("paginationToken", "0"))
        page = [{"id": id_} for id_ in ids[start : start + limit]]
        answer: dict[str, Any] = {
            "vectors": page,
            "namespace": namespace,
            "usage": {"readUnits": 1},
        }
        if start + limit < len(ids):
            answer["pagination"] = {"next": str(start + limit)}
        return 200, answer

    def delete(self, request: Request) -> tuple[int, Any]:
        check(REQUESTS["delete"], request.body)
        if request.body["namespace"] not in self.only_index.namespaces:
            raise RefusedError(404, "Namespace not found")
        stored = self.records(request.body["namespace"])
        for id_ in request.body.get("ids", ()):
            stored.pop(id_, None)
        return 200, {}

    def stats(self, request: Request) -> tuple[int, Any]:
        check(REQUESTS["stats"], request.body)
        counts = {
            name: {"vectorCount": len(stored)}
            for name, stored in self.only_index.namespaces.items()
            if stored
        }
        return 200, {
            "namespaces": counts,
            "dimension": DIMENSION,
            "indexFullness": 0.0,
            "totalVectorCount": sum(each["vectorCount"] for each in counts.values()),
            "metric": "cosine",
            "vectorType": "dense",
        }

    def unknown(self, request: Request) -> tuple[int, Any]:
        raise RefusedError(404, f"no operation {request.method} {request.path}")


OPERATIONS = (
    ("POST", r"/indexes/create-for-model", "create"),
    ("GET", r"/indexes/[^/]+", "describe"),
    ("POST", r"/records/namespaces/[^/]+/upsert", "upsert"),
    ("POST", r"/records/namespaces/[^/]+/search", "search"),
    ("GET", r"/vectors/fetch", "fetch"),
    ("POST", r"/vectors/fetch_by_metadata", "fetch_by_metadata"),
    ("GET", r"/vectors/list", "list"),
    ("POST", r"/vectors/delete", "delete"),
    ("POST", r"/describe_index_stats", "stats"),
)


def _namespace(request: Request) -> str:
    return unquote(request.path.split("/")[3])


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower())) or {""}


def _as_stored(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _vector(id_: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"id": id_, "values": [0.1] * DIMENSION, "metadata": fields}
