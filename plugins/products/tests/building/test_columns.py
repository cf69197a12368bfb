"""Which columns fields come from: of Amazon's export, of other shops, and of a mapping."""

from __future__ import annotations

import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp import InvalidInputError
from standards_mcp_products.columns import columns_of, read_mapping

NOTHING = read_mapping(None)
SHOPIFY = (
    "Handle,Title,Body (HTML),Vendor,Product Category,Type,Tags,Published,Option1 Name,"
    "Option1 Value,Variant SKU,Variant Price,Variant Compare At Price,Image Src,SEO Title,"
    "Cost per item,Status"
)
WOOCOMMERCE = (
    "ID,Type,SKU,Name,Published,Short description,Description,In stock?,Sale price,Regular price,"
    "Categories,Tags,Images,Brands"
)
GOOGLE = (
    "id;title;description;link;image_link;availability;price;sale_price;brand;gtin;mpn;"
    "google_product_category;product_type;condition"
)


def used(heading: str, separator: str = ",") -> dict[str, str]:
    """Return the columns of each field as one text."""
    mapping = columns_of(heading.split(separator), NOTHING).mapping
    return {name: ",".join(columns) for name, columns in mapping.items()}


def test_exports_of_shops_are_understood():
    assert used(SHOPIFY) == {
        "sku": "Variant SKU,Handle",
        "title": "Title",
        "features": "Body (HTML)",
        "category": "Product Category",
        "brand": "Vendor",
        "price": "Variant Price",
        "image": "Image Src",
    }
    assert used(WOOCOMMERCE) == {
        "sku": "SKU,ID",
        "title": "Name",
        "features": "Description,Short description",
        "category": "Categories",
        "brand": "Brands",
        "price": "Regular price,Sale price",
        "image": "Images",
    }
    google = {
        "sku": "id,gtin",
        "title": "title",
        "features": "description",
        "category": "product_type,google_product_category",
        "brand": "brand",
        "price": "price,sale_price",
        "url": "link",
        "image": "image_link",
    }
    assert used(GOOGLE, ";") == google
    feed = used(";".join(f"g:{each}" for each in GOOGLE.split(";")), ";")
    assert feed == {
        name: ",".join(f"g:{each}" for each in columns.split(","))
        for name, columns in google.items()
    }


def test_a_column_of_each_usual_name_is_found():
    for name, field in {
        "sku": "sku",
        "id": "sku",
        "name": "title",
        "title": "title",
        "price": "price",
        "description": "features",
        "category": "category",
        "brand": "brand",
        "url": "url",
        "image": "image",
    }.items():
        others = [other for other in ("sku", "name") if other != name]
        assert columns_of([*others, name], NOTHING).mapping[field][-1] == name


@given(
    st.sampled_from(["product name", "list price", "image url", "average rating"]),
    st.lists(st.sampled_from(["", " ", "_", "-", ".", "/", "  "]), min_size=3, max_size=3),
    st.sampled_from([str.lower, str.upper, str.title, string.capwords]),
)
def test_case_and_separators_of_a_name_make_no_difference(
    name: str, separators: list[str], case: Callable[[str], str]
):
    first, last = case(name).split()
    column = f"{separators[0]}{first}{separators[1]}{last}{separators[2]}"
    assert columns_of(["sku", "title", column], NOTHING).unused == []


def test_the_columns_of_the_export_of_2020_stay_as_they_are():
    heading = ["Uniq Id", "Product Name", "Sku", "Category", "Description", "Image", "Product Url"]
    columns = columns_of(heading, NOTHING)
    assert columns.mapping == {
        "sku": ["Uniq Id"],
        "title": ["Product Name"],
        "category": ["Category"],
    }
    assert columns.unused == ["Sku", "Description", "Image", "Product Url"]


def test_a_mapping_counts_more_than_names():
    heading = ["id", "article", "name", "Name", "price", "cost", "url"]
    mapping = {"sku": ("article",), "title": ("Name",), "price": ("cost", "price"), "eco": ("eco",)}
    columns = columns_of(heading, mapping)
    assert columns.mapping == {
        "sku": ["article"],
        "title": ["Name"],
        "price": ["cost", "price"],
        "url": ["url"],
        "eco": [],
    }
    assert columns.unused == ["id", "name"]
    with pytest.raises(InvalidInputError, match="no column 'nr' or 'no', which the mapping names"):
        columns_of(heading, {"sku": ("nr", "no")})


def test_of_many_columns_a_message_names_some():
    with pytest.raises(
        InvalidInputError, match=r"column0, .*, column49 and 950 more\. Write"
    ) as told:
        columns_of([f"column{number}" for number in range(1000)], NOTHING)
    with pytest.raises(InvalidInputError) as long:
        columns_of(["x" * 1_000_000], NOTHING)
    assert max(len(str(each.value)) for each in (told, long)) < 1500
