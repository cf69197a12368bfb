"""Find the columns of fields by the names that shops and their exports usually give them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final

_USUAL: Final[Mapping[str, str]] = {
    "sku": (
        "sku productsku itemsku variantsku skuid id productid itemid articleid uniqid uniqueid "
        "productcode itemcode articlecode productnumber itemnumber articlenumber partnumber asin "
        "gtin ean upc isbn barcode handle"
    ),
    "title": "name title productname producttitle itemname itemtitle articlename displayname",
    # The HTML of a shop's page comes last, as others say the same without it.
    "features": (
        "aboutproduct description productdescription itemdescription longdescription "
        "shortdescription summary features bulletpoints body bodyhtml descriptionhtml"
    ),
    "category": (
        "category categories productcategory categoryname categorypath producttype "
        "productcategorytree department googleproductcategory"
    ),
    "brand": "brandname brand brands productbrand manufacturer vendor maker",
    # A sale has dates, which are not read, so its price comes last.
    "price": (
        "sellingprice price productprice itemprice currentprice variantprice priceusd usdprice "
        "discountedprice listprice regularprice retailprice msrp saleprice"
    ),
    "rating": "rating averagerating avgrating productrating overallrating starrating stars",
    "ingredients": "ingredients ingredientlist",
    "url": "url producturl itemurl link productlink permalink",
    "image": (
        "image imageurl imagelink imagesrc mainimage productimage images imageurls picture "
        "thumbnail thumbnailurl"
    ),
}
"""Of a field's names, the first comes first. They are written as `_plain` returns them."""
FIELDS: Final = tuple(_USUAL)


def usual_columns(field: str, heading: Sequence[str]) -> list[list[str]]:
    """Return the columns of a heading that have a usual name of a field, in the order of names.

    Columns of one name, but for case and separators, are in one list.
    """
    by_name: dict[str, list[str]] = {name: [] for name in _USUAL[field].split()}
    for column in heading:
        if (name := _plain(column)) in by_name:
            by_name[name].append(column)
    return [columns for columns in by_name.values() if columns]


def _plain(column: str) -> str:
    """Return the letters and digits of a column's name, in lower case.

    Feeds for Google Merchant have ``g:`` before names.
    """
    name = unicodedata.normalize("NFKC", column).casefold().strip().removeprefix("g:")
    return "".join(each for each in name if each.isalnum())
