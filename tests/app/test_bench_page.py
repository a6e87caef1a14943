"""The page: one file that shows every figure, and nothing of anyone else's as markup."""

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench_records import MODES, planned, round_of, run_of
from specchat.bench.page.acceptance import acceptance
from specchat.bench.page.cost_curve import cost_curve
from specchat.bench.page.gamma import gamma
from specchat.bench.page.page import Bench, page
from specchat.bench.page.speedup import Bar, bars, over_gamma
from specchat.bench.page.svg import apart, linear, logarithmic, root, steps, tag
from specchat.bench.records import Plan, Record
from specchat.bench.results import Spread, results
from specchat.bench.rivals.contest import RivalResult
from specengine.advice import advise
from specengine.costs import GRID, CostTable
from specengine.protocol import Loaded
from specengine.trace import Round

NASTY = '<img src="x" onerror="alert(1)">&amp;'
VOID = {"meta", "img", "br", "link"}
COSTS = CostTable([0.03 * (1 + 0.5 * (width - 1)) for width in GRID], draft_step_s=0.01, draft_read_s=0.001)
DRAFTS = [
    round_of("lookup", 8, 8),
    round_of("lookup", 8, 2),
    round_of("draft", 3, 1),
    round_of(),
    round_of("draft", 3, 3),
]
MACHINE: dict[str, Any] = {
    "processor": NASTY,
    "cores": 2,
    "memory_bytes": 8e9,
    "gpus": [],
    "system": "Linux",
    "python": "3.12",
    "specchat": "1.0",
    "backend": "llama.cpp",
    "device": "CPU, 2 threads",
}


