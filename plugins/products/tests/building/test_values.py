"""What cells mean: prices, ratings, ounces, and what is missing."""

from __future__ import annotations

import math
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_products import values

CELLS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals(allow_nan=False)
    | st.text(max_size=12)
    | st.text("0123456789.,-$ eE%/ofzOZ", max_size=12)
    | st.lists(st.text(max_size=4), max_size=2)
    | st.dictionaries(st.text(max_size=2), st.integers(), max_size=1)
)


@pytest.mark.parametrize(
    ("cell", "price"),
    [
        ("$1,349.50", 1349.5),
        ("$3.25 - $8", 3.25),
        ("Total price: $7.10", 7.1),
        ("12", 12.0),
        ("USD 4.20", 4.2),
        ("$.99", 0.99),
        ("$5.", 5.0),
        ("1,234,567.00", 1234567.0),
        (9, 9.0),
        (2.5, 2.5),
        ("0.00", None),
        (0, None),
        (-3, None),
        ("-$3.00", None),
        ("$ -3.00", None),
        ("12,99", 12.99),
        ("12,5", 12.5),
        (",99 €", 0.99),
        ("0,125", 0.125),
        ("€ 1.349,50", 1349.5),
        ("1.234.567", 1234567.0),
        ("1,299", 1299.0),
        ("1,34,950.00", None),
        ("1.34.950,00", None),
        ("1,234.567,8", None),
        (",125", 0.125),
        ("1.2.3", None),
        ("1e5", None),
        ("20% off", None),
        ("Currently unavailable", None),
        ("", None),
        ("NaN", None),
        (" n/a ", None),
        (math.nan, None),
        (math.inf, None),
        (True, None),
        ("9" * 400, None),
        (10**400, None),
        (["$3"], 3.0),
        ({"price": 3}, None),
        ("$12$15", 12.0),
        ("£3£5", 3.0),
        ("2 for $5", 5.0),
        ("Rs. 500", 500.0),
        ("HK$5", 5.0),
        ("12.50 €", 12.5),
        ("5USD", 5.0),
        ("12 € - 15 €", 12.0),
        ("$5 USD", 5.0),
        ("20% off $5", None),
        ("1 349,50 €", None),
        ("1 349.50 €", None),
        ("1 299.00", None),
        ("1\u00a0299.00", None),
        ("1\u202f299.00", None),
        ("1'299.00", None),
        ("$1\u2019299.00", None),
        ("$1 000 000", None),
        ("$12 99", None),
        ("$1.2M", None),
        ("$1.2 million", None),
        ("$1.5 bn", None),
        ("₹1.5 lakh", None),
        ("$5k", None),
        ("12½", None),
        ("$12²", None),
        ("1/2", None),
        ("$5/lb", None),
        ("($5)", None),
        ("(5.00)", None),
        ("\u2013$5", None),
        ("5.00-", None),
        ("99¢", None),
        ("50 cents", None),
        ("2 for 5", None),
        ("2 $5", None),
        ("12.99 to 15.99 €", None),
        ("ABC123", None),
        ("call us, $", None),
        ("1.299 €", None),
        ("€1.299", None),
        ("$1.299", None),
        ("12.500", None),
        ("$0.125", 0.125),
        ("$1,234.567", 1234.567),
        (1.299, 1.299),
        ("$5 per lb", None),
        ("5 € per lb", None),
        ("$5 a pound", None),
        ("$5 an ounce", None),
        ("$5 lb", None),
        ("$0.50 per oz", None),
        ("$3.25 - $8 per lb", None),
        ("$3.25 to $8/lb", None),
        ("$5.00 ($0.50 per oz)", 5.0),
        ("$5 each", 5.0),
        ("10. Mai", None),
        ("5. Okt", None),
        ("2024-05-10", None),
        ("TBD 2025", None),
        ("was $20 now $10", None),
        ("down from $90: $45", None),
        ("save $5", None),
        ("$5 off", None),
        ("2 pack 9,99", None),
        ("2 pack $9.99", None),
        ("buy 2 get 1", None),
        ("Shipping $5 Price $10", None),
        ("Members $5, guests $10", None),
        ("5 stars", None),
        ("12 - 15", None),
        ("$5 - $10", 5.0),
        ("from $5", 5.0),
        ("from 5", 5.0),
        ("ca. 5,50", 5.5),
        ("about 5", 5.0),
        ("Price: 5 each", 5.0),
        ("only 5*", 5.0),
        ("5,-", 5.0),
        ("5 kr", 5.0),
        ("5 Euro", 5.0),
        ("12.50 eur", 12.5),
        (Decimal("5.99"), 5.99),
        (Decimal(7), 7.0),
        (Decimal("-1.5"), None),
        (Decimal("Infinity"), None),
    ],
)
def test_a_price_is_read_for_sure_or_not_at_all(cell: Any, price: float | None):
    assert values.price(cell) == price


