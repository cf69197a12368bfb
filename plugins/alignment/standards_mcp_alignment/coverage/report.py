"""The answer of ``check_coverage``: data for programs, and Markdown for people."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from standards_mcp_alignment.answers import Digests
from standards_mcp_alignment.loaded import paraphrase_notes
from standards_mcp_alignment.markdown import inline
from standards_mcp_catalog import StandardRecord

from .answers import (
    ActivitySummary,
    Cluster,
    CoverageAnswer,
    Domain,
    Met,
    Plan,
    PlanStep,
    Standard,
)
from .matching import MET_SCORE, Activity, Hit, Matches
from .planning import MOST_EXACT, smallest_cover
from .scope import Heading, Scope

_MOST_CHARACTERS: Final = 160
_MOST_CODES: Final = 30
_MOST_SHOWN: Final = 5


def coverage_answer(
    scope: Scope, matches: Matches, digests: Digests, notes: Sequence[str], *, with_plan: bool
) -> CoverageAnswer:
    """Return the structured answer."""
    standards = _standards(scope, matches.activities)
    covered = sum(each["covered"] for each in standards)
    share = f"{covered} of {len(standards)} standards"
    answer: CoverageAnswer = {
        "success": True,
        "message": f"{share} of {scope.name} are covered. Check the pairs before you rely on them.",
        "jurisdiction": scope.jurisdiction,
        "subjects": list(scope.subjects),
        "grades": list(scope.levels),
        "met": _met(is_measured=matches.is_measured),
        "summary": _summary(scope, standards),
        "standards": standards,
        "activities": _activities(scope, matches.activities),
        "notes": [*notes, *scope.notes, *paraphrase_notes(scope.standards), *matches.notes],
        "digests": digests,
    }
    if with_plan:
        answer["plan"] = _plan(scope, matches.activities)
    return answer


def _met(*, is_measured: bool) -> Met:
    meaning = (
        "covered: an activity states the code, or the standard is its best one with a score of "
        f"{MET_SCORE} or more. maybe_by: a score of {MET_SCORE} or more, but another standard fits "
        "the activity better. "
    )
    meaning += (
        "In measurements, .62 to .89 of such pairs by meaning were right (docs/benchmarks.md, "
        "Coverage), so confirm each."
        if is_measured
        else "The scores of this catalog's store or text encoder were never measured: confirm each."
    )
    return {"score": MET_SCORE, "measured": is_measured, "meaning": meaning}


def _standards(scope: Scope, activities: Iterable[Activity]) -> list[Standard]:
    hits = defaultdict[str, list[tuple[int, Hit]]](list)
    for activity in activities:
        for hit in activity.hits:
            hits[hit.id].append((activity.number, hit))
    shown = list[Standard]()
    for record in scope.standards:
        own = sorted(hits[record.id], key=lambda pair: -pair[1].score)
        met = [(number, hit) for number, hit in own if hit.met]
        near = [number for number, hit in own if not hit.met and hit.score >= MET_SCORE]
        best = next((hit for _, hit in met or own), None)
        standard: Standard = {
            "code": code_of(record),
            "_id": record.id,
            "text": textwrap.shorten(record.description, _MOST_CHARACTERS, placeholder=" ..."),
            "domain": _label(scope.domains[record.id]),
            "covered": bool(met),
            "by": [number for number, _ in met],
            "score": round(best.score, 4) if best else 0.0,
        }
        if cluster := scope.clusters.get(record.id):
            standard["cluster"] = _label(cluster)
        if best and met:
            standard["basis"] = best.basis
        if near:
            standard["maybe_by"] = near
        shown.append(standard)
    return shown


def _summary(scope: Scope, standards: Sequence[Standard]) -> list[Domain]:
    in_domain, in_cluster = _grouped(scope.domains, standards), _grouped(scope.clusters, standards)
    domains = list[Domain]()
    for domain, members in in_domain.items():
        ids = {each["_id"] for each in members}
        clusters = [
            _counted(cluster, parts)
            for cluster, parts in in_cluster.items()
            if parts[0]["_id"] in ids
        ]
        missing = [each["code"] for each in members if not each["covered"]]
        domains.append({**_counted(domain, members), "clusters": clusters, "missing": missing})
    return domains


def _grouped(
    headings: Mapping[str, Heading], standards: Iterable[Standard]
) -> dict[Heading, list[Standard]]:
    groups = defaultdict[Heading, list[Standard]](list)
    for standard in standards:
        if heading := headings.get(standard["_id"]):
            groups[heading].append(standard)
    return groups


def _counted(heading: Heading, standards: Sequence[Standard]) -> Cluster:
    return {
        "code": heading.code,
        "text": textwrap.shorten(heading.text, _MOST_CHARACTERS, placeholder=" ..."),
        "standards": len(standards),
        "covered": sum(each["covered"] for each in standards),
    }


def _activities(scope: Scope, activities: Iterable[Activity]) -> list[ActivitySummary]:
    codes = {record.id: code_of(record) for record in scope.standards}
    shown = list[ActivitySummary]()
    for activity in activities:
        summary: ActivitySummary = {
            "number": activity.number,
            "text": textwrap.shorten(activity.text, _MOST_CHARACTERS, placeholder=" ..."),
            "meets": [codes[hit.id] for hit in activity.hits if hit.met],
        }
        if activity.elsewhere:
            summary["elsewhere"] = activity.elsewhere
        if activity.unknown:
            summary["unknown"] = activity.unknown
        shown.append(summary)
    return shown


def _plan(scope: Scope, activities: Sequence[Activity]) -> Plan:
    codes = {record.id: code_of(record) for record in scope.standards}
    bits = {record.id: 1 << place for place, record in enumerate(scope.standards)}
    met = [{hit.id for hit in activity.hits if hit.met} for activity in activities]
    cover = smallest_cover([sum(bits[id_] for id_ in ids) for ids in met])
    steps, before = list[PlanStep](), set[str]()
    for position in cover.chosen:
        adds = [codes[id_] for id_ in bits if id_ in met[position] - before]
        steps.append({"activity": activities[position].number, "adds": adds})
        before |= met[position]
    chosen = set(cover.chosen)
    not_needed = [
        activity.number
        for position, activity in enumerate(activities)
        if position not in chosen and met[position]
    ]
    return {
        "steps": steps, "covers": len(before), "not_needed": not_needed, "exact": cover.exact
    }  # fmt: skip


def code_of(record: StandardRecord) -> str:
    """Return the code of a standard, or its id if it has none."""
    return record.statement_notation or record.id


def _label(heading: Heading) -> str:
    return heading.code or heading.text


def as_markdown(answer: CoverageAnswer) -> str:
    """Return the answer for people."""
    texts = {each["number"]: inline(each["text"], 60) for each in answer["activities"]}
    lines = [
        f"**{inline(answer['message'], 400)}**",
        "",
        "| Domain | covered | missing |",
        "|---|---|---|",
    ]
    for domain in answer["summary"]:
        missing = ", ".join(domain["missing"][:_MOST_CODES])
        more = len(domain["missing"]) - _MOST_CODES
        name = " ".join(filter(None, (domain["code"], domain["text"])))
        lines.append(
            f"| {inline(name, 80)} | {domain['covered']} of {domain['standards']} "
            f"| {inline(missing, 400)}{f' and {more} more' if more > 0 else ''} |"
        )
    lines += ["", "| Met | by activity | score |", "|---|---|---|"]
    for standard in answer["standards"]:
        if standard["covered"]:
            by = "; ".join(f"{number} {texts[number]}" for number in standard["by"][:_MOST_SHOWN])
            is_stated = standard.get("basis") == "code"
            basis = "stated code" if is_stated else f"{standard['score']:.2f}"
            name = inline(f"{standard['code']} {standard['text']}", 100)
            lines.append(f"| {name} | {by} | {basis} |")
    lines += _exceptions(answer)
    if plan := answer.get("plan"):
        lines += _plan_lines(plan, texts)
    lines += ["", answer["met"]["meaning"], *answer["notes"]]
    return "\n".join(lines)


def _exceptions(answer: CoverageAnswer) -> list[str]:
    lines = list[str]()
    for activity in answer["activities"]:
        reasons = list[str]()
        if elsewhere := activity.get("elsewhere"):
            reasons.append(f"not a standard of this grade: {', '.join(elsewhere[:_MOST_SHOWN])}")
        if unknown := activity.get("unknown"):
            reasons.append(f"not loaded: {', '.join(unknown[:_MOST_SHOWN])}")
        if not activity["meets"] and not reasons:
            reasons.append("meets no standard of this grade clearly")
        if reasons:
            text = inline(activity["text"], 60)
            lines.append(f"- {activity['number']} {text}: {inline('; '.join(reasons), 300)}")
    return ["", "Activities to look at:", "", *lines] if lines else []


def _plan_lines(plan: Plan, texts: Mapping[int, str]) -> list[str]:
    certainty = (
        "No smaller selection covers as much."
        if plan["exact"]
        else f"With more than {MOST_EXACT} useful activities, a smaller one may exist."
    )
    lines = [
        "",
        f"**Plan: {len(plan['steps'])} activities cover {plan['covers']} standards.** {certainty}",
        "",
    ]
    for step in plan["steps"]:
        adds = inline(", ".join(step["adds"]), 300)
        lines.append(f"- {step['activity']} {texts[step['activity']]}: {adds}")
    if plan["not_needed"]:
        lines.append(f"- not needed: {', '.join(map(str, plan['not_needed']))}")
    return lines
