"""Products of files: what is read, skipped, kept, replaced and removed."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import sqlite3
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings as ChromaSettings

from standards_mcp import ApiError, InvalidInputError, ServiceError
from standards_mcp_products.building import Options
from standards_mcp_products.chroma import remove_orphans
from standards_mcp_products.columns import read_mapping
from standards_mcp_products.settings import ProductsSettings

Build = Write = Callable[..., Any]
Row = dict[str, Any]


@pytest.fixture
def stored(state: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that returns what the active collection has, by ids."""

    def read(path: Path | None = None, name: str = "amazon2020") -> dict[str, Any]:
        store = str(path or state / "chroma")
        active = json.loads((state / "active.json").read_text())["stores"][store][name]
        with opened(Path(store)) as client:
            collection = client.get_collection(active["collection"], embedding_function=None)
            found = collection.get(include=["documents", "metadatas"])
        rows = zip(found["ids"], found["documents"] or (), found["metadatas"] or (), strict=True)
        return {doc_id: (document, dict(fields)) for doc_id, document, fields in rows}

    return read


def opened(path: Path) -> Any:
    settings = ChromaSettings(anonymized_telemetry=False, _env_file=None)  # type: ignore[call-arg]
    return chromadb.PersistentClient(str(path), settings=settings)


def collections(path: Path) -> list[str]:
    with opened(path) as client:
        return [each.name for each in client.list_collections()]


def test_a_row_becomes_a_text_and_fields(make: Build, stored: Any, lamp: Row, soap: Row, tent: Row):
    report = make(lamp, soap, tent)
    mapping = report.pop("mapping")
    assert (mapping["sku"], mapping["brand"]) == (["Uniq Id"], ["Brand Name"])
    assert report == {
        "collection": "amazon2020",
        "unused": [],
        "read": 3,
        "indexed": 3,
        "unchanged": 0,
        "removed": 0,
        "skipped": [],
        "unread": {},
    }
    assert stored() == {
        "lamp": (
            "A desk lamp It shines on paper. Office",
            {
                "sku": "lamp",
                "title": "A desk lamp",
                "category": "Office",
                "brand": "Glow",
                "price": 12.5,
                "rating": 4.5,
            },
        ),
        "soap": (
            "Olive soap, 4 oz Bath",
            {
                "sku": "soap",
                "title": "Olive soap, 4 oz",
                "category": "Bath",
                "brand": "Suds",
                "price": 3.0,
                "ingredients": "Olive oil, salt",
                "price_per_oz": 0.75,
            },
        ),
        "tent": (
            "A tent for two Camping",
            {"sku": "tent", "title": "A tent for two", "category": "Camping"},
        ),
    }


@pytest.mark.parametrize("name", ["products.csv", "products.jsonl", "products.parquet"])
def test_each_format_gives_the_same_products(
    make: Build, stored: Any, lamp: Row, soap: Row, name: str
):
    make(lamp, soap, name=name)
    found = stored()
    assert found["soap"][1]["price_per_oz"] == 0.75
    assert found["lamp"][0] == "A desk lamp It shines on paper. Office"
    assert "ingredients" not in found["lamp"][1]


def test_the_second_column_counts_where_the_first_is_empty(make: Build, stored: Any, tent: Row):
    make(
        tent
        | {
            "Brand Name": "nan",
            "Brand": "Wide",
            "Selling Price": " ",
            "List Price": "$80",
            "Rating": "",
            "Average Rating": 4,
        },
        tent | {"Uniq Id": "odd", "Selling Price": "call us", "List Price": "$80"},
    )
    found = stored()
    fields = found["tent"][1]
    assert (fields["brand"], fields["price"], fields["rating"]) == ("Wide", 80.0, 4.0)
    assert "price" not in found["odd"][1], "a selling price that cannot be read is not guessed"