@pytest.mark.parametrize(
    ("clear", "delimiter", "point", "comma"),
    [
        (["12,50", "call us", None, 3.5], ",", 1299.0, 1.299),
        (["1.234,56"], "", 1299.0, 1.299),
        (["$3.25 - $8"], ";", 1.299, 1299.0),
        (["1,234,567"], ";", 1.299, 1299.0),
        ([], ";", 1299.0, None),
        (["12", "1.500", "", "1 349,50 €"], ";", 1299.0, None),
        ([], ",", None, 1299.0),
        (["12", 12.5, "1/2"], "", None, 1299.0),
        (["12,50", "12.50"], ";", None, None),
        (["12.50"] * 8 + ["12,50"], ",", None, None),
        (["12.50"] * 9 + ["12,50"], ",", 1.299, 1299.0),
    ],
)
def test_a_point_or_comma_before_three_digits_means_the_same_as_in_the_other_prices_of_a_file(
    clear: list[Any], delimiter: str, point: float | None, comma: float | None
):
    notation = values.detect_notation(clear, delimiter)
    assert values.price("1.299 €", notation) == point
    assert values.price("1,299", notation) == comma
    assert values.price("12,50", notation) == values.price("12.50", notation) == 12.5


@given(
    st.decimals(min_value=1, max_value=10**9, places=2, allow_nan=False),
    st.sampled_from([",", ";", "", "\t"]),
)
def test_a_price_with_two_decimals_is_the_same_in_each_notation(amount: Decimal, delimiter: str):
    with_points = f"{amount:,}"
    with_commas = with_points.translate(str.maketrans(".,", ",."))
    for cells in ([with_points], [with_commas], []):
        notation = values.detect_notation(cells, delimiter)
        assert values.price(with_points, notation) == float(amount)
        assert values.price(with_commas, notation) == float(amount)


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("x<y and z>w", "x<y and z>w"),
        ("fits if a<b and c>d", "fits if a<b and c>d"),
        ("use at <20 C and >5 C", "use at <20 C and >5 C"),
        ("a<b c>d", "a<b c>d"),
        ("<x-note>For</x-note> desks", "For desks"),
        ("<p class='a' id=b>For</p> <b>desks</b><br/><BR />", "For desks"),
        ('<a href="https://a.b/?x=1" target=_blank>here</a>', "here"),
        ("<!DOCTYPE html><h2>Soap</h2><!-- a > b --> for <i\n>you</i>", "Soap for you"),
        ("<img src=x alt='y'/>&lt;b&gt;", "<b>"),
        (
            "<style>p {color: red}</style>Soap <script src='a'>if (a<b) {\n}</SCRIPT >bar",
            "Soap bar",
        ),
        ("<script>Soap", "Soap"),
    ],
)
def test_only_tags_of_html_are_left_out(cell: str, text: str):
    assert values.without_tags(cell) == text


@pytest.mark.parametrize(
    "part",
    ["<a b='", '<a b="', "<!--", "<a b=c=", "<", "<p ", "<!doctype ", "<script>", "<script>x</"],
)
def test_a_long_text_of_half_tags_is_read_at_once(part: str):
    began = time.monotonic()
    values.without_tags(part * 100_000)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("cell", "rating"),
    [
        ("4.5 out of 5", 4.5),
        ("4.5 out of 5 stars", 4.5),
        ("3/5", 3.0),
        ("4,5", 4.5),
        ("4,5/5,0", 4.5),
        ("1,234", None),
        ("4.0", 4.0),
        (0, 0.0),
        (5, 5.0),
        ("5.1", None),
        (6, None),
        (-1, None),
        ("four", None),
        ("4.5 out of 10", None),
        (Decimal("4.5"), 4.5),
        ("4 5", None),
        (math.nan, None),
        (None, None),
    ],
)
def test_a_rating_is_a_number_from_0_to_5(cell: Any, rating: float | None):
    assert values.rating(cell) == rating


