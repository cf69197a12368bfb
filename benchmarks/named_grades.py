"""Questions that name a grade in the text, with that grade read and not read.

usage: python benchmarks/named_grades.py [--corpus C.jsonl.gz --queries Q.jsonl.gz [--index DIR]]

Without a corpus: 60 questions of our own over the starter set, each once with a grade in the words
of a teacher and once without. With one: the queries whose text names a grade, over their framework,
and for all others that the answer is the same.
"""

import argparse
import asyncio
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrieval import lines

from standards_mcp import FilterExpression
from standards_mcp_catalog import Catalog, SearchHit, open_local
from standards_mcp_catalog.vocabulary.notation import canonical_key
from standards_mcp_search.named import named_grades
from standards_mcp_search.ranking import search_by_text

COUNT = 5
QUESTIONS = """
{counting teddy bears one by one up to twenty| with kindergarteners}K.CC.B.5
{sorting buttons by color and counting how many in each pile| in kindergarten}K.MD.B.3
{finding shapes around the classroom and naming them|, Grade K}K.G.A.2
{which cup holds more water, comparing two containers| for my kindergarten class}K.MD.A.2
{story problems with adding and taking away up to ten| for kindergartners}K.OA.A.2
{measuring the desk with paper clips laid end to end|, 1st grade}1.MD.A.2
{reading the time on a clock to the hour and half hour| for first graders}1.MD.B.3
{bundling popsicle sticks into tens and ones|, Grade 1}1.NBT.B.2
{cutting circles into halves and fourths| with 1st graders}1.G.A.3
{fact families for addition and subtraction| in first grade}1.OA.B.3
{skip counting by fives, tens and hundreds| for second graders}2.NBT.A.2
{counting quarters, dimes and nickels to buy a toy|, 2nd grade}2.MD.C.8
{arrays of stickers and repeated addition| in grade 2}2.OA.C.4
{estimating lengths in inches, feet, centimeters and meters| for 2nd graders}2.MD.A.3
{adding four two-digit numbers|, Gr. 2}2.NBT.B.6
{fractions on a number line| for 3rd graders}3.NF.A.2
{comparing fractions with the same numerator| in third grade}3.NF.A.3
{area of rectangles by counting unit squares|, Grade 3}3.MD.C.6
{rounding to the nearest ten or hundred| for third-grade students}3.NBT.A.1
{perimeter of a garden fence problems|, 3rd grade}3.MD.D.8
{long division with remainders| for 4th graders}4.NBT.B.6
{factor pairs, primes and composites| in fourth grade}4.OA.B.4
{protractors and measuring angles|, Grade 4}4.MD.C.6
{adding fractions with the same denominator| with fourth graders}4.NF.B.3
{lines of symmetry in letters and shapes|, 4th grade}4.G.A.3
{adding and subtracting fractions with unlike denominators| for 5th graders}5.NF.A.1
{volume of boxes with unit cubes| in fifth grade}5.MD.C.4
{plotting points in the first quadrant|, Grade 5}5.G.A.1
{powers of ten and moving the decimal point| for fifth-grade students}5.NBT.A.2
{multiplying multi-digit numbers with the standard algorithm|, 5th grade}5.NBT.B.5
{recipes and ratio tables| for 6th graders}6.RP.A.3
{dividing fractions by fractions| in sixth grade}6.NS.A.1
{negative numbers on thermometers and elevations|, Grade 6}6.NS.C.5
{mean, median and spread of class data| for sixth graders}6.SP.B.5
{equivalent expressions with the distributive property|, 6th grade}6.EE.A.3
{constant of proportionality from a graph| for 7th graders}7.RP.A.2
{probability with spinners and dice| in seventh grade}7.SP.C.7
{circumference and area of a circle|, Grade 7}7.G.B.4
{discounts, tax and tip| for seventh graders}7.RP.A.3
{adding and subtracting integers with counters|, 7th grade}7.NS.A.1
{Pythagorean theorem to find a missing side| for 8th graders}8.G.B.7
{slope and similar triangles| in eighth grade}8.EE.B.6
{scientific notation for very large numbers|, Grade 8}8.EE.A.4
{scatter plots and lines of fit| for eighth graders}8.SP.A.2
{solving systems of two linear equations|, 8th grade}8.EE.C.8
{asking and answering who, what, where questions about a story| for 2nd graders}RL.2.1
{the moral of a fable or folktale| in third grade}RL.3.2
{comparing a firsthand and a secondhand account of an event| for 4th graders}RI.4.6
{opinion essay with reasons supported by facts|, Grade 5}W.5.1
{theme of a poem and a summary of it| for fifth graders}RL.5.2
{argument writing with claims and evidence| for 6th graders}W.6.1
{capital letters and end punctuation in sentences|, 1st grade}L.1.2
{describing the characters and setting| for kindergarteners}RL.K.3
{Greek and Latin roots to find what words mean| in seventh grade}L.7.4
{evaluating whether an author's reasons support the claims|, Grade 8}RI.8.8
{group discussion rules and taking turns| for first graders}SL.1.1
{writing a how-to or explanatory paragraph| in grade 2}W.2.2
{prefixes and suffixes to decode words| with third graders}RF.3.3
{how a drawing helps to understand the text|, Grade 1}RI.1.7
{reporting on a topic with facts, speaking clearly| for 4th graders}SL.4.4
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--index", type=Path, help="a folder with the corpus imported already")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        catalog = open_local(arguments.index or Path(folder), "minilm")
        if arguments.queries:
            asyncio.run(_of_others(catalog, list(lines(arguments.queries))))
        else:
            asyncio.run(_our_own(catalog))


async def _our_own(catalog: Catalog) -> None:
    pairs = [
        (*match.groups(), match.string[match.end() :])
        for line in QUESTIONS.strip().splitlines()
        if (match := re.match(r"\{(.*)\|(.*)\}", line))
    ]
    print(f"{len(pairs)} questions, the first {COUNT} results, starter set")
    for title, named, reads in (
        ("without a grade", False, True),
        ("with a grade, not read", True, False),
        ("with a grade, read", True, True),
    ):
        right = of_grade = results = 0
        seconds = list[float]()
        for plain, grade, code in pairs:
            levels = named_grades(plain + grade)
            assert len(levels) == 1, plain + grade
            began = time.perf_counter()
            hits = await _search(catalog, plain + (grade if named else ""), None, reads=reads)
            seconds.append(time.perf_counter() - began)
            wanted = canonical_key(code)
            keys = [canonical_key(hit.record.statement_notation or "") for hit in hits]
            right += any(key == wanted or key.startswith(wanted + ".") for key in keys)
            of_grade += sum(levels[0] in hit.record.education_levels for hit in hits)
            results += len(hits)
        middle = sorted(seconds)[len(seconds) // 2] * 1000
        print(
            f"{title:24} right {right} of {len(pairs)}, of the grade {of_grade} of {results}, "
            f"p50 {middle:.0f} ms"
        )


async def _of_others(catalog: Catalog, queries: Sequence[dict[str, Any]]) -> None:
    named = [query for query in queries if named_grades(query["text"])]
    print(f"{len(named)} of {len(queries)} queries name a grade")
    for reads in (False, True):
        recalls = list[float]()
        for query in named:
            own: FilterExpression = {"standard_set_id": query["framework"]}
            hits = await _search(catalog, query["text"], own, reads=reads)
            gold = set(query["gold_ids"])
            found = {each.id for hit in hits for each in (hit.record, *hit.also_in)}
            recalls.append(len(gold & found) / min(len(gold), COUNT))
        print(f"{'read' if reads else 'not read':10} recall@5 {sum(recalls) / len(recalls):.3f}")


async def _search(
    catalog: Catalog, text: str, given: FilterExpression | None, *, reads: bool
) -> tuple[SearchHit, ...]:
    result = await search_by_text(
        catalog, text[:8000], COUNT, given, reads_grade=reads, reads_subject=reads
    )
    return result.hits


if __name__ == "__main__":
    main()