def test_rows_that_are_no_product_are_told_by_number_and_reason(
    make: Build, stored: Any, lamp: Row, soap: Row
):
    report = make(
        lamp | {"Product Name": "An old lamp"},
        lamp | {"Uniq Id": " "},
        soap | {"Product Name": "N/A"},
        soap,
        lamp,
    )
    assert (report["read"], report["indexed"]) == (5, 2)
    assert report["skipped"] == [
        {"row": 1, "reason": "row 5 has the same id"},
        {"row": 2, "reason": "has no 'Uniq Id'"},
        {"row": 3, "reason": "has no 'Product Name'"},
    ]
    assert stored()["lamp"][1]["title"] == "A desk lamp"


def test_broken_rows_are_skipped(make: Build, tmp_path: Path):
    table = tmp_path / "broken.csv"
    table.write_bytes(
        b'\xef\xbb\xbfUniq Id,Product Name\n1,"A, b"\n2,x,too many\n3,\xff\n4\n5,"two\nlines"\n'
    )
    report = make(file=table)
    assert report["indexed"] == 2
    assert report["skipped"] == [
        {"row": 2, "reason": "has more cells than the heading"},
        {"row": 3, "reason": "is not UTF-8"},
        {"row": 4, "reason": "has no 'Product Name'"},
    ]
    lines = tmp_path / "broken.jsonl"
    lines.write_bytes(
        b'{"Uniq Id": 1, "Product Name": "x"}\n\n{"Uniq\n[1]\n\xff\n' + b"[" * 100_000 + b"\n"
        b'{"Uniq Id": NaN, "Product Name": "x"}\n{"Uniq Id": "\\ud800", "Product Name": ["a", "b"]}'
    )
    report = make(file=lines)
    assert report["indexed"] == 2
    assert [each["row"] for each in report["skipped"]] == [2, 3, 4, 5, 6]
    assert {each["reason"] for each in report["skipped"][:4]} == {"is not a JSON object"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.txt", b"", r"unknown format; use \.csv, \.tsv, \.jsonl, \.parquet"),
        ("x.csv", b"", "has no products. It has no rows"),
        ("x.csv", b"Uniq Id,Nom\n1,x\n", "no column for title, its name. It has Uniq Id, Nom. Wr"),
        (
            "x.jsonl",
            b'{"Name": "x", "Preis": 1}',
            "no column for sku, .* It has Name, Preis. Write",
        ),
        ("x.parquet", "Nom", "no column for sku, the id of a product. It has Nom. Write the line"),
        ("x.csv", b"Uniq Id,Product Name\n", "has no products. It has no rows"),
        ("x.csv", b"Uniq Id,Product Name\n1,\n", "All 1 rows were skipped; row 1 has no 'Product"),
        (
            "x.csv",
            b"Uniq Id,Product Name\n1," + b"x" * 10_000_001,
            "in the row from line 2 on: field larger than",
        ),
        (
            "x.csv",
            b'Uniq Id,Product Name\n1,Soap\n2,"Lamp 12 inch\n3,Chair\n4,Table\n',
            "in the row from line 3 on: unexpected end of data. A cell that begins with a quote",
        ),
        (
            "x.csv",
            b'Uniq Id,Product Name\n1,"a\nb"\n2,"Lamp\n3,"Chair, big"\n',
            "in the row from line 4 on: ',' expected after",
        ),
        ("x.csv", b'"Uniq Id', "in the row from line 1 on: unexpected end of data"),
        ("x.jsonl", b"", "has no products"),
        ("x.parquet", b"PAR1 but not really", "cannot be read as Parquet"),
        (".csv", None, "unknown format"),
        ("none.csv", None, "No such file"),
    ],
)
def test_files_without_products_are_refused_and_leave_the_old_ones(
    make: Build, stored: Any, lamp: Row, tmp_path: Path, name: str, content: Any, message: str
):
    make(lamp)
    file = tmp_path / name
    if isinstance(content, str):
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist([{content: "x"}]), file)
    elif content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInputError, match=message):
        make(file=file)
    assert list(stored()) == ["lamp"]