@pytest.mark.parametrize(
    ("texts", "ounces"),
    [
        (["Soap, 4 oz"], 4.0),
        (["Juice 64 FL OZ"], 64.0),
        (["Juice 12.5 fl. oz."], 12.5),
        (["One ounce of tea, 3 ounces of milk"], 3.0),
        (["8-ounce cup"], 8.0),
        (["1,000 oz"], 1000.0),
        (["Soap", "weighs .5 oz"], 0.5),
        ([None, "2 oz"], 2.0),
        (["0 oz"], None),
        (["1.2.3 oz"], None),
        (["4 ozone"], None),
        (["size 4"], None),
        ([None], None),
        (["Cleaner - 16 oz"], 16.0),
        (["1 lb (16 oz)"], 16.0),
        (["1/2 oz"], None),
        (["3/4oz"], None),
        (["1 / 2 oz"], None),
        (["1 1/2 oz"], None),
        (["1½ oz"], None),
        (["½ oz, 32 oz"], None),
        (["1½ oz", "2 oz"], None),
        (["\uff11\uff16 oz, 2 oz"], None),
        (["½ price, 32 oz"], 32.0),
        (["4-6 oz"], None),
        (["4 \u2013 6 oz"], None),
        (["-4 oz"], None),
        (["2 x 8 oz"], None),
        (["1 200 oz"], None),
        (["1'200 oz"], None),
        (["5 lb 8 oz"], None),
        (["5 lbs. 8 oz"], None),
        (["5 pounds and 8 oz"], None),
    ],
)
def test_ounces_are_those_that_are_named_first(texts: Any, ounces: float | None):
    assert values.ounces(texts) == ounces


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("  two\n words\t", "two words"),
        (7, "7"),
        (7.0, "7"),
        (7.5, "7.5"),
        (Decimal("7.00"), "7"),
        (Decimal(123456789012345678), "123456789012345678"),
        (Decimal("NaN"), None),
        (["one", None, "two"], "one two"),
        ("\ud800x", "?x"),
        ("a\x00b\x7f", "a b"),
        ("None", None),
        ("N/A", None),
        ("nan", None),
        (" ", None),
        (math.nan, None),
        (True, None),
        ([], None),
        ({"a": 1}, None),
        (b"x", None),
    ],
)
def test_a_text_has_single_spaces_or_is_missing(cell: Any, text: str | None):
    assert values.text(cell) == text
    assert values.is_missing(cell) is (text is None and cell is not True)


def test_further_values_stay_what_they_are():
    assert [values.plain(each) for each in (True, 3, 2.5, "x", math.nan, " ", None, [])] == [
        True,
        3.0,
        2.5,
        "x",
        None,
        None,
        None,
        None,
    ]


def test_a_long_cell_is_read_at_once():
    began = time.monotonic()
    for cell in ("." * 100_000, "$" + "," * 100_000):
        assert values.price(cell) is None
    assert time.monotonic() - began < 5


def test_whole_numbers_that_would_be_rounded_are_texts():
    large = 2**53
    assert [values.plain(each) for each in (large, -large, large + 1, -large - 1)] == [
        float(large),
        -float(large),
        "9007199254740993",
        "-9007199254740993",
    ]
    assert values.plain(1e300) == 1e300
    assert values.plain(Decimal(large + 1)) == "9007199254740993"
    assert values.plain(Decimal("2.50")) == 2.5


@given(CELLS)
def test_no_cell_raises_and_each_number_is_in_its_range(cell: Any):
    price, rating = values.price(cell), values.rating(cell)
    assert price is None or (price > 0 and math.isfinite(price))
    assert rating is None or 0 <= rating <= 5
    text = values.text(cell)
    assert text is None or (text == text.strip() and text.encode())
    found = values.ounces([text])
    assert found is None or found > 0
    plain = values.plain(cell)
    assert not isinstance(plain, float) or math.isfinite(plain)