class Checked(HTMLParser):
    """Follows every element to its end, and notes what a page must not have."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.words: list[str] = []
        self.svgs = 0
        self.rows: list[list[str]] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        if name not in VOID:
            self.open.append(name)
        self.svgs += name == "svg"
        if name == "tr":
            self.rows.append([])
        if name == "td":
            self.rows[-1].append("")
        if name in ("script", "link", "img", "iframe", "object") or any(
            key.startswith("on") or key in ("src", "href") for key, _ in attributes
        ):
            self.outside.append(self.get_starttag_text() or name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)
        if "td" in self.open:
            self.rows[-1][-1] += data


def bench(records: list[Record], plan: Plan, name: str = "toy") -> Bench:
    loaded = Loaded(name, "toy.gguf", "llama.cpp", "CPU, 2 threads", n_ctx=2048, n_vocab=100, draft=f"small{name}")
    return Bench(
        records=records,
        results=results(records, plan),
        plan=plan,
        loaded=loaded,
        costs=COSTS,
        machine=MACHINE,
        advice=advise(COSTS, loaded.draft),
        command=f"specchat bench -m '{name}'",
    )


def records(modes: tuple[str, ...] = MODES, rounds: list[Round] = DRAFTS) -> list[Record]:
    tokens = range(sum(one.emitted for one in rounds))
    return [
        run_of(
            mode,
            round,
            seconds * (1 + 0.1 * round),
            workload=name,
            tokens=tokens,
            drafted=20,
            accepted=9,
            rounds=rounds,
        )
        for name in ("copy", "tale")
        for round in range(3)
        for mode, seconds in zip(modes, (1.0, 0.5, 1.25, 0.4, *[0.8] * len(modes)), strict=False)
    ]


def read(html: str) -> Checked:
    checked = Checked()
    checked.feed(html)
    assert checked.open == []
    return checked


def test_it_is_well_formed_and_needs_nothing_else() -> None:
    html = page(bench(records(), planned()))
    checked = read(html)
    assert checked.outside == []
    assert not re.search(r"url\(|@import|https?:", html)
    assert checked.svgs == 2 + 2 + 2 + 1  # bars, gamma and acceptance of two workloads, and the cost curve


def test_names_and_descriptions_are_text_and_never_markup() -> None:
    html = page(bench(records(), planned(), name=NASTY))
    checked = read(html)
    assert checked.outside == []
    words = "".join(checked.words)
    assert words.count(NASTY) >= 4
    assert "<img" not in html


def test_every_figure_of_the_results_is_in_the_table() -> None:
    told = bench(records(), planned())
    rows = [row for row in read(page(told)).rows if row]
    assert [(row[0], row[1]) for row in rows] == [(result.workload, result.mode) for result in told.results]
    for row, result in zip(rows, told.results, strict=True):
        assert result.timing is not None and result.ratio_to_plain is not None
        assert row[2].split()[0] == f"{result.tokens_per_s.median:.1f}"
        assert row[3].split()[0] == f"{result.ratio_to_plain.median:.2f}"
        assert row[4] == f"{1000 * result.timing.token_p50_s:.1f}"
        assert row[10:13] == [f"{result.tokens:,}", f"{result.target_passes:,}", f"{result.tokens_per_pass:.2f}"]
        assert row[18:20] == [
            f"{source.acceptance:.0%}" for source in sorted(result.sources, key=lambda s: s.source < "e")
        ]


def test_it_says_what_it_means_and_how_to_measure_it_again() -> None:
    told = bench(records(), planned())
    words = " ".join("".join(read(page(told)).words).split())
    assert str(told.advice) in words
    assert "speculation gains on copy (2.50×) and tale (2.50×)." in words
    assert "specchat bench -m 'toy'" in words


def test_a_sweep_is_drawn_as_lines_and_its_modes_are_no_bars() -> None:
    modes = (*MODES, "lookup:3", "lookup:8", "draft:3")
    plan = planned(modes=modes)
    told = bench(records(modes), plan)
    html = page(told)
    assert "Every fixed draft length beside auto" in html
    assert 'text-anchor="end">lookup:3<' not in html
    alone = page(bench(records((*MODES, "lookup:3")), planned(modes=(*MODES, "lookup:3"))))
    assert "Every fixed draft length beside auto" not in alone
    assert 'text-anchor="end">lookup:3<' in alone


@pytest.mark.parametrize(
    ("modes", "rounds"),
    [
        (("auto",), DRAFTS),
        (("plain",), [round_of()] * 3),
        (("plain", "auto"), [round_of()] * 3),
        (("draft:3",), [round_of("draft", 3, 3, length=i) for i in range(4)]),
        (("plain", "lookup:1", "lookup:127"), [round_of("lookup", 127, 127)] * 3),
    ],
)
def test_what_was_not_measured_is_left_out(modes: tuple[str, ...], rounds: list[Round]) -> None:
    html = page(bench(records(modes, rounds), planned(modes=modes)))
    checked = read(html)
    assert checked.svgs >= 1
    compared = "Speedup over plain decoding" in html or "Every fixed draft length" in html
    assert compared is ("plain" in modes and len(modes) > 1)
    assert ("Acceptance by position" in html) is any(one.drafted for one in rounds)
    assert not re.search(r'="-?(nan|inf)', html)


def test_with_nothing_finished_there_is_still_a_page() -> None:
    read(page(bench([], planned())))


def test_other_engines_stand_under_ours_in_bars_and_table() -> None:
    other = RivalResult(
        engine="llama-cpp-python",
        workload="copy",
        mode="lookup:10",
        rounds=3,
        tokens_per_s=Spread(41.04, 40.0, 42.0),
        ratio_to_plain=Spread(1.25, 1.2, 1.3),
        ratio_to_auto=Spread(0.5, 0.5, 0.5),
        tokens=100,
        target_passes=50,
        drafted=None,
        accepted=None,
        acceptance=None,
        ttft_s=None,
        same_text_as_plain=True,
        first_fork=None,
        temperature=0.0,
    )
    html = page(replace(bench(records(), planned()), theirs=(other,)))
    rows = [row for row in read(html).rows if row]
    (row,) = [row for row in rows if row[1] == "llama-cpp-python lookup:10"]
    assert rows.index(row) == 4
    assert (row[2], row[3], row[11], row[12]) == ("41.0 (40.0–42.0)", "1.25 (1.20–1.30)", "50", "2.00")
    assert len(row) == len(rows[0])
    assert re.findall(r'text-anchor="end">(llama-cpp-python lookup:10)<', html)


def test_a_bar_is_as_long_as_its_median_and_its_line_as_its_range() -> None:
    told = [result for result in results(records(), planned()) if result.workload == "copy"]
    shown = [Bar(one.mode, one.mode, one.ratio_to_plain) for one in told if one.ratio_to_plain]
    drawn = str(bars("copy", shown, 5.0))
    lengths = [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)"', drawn)]
    assert [length / lengths[0] for length in lengths] == pytest.approx([1, 2, 0.8, 2.5], rel=1e-2)
    assert [*re.findall(r">([\d.]+)×</text>", drawn)] == ["1.00", "2.00", "0.80", "2.50"]


def test_rounds_are_drawn_as_wide_as_they_emitted_and_as_high_as_they_drafted() -> None:
    run = run_of("auto", 0, 1, tokens=range(18), rounds=DRAFTS)
    drawn = str(gamma(run))
    said = re.findall(r"<title>(\w+): (\d+) drafted, (\d+) accepted</title>", drawn)
    assert said == [("lookup", "8", "8"), ("lookup", "8", "2"), ("draft", "3", "1"), ("draft", "3", "3")]
    starts = [float(x) for x in re.findall(r'<rect x="([\d.]+)"[^>]*class="bar', drawn)]
    unit = (starts[1] - starts[0]) / 9
    assert [round((start - starts[0]) / unit) for start in starts] == [0, 9, 12, 14, 15]


@pytest.mark.parametrize("accepted", [2, 3, 7])
def test_a_draft_of_two_sources_is_drawn_in_both_colours(accepted: int) -> None:
    both = msgspec.structs.replace(round_of("draft", 9, accepted), copied=6)
    drawn = str(gamma(run_of("auto", 0, 1, tokens=range(accepted + 1), rounds=[both])))
    assert f"<title>3 draft, 6 lookup: 9 drafted, {accepted} accepted</title>" in drawn
    assert "1 round of both</title>" in drawn and "of draft" not in drawn
    heights = {
        kind: float(re.search(rf'height="([\d.]+)"[^>]*class="{kind}"', drawn)[1])  # type: ignore[index]
        for kind in ("drafted draft", "bar draft", "drafted lookup", "bar lookup")
    }
    assert heights["drafted draft"] > 0 and heights["drafted lookup"] > 0
    assert (heights["bar draft"] == heights["drafted draft"]) == (accepted >= 3)
    assert (heights["bar lookup"] > 0) == (accepted > 3)


def test_acceptance_by_position_is_accepted_over_drafted() -> None:
    told = results([run_of("auto", 0, 1, rounds=[round_of("draft", 4, a) for a in (4, 2, 2, 0)])], planned())
    drawn = acceptance(told)
    assert drawn is not None
    assert re.findall(r"token (\d): (\d+)%", drawn) == [("1", "75"), ("2", "75"), ("3", "25"), ("4", "25")]


def test_positions_of_few_drafts_are_left_out() -> None:
    told = results([run_of("auto", 0, 1, rounds=[round_of("draft", n, n) for n in (1, 1, 2)])], planned())
    drawn = acceptance(told)
    assert drawn is not None
    assert re.findall(r"token (\d)", drawn) == ["1"]
    assert acceptance(results([run_of("auto", 0, 1, rounds=[round_of("draft", 1, 1)])], planned())) is None


def test_the_cost_curve_writes_out_v_and_c() -> None:
    drawn = str(cost_curve(COSTS, "small"))
    assert re.findall(r'class="figure target"[^>]*>([\d.]+)×', drawn) == ["1.5", "2.5", "4.5", "8.5", "16.5", "32.5"]
    assert "c = 0.33" in drawn
    assert "c = " not in str(cost_curve(COSTS, None))


def test_a_sweep_has_its_lengths_as_ticks() -> None:
    modes = ("plain", "draft:3", "draft:10")
    told = results(records(modes), planned(modes=modes))
    fixed = [result for result in told if result.gamma and result.workload == "copy"]
    drawn = str(over_gamma(fixed, told[:1], 2.0))
    assert re.findall(r'class="tick"[^>]*>(\d+)<', drawn) == ["3", "10"]


def test_labels_keep_apart_and_inside() -> None:
    for places in ([5.0, 6.0, 7.0], [99.0, 100.0, 100.0], [50.0], []):
        moved = apart(places, 0, 100)
        ordered = sorted(moved)
        assert all(right - left >= 12 - 1e-9 for left, right in itertools.pairwise(ordered))
        assert all(0 <= place <= 100 for place in moved)
    assert apart([10.0, 60.0], 0, 100) == [10.0, 60.0]
    assert apart([60.0, 10.0], 0, 100) == [60.0, 10.0]


def test_scales_run_from_start_to_end() -> None:
    for scale, middle in ((linear(0, 8, 10, 30), 4), (logarithmic(1, 64, 10, 30), 8), (root(64, 10, 30), 16)):
        assert scale(middle) == pytest.approx(20)
    assert steps(256, 9) == [0, 50, 100, 150, 200, 250]
    assert steps(3, 9) == [0, 0.5, 1, 1.5, 2, 2.5, 3]


def test_text_and_attributes_are_escaped() -> None:
    assert (
        tag("text", "<a>", kind='"x"', stroke_width=1.50)
        == '<text class="&#34;x&#34;" stroke-width="1.5">&lt;a&gt;</text>'
    )


def test_its_files_are_part_of_the_package() -> None:
    from importlib.resources import files

    for name in ("page.html", "style.css"):
        assert Path(str(files("specchat.bench.page") / name)).is_file()