def test_quotes_within_a_cell_stay(make: Build, stored: Any, tmp_path: Path):
    table = tmp_path / "quotes.csv"
    table.write_text('Uniq Id,Product Name\n1,12" lamp\n2,"A ""big"" chair"\n')
    make(file=table)
    assert [document for document, _ in stored().values()] == ['12" lamp', 'A "big" chair']


def test_decimal_numbers_of_parquet_are_numbers(make: Build, stored: Any, soap: Row):
    row = soap | {"Uniq Id": Decimal("5.00"), "Selling Price": Decimal("5.99")}
    make(row | {"Rating": Decimal("4.5")}, name="products.parquet")
    fields = stored()["5"][1]
    assert (fields["price"], fields["rating"]) == (5.99, 4.5)


def test_odd_values_of_parquet_cost_their_row_at_most(
    make: Build, stored: Any, lamp: Row, soap: Row, tent: Row, tmp_path: Path
):
    pyarrow: Any = pytest.importorskip("pyarrow")
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    places, texts = struct.pack("<4i", 0, 4, 5, 9), b"Glow\xffSuds"
    buffers = [None, pyarrow.py_buffer(places), pyarrow.py_buffer(texts)]
    broken = pyarrow.Array.from_buffers(pyarrow.string(), 3, buffers)
    far = pyarrow.array([10**15, 1, None], pyarrow.timestamp("s"))
    table = pyarrow.table(
        {
            "Uniq Id": ["lamp", "soap", "tent"],
            "Product Name": [each["Product Name"] for each in (lamp, soap, tent)],
            "Brand": broken,
            "Updated": far,
            "Took": pyarrow.array([1, 2, 3], pyarrow.duration("ns")),
        }
    )
    file = tmp_path / "odd.parquet"
    parquet.write_table(table, file)
    reason = "has a value that cannot be read"
    assert make(file=file)["skipped"] == [{"row": 2, "reason": reason}]
    assert stored()["lamp"][1]["brand"] == "Glow"
    mapping = tmp_path / "mapping.json"
    mapping.write_text('{"updated": "Updated"}')
    skipped = make(file=file, mapping=mapping)["skipped"]
    assert skipped == [{"row": 1, "reason": reason}, {"row": 2, "reason": reason}]


def test_a_mapping_names_columns_and_adds_fields(make: Build, stored: Any, tmp_path: Path):
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(
        'sku = "id"\ntitle = ["name", "label"]\nfeatures = "text"\nprice = "cost"\n'
        'organic = "is_organic"\nweight = "grams"\n'
    )
    row = {"id": 5, "label": "Tea, 2 oz", "text": "Green", "cost": 4, "is_organic": True}
    make(row | {"grams": 57, "Brand": "Leaf"}, name="tea.jsonl", mapping=mapping)
    fields = {
        "sku": "5",
        "title": "Tea, 2 oz",
        "brand": "Leaf",
        "price": 4.0,
        "price_per_oz": 2.0,
        "organic": True,
        "weight": 57.0,
    }
    assert stored() == {"5": ("Tea, 2 oz Green", fields)}


def test_products_of_a_shop_have_no_html(make: Build, tmp_path: Path, stored: Any):
    file = tmp_path / "shop.tsv"
    lines = (
        "ID\tSKU\tName\tDescription\tRegular price\tImages\tPermalink",
        "7\tL-1\tSalt &amp; lamp\t<p>For <b>desks</b> &lt;2 m.<br/></p><!-- x -->\t12.50\t\thttps://a.b/7",
        "8\tL-2\tSoap\tIf 3 < 5 and x<y and z>w\t12,99\thttps://a.b/8.jpg\t",
    )
    file.write_text("\n".join(lines), "utf-8-sig")
    report = make(file=file)
    assert (report["indexed"], report["skipped"]) == (2, [])
    assert stored() == {
        "L-1": (
            "Salt & lamp For desks <2 m.",
            {"sku": "L-1", "title": "Salt & lamp", "price": 12.5, "url": "https://a.b/7"},
        ),
        "L-2": (
            "Soap If 3 < 5 and x<y and z>w",
            {"sku": "L-2", "title": "Soap", "price": 12.99, "image": "https://a.b/8.jpg"},
        ),
    }


def test_decimal_commas_are_read_and_the_values_that_cannot_be_read_are_counted(
    make: Build, tmp_path: Path, stored: Any
):
    file = tmp_path / "shop.csv"
    file.write_text(
        "sku;name;price;rating\na;Lamp;12,50;4,5\nb;Bed;1.299;five\nc;Soap;1.234,56;\n"
        "d;Cup;on request;\n;Mug;on request;\ne;Pot;0,00;9\nf;Jar;;\n",
        "utf-8",
    )
    report = make(file=file)
    assert report["unread"] == {
        "price": {"count": 2, "row": 4, "value": "on request"},
        "rating": {"count": 2, "row": 2, "value": "five"},
    }
    prices = {doc_id: fields.get("price") for doc_id, (_, fields) in stored().items()}
    assert prices == {"a": 12.5, "b": 1299.0, "c": 1234.56, "d": None, "e": None, "f": None}
    assert stored()["a"][1]["rating"] == 4.5


@pytest.mark.parametrize(
    ("skus", "chosen", "products"),
    [
        (["a", "b", "c"], "sku", {"a", "b", "c"}),
        # An id of another column could be that of another product.
        (["2", "", "x"], "id", {"1", "2", "3"}),
        (["", "", ""], "id", {"1", "2", "3"}),
        (["a", "a", "b"], "id", {"1", "2", "3"}),
        ([*"abcdefghijklmnopqrs", ""], "sku", set("abcdefghijklmnopqrs")),
    ],
)
def test_the_ids_of_a_file_come_from_one_column(
    make: Build, stored: Any, skus: list[str], chosen: str, products: set[str]
):
    rows = [{"id": at, "sku": sku, "name": f"Lamp {at}"} for at, sku in enumerate(skus, 1)]
    report = make(*rows, {"id": "", "sku": "", "name": "Soap"}, {"id": 0, "sku": "-", "name": ""})
    assert set(stored()) == products
    assert report["mapping"]["sku"] == [chosen]
    assert report["unused"] == [{"sku": "id", "id": "sku"}[chosen]]
    assert {"row": len(rows) + 1, "reason": f"has no '{chosen}'"} in report["skipped"]


@pytest.mark.parametrize("heading", ["sku,name,Price,price", "sku,name,price,price"])
def test_of_two_columns_for_an_optional_field_the_first_is_used(
    make: Build, tmp_path: Path, stored: Any, heading: str
):
    file = tmp_path / "shop.csv"
    file.write_text(f"{heading}\na,Lamp,12.50,3.00\n")
    report = make(file=file)
    columns = heading.split(",")[2:]
    assert report["mapping"]["price"] == list(dict.fromkeys(columns))
    assert stored()["a"][1]["price"] == 12.5


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_columns_of_csv_are_separated_by_what_the_heading_has_most_of(
    make: Build, tmp_path: Path, stored: Any, separator: str
):
    file = tmp_path / "products.csv"
    rows = (("sku", "name", "brand"), ("1", '"A, b; c"', "Glow"))
    file.write_text("".join(separator.join(row) + "\n" for row in rows))
    make(file=file)
    assert stored() == {"1": ("A, b; c", {"sku": "1", "title": "A, b; c", "brand": "Glow"})}


def test_a_tsv_file_is_separated_by_tabs_whatever_its_heading_has(
    make: Build, tmp_path: Path, stored: Any
):
    file = tmp_path / "products.tsv"
    file.write_text("sku\tname\tsize (S, M, L)\n1\tShirt\tM\n")
    make(file=file)
    assert stored()["1"][1]["title"] == "Shirt"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.toml", "=", "is neither TOML nor JSON"),
        ("m.json", "{", "is neither TOML nor JSON"),
        ("m.json", "[" * 100_000, "is neither TOML nor JSON"),
        ("m.json", "[]", "must be an object"),
        ("m.json", '{"document": "x"}', r"'document' cannot be mapped to \['x'\]"),
        ("m.json", '{"$and": "x"}', r"'\$and' cannot be mapped to \['x'\]"),
        ("m.toml", "price = 2030-01-01", r"'price' cannot be mapped to \[datetime.date"),
        ("m.json", '{"price": 5}', r"'price' cannot be mapped to \[5\]. A field has a name"),
        ("m.json", '{"price": []}', r"'price' cannot be mapped to \[\]"),
        ("none.json", None, "No such file"),
    ],
)
def test_a_mapping_that_has_no_meaning_is_refused(
    tmp_path: Path, name: str, content: str | None, message: str
):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInputError, match=message):
        read_mapping(tmp_path / name)


def test_a_price_per_ounce_is_finite_or_unknown(make: Build, stored: Any, soap: Row):
    tiny = f".{'0' * 300}1 oz"
    make(
        soap | {"Uniq Id": "endless", "Product Name": tiny, "Selling Price": 1e300},
        soap | {"Uniq Id": "part", "Product Name": "Soap, 1/2 oz"},
        name="soap.jsonl",
    )
    found = stored()
    assert all("price_per_oz" not in fields for _, fields in found.values())
    assert found["endless"][1]["price"] == 1e300


def test_only_what_is_new_is_embedded(
    make: Build, stored: Any, encoder: Any, state: Path, lamp: Row, soap: Row, tent: Row
):
    make(lamp, soap, tent)
    encoder.texts.clear()
    report = make(lamp | {"Product Name": "A floor lamp"}, soap | {"Selling Price": "$4"})
    counts = {name: report[name] for name in ("indexed", "unchanged", "removed")}
    assert counts == {"indexed": 2, "unchanged": 0, "removed": 1}
    assert encoder.texts == ["length", "A floor lamp It shines on paper. Office"]
    assert stored()["soap"][1]["price"] == 4.0
    before = (state / "active.json").read_bytes()
    report = make(lamp | {"Product Name": "A floor lamp"}, soap | {"Selling Price": "$4"})
    assert (report["indexed"], report["unchanged"]) == (0, 2)
    assert (state / "active.json").read_bytes() == before, "nothing was to be done"


def test_another_model_embeds_all_anew(make: Build, another_encoder: Any, lamp: Row, soap: Row):
    make(lamp, soap)
    report = make(lamp, soap, made_by=another_encoder)
    assert (report["indexed"], len(another_encoder.texts)) == (2, 2)


def test_a_build_leaves_one_collection_and_one_folder_of_vectors(
    make: Build, state: Path, lamp: Row, soap: Row
):
    for price in ("$1", "$2", "$3"):
        make(lamp | {"Selling Price": price}, soap)
    make(soap, collection="others")
    names = collections(state / "chroma")
    assert sorted(each.partition("--")[0] for each in names) == ["amazon2020", "others"]
    assert len([each for each in (state / "chroma").iterdir() if each.is_dir()]) <= 2


def test_collections_of_others_stay(make: Build, state: Path, lamp: Row):
    with opened(state / "chroma") as client:
        for name in ("amazon2020", "amazon2020--theirs"):
            client.create_collection(name, embedding_function=None)
    make(lamp)
    make(lamp | {"Selling Price": "$5"})
    names = collections(state / "chroma")
    assert {"amazon2020", "amazon2020--theirs"} < set(names)
    assert len(names) == 3


def test_a_dry_run_changes_nothing(make: Build, state: Path, lamp: Row, soap: Row, encoder: Any):
    report = make(lamp, soap, options=Options(dry_run=True))
    assert (report["indexed"], encoder.texts) == (2, [])
    assert not (state / "active.json").exists()
    assert not (state / "chroma").exists()
    make(lamp)
    report = make(lamp, soap, options=Options(dry_run=True))
    assert (report["indexed"], report["unchanged"]) == (1, 1)


def test_the_name_of_a_file_may_have_bytes_that_are_not_utf_8(
    make: Build, state: Path, lamp: Row, write: Write, tmp_path: Path
):
    file = tmp_path / os.fsdecode(b"caf\xe9.csv")
    try:
        write(lamp).rename(file)
    except (OSError, UnicodeError):
        pytest.skip("this file system has no such names")
    assert make(file=file)["indexed"] == 1
    assert "caf?.csv" in (state / "active.json").read_text("utf-8")


def test_only_the_first_rows_are_read(make: Build, lamp: Row, soap: Row, tent: Row):
    report = make(lamp, soap, tent, options=Options(limit=2))
    assert (report["read"], report["indexed"]) == (2, 2)


def test_an_encoder_that_fails_leaves_the_old_products(
    make: Build, stored: Any, state: Path, lamp: Row, soap: Row, encoder: Any
):
    make(lamp)

    class Failing:
        name = encoder.name

        def encode(self, _: Any) -> Any:
            raise OSError

    with pytest.raises(ApiError, match="cannot be reached or read"):
        make(lamp, soap, made_by=Failing())
    assert list(stored()) == ["lamp"]
    make(lamp, soap)
    assert len(collections(state / "chroma")) == 1, "what the failed build left is removed"


def test_500_dirty_rows_are_all_told_or_found(make: Build, stored: Any):
    chance = random.Random(5)  # noqa: S311
    dirt = [
        "",
        " ",
        "nan",
        "None",
        "N/A",
        "null?",
        "\x00",
        "\ud83d",
        "é" * 300,
        "'; DROP",
        "\u202e",
    ]
    prices = ["$1,349.50", "$3.25 - $8", "Total price: $7.10", "12,99", "-4", "0", 5, 1e999, None]
    ratings = ["4.5 out of 5", "9", "-1", 3, [], {}, True, "NaN"]
    rows = list[Mapping[str, Any]]()
    for number in range(500):
        rows.append(
            {
                "Uniq Id": chance.choice(
                    [f"id-{number % 400}", number, f"x{number}", None, chance.choice(dirt)]
                ),
                "Product Name": chance.choice(
                    [f"Thing {number}, 2 oz", 7, "x", None, chance.choice([{}, *dirt])]
                ),
                "Selling Price": chance.choice([*prices, *dirt]),
                "Rating": chance.choice([*ratings, *dirt]),
                "Brand Name": chance.choice(["Acme", 5, ["a"], *dirt]),
                "About Product": chance.choice(["good", None, 7, *dirt]),
                "Ingredients": chance.choice(["water", {}, *dirt]),
            }
        )
    report = make(*rows, name="dirty.jsonl")
    found = stored()
    assert report["read"] == 500
    assert report["indexed"] == len(found) == 500 - len(report["skipped"])
    assert 100 < len(found) < 450
    for _, fields in found.values():
        assert fields.get("price", 5.0) in {1349.5, 3.25, 7.1, 12.99, 5.0}
        assert fields.get("rating", 3.0) in {4.5, 3.0}
        assert all(value not in ("", "nan") for value in fields.values())


def test_without_pyarrow_the_error_says_what_to_install(
    make: Build, write: Write, lamp: Row, monkeypatch: pytest.MonkeyPatch
):
    file = write(lamp, name="products.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidInputError, match=r"install .*\[parquet\]"):
        make(file=file)


def test_a_store_that_was_removed_is_built_anew(make: Build, state: Path, lamp: Row, stored: Any):
    make(lamp)
    shutil.rmtree(state / "chroma")
    assert make(lamp)["indexed"] == 1
    assert list(stored()) == ["lamp"]


def test_an_encoder_at_an_address_that_fails_is_told_as_such(make: Build, lamp: Row):
    settings = {
        "model": "http://127.0.0.1:9/v1/embeddings#model",
        "embedding_api_key": "opensesame",
    }
    encoder = ProductsSettings.model_validate(settings).open_encoder()
    with pytest.raises(ServiceError, match=r"check \[plugins.products\] model and OPENAI_API_KEY"):
        make(lamp, made_by=encoder)


def test_a_folder_that_cannot_be_written_is_told(
    make: Build, state: Path, lamp: Row, soap: Row, stored: Any, monkeypatch: pytest.MonkeyPatch
):
    make(lamp)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ApiError, match=r"cannot write .*active.json: No space left"):
        make(soap)
    monkeypatch.undo()
    assert list(stored()) == ["lamp"]
    assert sorted(each.name for each in state.iterdir()) == ["active.json", "build.lock", "chroma"]


def test_folders_of_others_beside_the_vectors_stay(make: Build, state: Path, lamp: Row, soap: Row):
    make(lamp)
    (state / "chroma" / "notes").mkdir()
    make(soap)
    assert (state / "chroma" / "notes").is_dir()
    assert len([each for each in (state / "chroma").iterdir() if each.is_dir()]) <= 2


@pytest.mark.parametrize(
    "first_line", [b"sep=;\r\n", b"\xef\xbb\xbfSEP=;\n", b"sep=|\n", b"sep=\t\n"]
)
def test_the_first_line_of_excel_names_the_character_between_cells(
    make: Build, stored: Any, tmp_path: Path, first_line: bytes
):
    file = tmp_path / "excel.csv"
    rows = "sku;name;price\nlamp;A lamp, of brass, for desks;12,50\n"
    separator = first_line.strip(b"\r\n")[-1:].decode()
    file.write_bytes(first_line + rows.replace(";", separator).encode())
    report = make(file=file)
    assert (report["read"], report["skipped"], report["unread"]) == (1, [], {})
    document, fields = stored()["lamp"]
    assert (document, fields["price"]) == ("A lamp, of brass, for desks", 12.5)


def test_a_damaged_row_below_the_first_line_of_excel_is_told_by_its_line(
    make: Build, tmp_path: Path
):
    file = tmp_path / "excel.csv"
    file.write_text('sep=;\nsku;name\nlamp;A lamp\ntent;"A tent\n')
    with pytest.raises(InvalidInputError, match="in the row from line 4 on"):
        make(file=file)


def test_prices_that_mean_something_else_are_counted_with_the_first(make: Build, lamp: Row):
    cells = ["was $20 now $10", "10. Mai", "$5 off", "2 pack 9,99", "$5"]
    report = make(*(lamp | {"Uniq Id": each, "Selling Price": each} for each in cells))
    assert report["unread"] == {"price": {"count": 4, "row": 1, "value": "was $20 now $10"}}


def test_only_folders_of_chroma_are_removed(tmp_path: Path):
    folder = tmp_path / "own"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as database:
        database.execute("CREATE TABLE segments (id TEXT)")
        database.execute("INSERT INTO segments VALUES ('0a1b2c3d-0000-4000-8000-000000000001')")
        database.commit()
    segments = [f"0a1b2c3d-0000-4000-8000-{number:012}" for number in (1, 2)]
    for name in (*segments, "holidays-2024-rome-trip-photoalbum01"):
        (folder / name).mkdir()
    remove_orphans(folder)
    left = {path.name for path in folder.iterdir() if path.is_dir()}
    assert left == {segments[0], "holidays-2024-rome-trip-photoalbum01"}
