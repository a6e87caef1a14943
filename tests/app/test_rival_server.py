"""A llama.cpp server as a rival: found by URL or started by us, against an imitation of it."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import tiny
from llama_server import HELP, OLD_HELP, Imitation, Program, program, serving
from rivals import ended, never, question, setup_of
from specchat.bench.rivals import server_http, server_modes
from specchat.bench.rivals.child import Kept
from specchat.bench.rivals.chosen import check, rivals
from specchat.bench.rivals.contract import RivalRun, Setup
from specchat.bench.rivals.server_modes import Help
from specchat.bench.rivals.server_program import ServerProgram
from specchat.bench.rivals.server_url import ServerAtUrl
from specengine.errors import EngineError, Stopped
from specengine.protocol import Load, Loaded
from specengine.settings import Sampling

REAL = os.environ.get("SPECCHAT_LLAMA_SERVER")
"""Read before a test's environment is emptied."""
DRAFT = Path("/models/draft.gguf")


@pytest.fixture
def server() -> Iterator[Imitation]:
    with serving(Imitation()) as imitation:
        yield imitation


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return setup_of(tiny.make(tmp_path / "model.gguf"))


@pytest.fixture
def kept() -> Iterator[Kept]:
    kept = Kept()
    yield kept
    kept.close()


def at(server: Imitation, setup: Setup) -> ServerAtUrl:
    return ServerAtUrl(server.url, setup, never)


class TestAtAUrl:
    def test_it_is_asked_for_the_very_ids_after_they_are_in_its_cache(self, server: Imitation, setup: Setup) -> None:
        rival = at(server, setup)
        server.requests.clear()
        run = rival.answer("plain", question(5, 6, 7, max_tokens=4), never)
        assert run is not None and run.tokens == (8, 9, 10, 11)
        assert [(asked["prompt"], asked["n_predict"], asked["cache_prompt"]) for asked in server.requests] == [
            ([5, 6, 7], 1, False),
            ([5, 6, 7], 4, True),
        ]
        for asked in server.requests:
            assert (asked["id_slot"], asked["temperature"], asked["return_tokens"]) == (0, 0, True)

    def test_sampling_is_passed_on(self, server: Imitation, setup: Setup) -> None:
        sampling = Sampling(temperature=0.7, top_k=20, top_p=0.8, min_p=0.05, seed=2**40 + 3)
        at(server, setup).answer("plain", question(sampling=sampling), never)
        asked = server.requests[-1]
        assert (asked["temperature"], asked["top_k"], asked["top_p"], asked["min_p"]) == (0.7, 20, 0.8, 0.05)
        assert 0 <= asked["seed"] < 2**32 - 1

    def test_the_last_prompt_tokens_pass_counts_as_in_our_own_runs(self, server: Imitation, setup: Setup) -> None:
        run = at(server, setup).answer("plain", question(5, 6, 7, max_tokens=4), never)
        assert run is not None
        assert run.seconds == pytest.approx((2.0 + 3.0) / 1000)
        assert run.first_token_s == pytest.approx(3 * 2.0 / 1000)

    def test_time_to_first_token_is_told_once_a_prompt(self, server: Imitation, setup: Setup) -> None:
        rival = at(server, setup)
        runs = [rival.answer("plain", question(*prompt), never) for prompt in ((5, 6), (5, 6), (7, 8), (5, 6))]
        assert [run is not None and run.first_token_s is not None for run in runs] == [True, False, True, False]

    def test_where_the_cache_is_refused_the_reading_does_not_count(self, server: Imitation, setup: Setup) -> None:
        server.forgetful = True
        run = at(server, setup).answer("plain", question(*range(10, 110), max_tokens=4), never)
        assert run is not None and run.seconds == pytest.approx(3.0 * 4 / 3 / 1000)

    def test_drafts_are_counted_where_the_server_tells_them(self, server: Imitation, setup: Setup) -> None:
        server.kind = "draft-simple"
        rival = at(server, setup)
        assert dict(rival.modes) == {"draft-simple": "--spec-type draft-simple"}
        assert counters(rival.answer("draft-simple", question(), never)) == (None, None)
        server.drafts = (12, 9)
        assert counters(rival.answer("draft-simple", question(), never)) == (12, 9)

    def test_an_older_server_tells_times_alone(self, server: Imitation, setup: Setup) -> None:
        server.old = True
        rival = at(server, setup)
        assert (rival.version, dict(rival.modes)) == (
            "unknown",
            {"as it runs": "it doesn't tell whether it speculates"},
        )
        run = rival.answer("as it runs", question(max_tokens=5), never)
        assert run is not None
        assert (run.tokens, run.n_tokens) == (None, 5)
        assert run.seconds == pytest.approx(0.006)

    def test_its_version_and_address_name_it(self, server: Imitation, setup: Setup) -> None:
        rival = at(server, setup)
        assert rival.name == f"llama.cpp server at {server.url.removeprefix('http://')}"
        assert (rival.version, rival.notices) == ("b1234-abcdef", ())

    @pytest.mark.parametrize("path", [r"C:\models\MODEL.gguf", "/cache/owner_repo_model.gguf", "model.gguf"])
    def test_the_same_model_is_known_by_its_name_wherever_it_lies(
        self, server: Imitation, setup: Setup, path: str
    ) -> None:
        server.model_path = path
        assert list(at(server, setup).modes) == ["plain"]

    def test_another_model_is_refused(self, server: Imitation, setup: Setup) -> None:
        server.model_path = "/models/other.gguf"
        with pytest.raises(EngineError, match=r"serves other\.gguf, not model\.gguf: start it with that file"):
            at(server, setup)

    def test_a_small_context_is_refused_before_anything_is_asked(self, server: Imitation, setup: Setup) -> None:
        server.n_ctx = 100
        rival = at(server, setup)
        server.requests.clear()
        with pytest.raises(EngineError, match="holds 100 tokens: start it with -c 120 or more"):
            rival.answer("plain", question(max_tokens=100), never)
        assert server.requests == []

    def test_one_that_remembers_answers_counts_once_a_prompt(self, server: Imitation, setup: Setup) -> None:
        server.kind = "none,draft-simple,ngram-mod"
        rival = at(server, setup)
        assert ["only its first round counts" in notice for notice in rival.notices] == [True]
        asked = [question(5, 6), question(5, 6), question(7, 8)]
        answers = [rival.answer("draft-simple,ngram-mod", one, never) for one in asked]
        assert [answer is None for answer in answers] == [False, True, False]

    def test_a_further_turn_reads_its_message_before_the_answer_is_timed(self, server: Imitation, setup: Setup) -> None:
        server.kind = "ngram-mod"
        rival = at(server, setup)
        rival.answer("ngram-mod", question(5, 6, max_tokens=3), never)
        server.requests.clear()
        further = replace(question(5, 6, 7, 8, 9, 40, 41, max_tokens=3), continues=True)
        for _ in range(2):
            run = rival.answer("ngram-mod", further, never)
            assert run is not None
            assert run.first_token_s is None
            assert run.seconds == pytest.approx((2.0 + 2.0) / 1000)
        assert {asked["cache_prompt"] for asked in server.requests} == {True}

    @pytest.mark.parametrize(
        ("fault", "sentence"),
        [
            ("is refused", r"^The server at http://127\.0\.0\.1:\d+ refused \(no slot is free\)\.$"),
            ("hangs up", r"^The server at \S+ hung up \(.+\)\.$"),
            ("answers in HTML", r"^The server at \S+ does not answer as a llama\.cpp server does \(.+\)\.$"),
            ("cuts short", r"^The server at \S+ cut the prompt or the answer short: .* 21 tokens for each slot\.$"),
        ],
    )
    def test_every_failure_is_a_sentence(self, server: Imitation, setup: Setup, fault: str, sentence: str) -> None:
        rival = at(server, setup)
        server.fault = fault
        with pytest.raises(EngineError, match=sentence):
            rival.answer("plain", question(), never)

    def test_one_that_never_answers_is_given_up(
        self, server: Imitation, setup: Setup, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rival = at(server, setup)
        server.fault = "hangs"
        monkeypatch.setattr(server_http, "patience_s", lambda question: 0.2)
        with pytest.raises(EngineError, match="did not answer within 0 s; is it busy with others"):
            rival.answer("plain", question(), never)

    def test_ctrl_c_ends_the_waiting(self, server: Imitation, setup: Setup) -> None:
        rival = at(server, setup)
        server.fault = "hangs"
        with pytest.raises(Stopped):
            rival.answer("plain", question(), lambda: True)

    @pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://localhost:1/v1/"])
    def test_where_nothing_listens_is_said(self, setup: Setup, url: str) -> None:
        with pytest.raises(EngineError, match=rf"^No server answers at {url} \(.+\); start it first\.$"):
            ServerAtUrl(url, setup, never)

    @pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://", "http://127.0.0.1:port"])
    def test_what_is_no_address_is_said(self, setup: Setup, url: str) -> None:
        with pytest.raises(EngineError, match="is no address of a server; write it like"):
            ServerAtUrl(url, setup, never)


@pytest.mark.skipif(os.name == "nt", reason="the imitation is a script with a #! line")
class TestStartedByUs:
    def rival(
        self, made: Program, setup: Setup, kept: Kept, tmp_path: Path, modes: list[str] | None = None
    ) -> ServerProgram:
        return ServerProgram(str(made.path), setup, kept, tmp_path / "rivals.log", modes)

    def test_a_mode_has_a_process_of_its_own_that_ends_with_the_bench(
        self, setup: Setup, kept: Kept, tmp_path: Path
    ) -> None:
        made = program(tmp_path)
        rival = self.rival(made, setup, kept, tmp_path, ["plain", "ngram-simple:4:31"])
        assert rival.version == "1234 (abcdef)"
        for _ in range(2):
            for mode in rival.modes:
                assert rival.answer(mode, question(5, 6, max_tokens=3), never).tokens == (7, 8, 9)
        (plain, plain_flags), (simple, simple_flags) = made.starts()
        assert plain_flags[:8] == ["-m", str(setup.model), "-c", "1040", "-t", "1", "-np", "1"]
        assert "--spec-type" not in plain_flags
        assert simple_flags[-6:] == [
            *("--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "4", "--spec-ngram-simple-size-m", "31")
        ]
        kept.close()
        assert ended(plain) and ended(simple)

    def test_one_that_remembers_gets_a_new_process_for_each_chat(
        self, setup: Setup, kept: Kept, tmp_path: Path
    ) -> None:
        made = program(tmp_path)
        rival = self.rival(made, setup, kept, tmp_path, ["ngram-mod"])
        for _ in range(2):
            assert counters(rival.answer("ngram-mod", question(), never)) == (10, 7)
            rival.answer("ngram-mod", replace(question(5, 6), continues=True), never)
        pids = [pid for pid, _ in made.starts()]
        assert len(set(pids)) == 2
        kept.close()
        assert all(ended(pid) for pid in pids)

    def test_the_draft_model_and_its_length_are_passed_on(self, setup: Setup, kept: Kept, tmp_path: Path) -> None:
        draft = tiny.make(tmp_path / "draft.gguf")
        made = program(tmp_path)
        rival = self.rival(made, setup_of(setup.model, draft=draft), kept, tmp_path)
        assert list(rival.modes) == ["plain", "draft-simple", "ngram-mod", "ngram-simple"]
        rival.answer("draft-simple", question(), never)
        assert made.starts()[0][1][-6:] == [
            *("--spec-type", "draft-simple", "-md", str(draft), "--spec-draft-n-max", "3")
        ]

    def test_an_older_one_has_fewer_modes_and_other_flags(self, setup: Setup, kept: Kept, tmp_path: Path) -> None:
        draft = tiny.make(tmp_path / "draft.gguf")
        made = program(tmp_path, old=True)
        rival = self.rival(made, setup_of(setup.model, draft=draft), kept, tmp_path)
        assert list(rival.modes) == ["plain", "draft-simple"]
        run = rival.answer("draft-simple", question(max_tokens=5), never)
        assert (run.tokens, run.n_tokens, run.drafted) == (None, 5, None)
        assert made.starts()[0][1][-4:] == ["-md", str(draft), "--draft-max", "3"]
        with pytest.raises(EngineError, match="can't be run as ngram-mod: this one is too old for it, or too new"):
            self.rival(made, setup, kept, tmp_path, ["ngram-mod"])

    def test_why_it_refused_to_start_is_said(self, setup: Setup, kept: Kept, tmp_path: Path) -> None:
        rival = self.rival(program(tmp_path, fault="refuses to start"), setup, kept, tmp_path)
        said = r"refused to start \(srv  llama_server: exiting due to model loading error\); its log is"
        with pytest.raises(EngineError, match=said):
            rival.answer("plain", question(), never)

    def test_why_it_died_is_said_and_the_next_answer_starts_it_again(
        self, setup: Setup, kept: Kept, tmp_path: Path
    ) -> None:
        made = program(tmp_path, fault="dies")
        rival = self.rival(made, setup, kept, tmp_path)
        for starts in (1, 2):
            with pytest.raises(
                EngineError, match=r"^The llama\.cpp server died \(GGML_ASSERT\(n_tokens > 0\) failed\)"
            ):
                rival.answer("plain", question(), never)
            assert len(made.starts()) == starts

    def test_ctrl_c_while_it_loads_ends_it(self, setup: Setup, kept: Kept, tmp_path: Path) -> None:
        made = program(tmp_path)
        rival = self.rival(made, setup, kept, tmp_path)
        with pytest.raises(Stopped):
            rival.answer("plain", question(), lambda: True)
        kept.close()
        assert all(ended(pid) for pid, _ in made.starts())

    @pytest.mark.parametrize(
        ("path", "sentence"),
        [("missing/llama-server", "There is no program missing/llama-server"), ("cat", "cat is no llama.cpp server")],
    )
    def test_what_is_no_server_is_said(
        self, setup: Setup, kept: Kept, tmp_path: Path, path: str, sentence: str
    ) -> None:
        with pytest.raises(EngineError, match=sentence):
            ServerProgram(path, setup, kept, tmp_path / "log")


@pytest.mark.parametrize(
    ("mode", "obstacle"),
    [
        ("ngram", "there is no such mode; choose from plain, draft-simple"),
        ("ngram-cache", "this one is too old for it, or too new"),
        ("ngram-simple:0", r"ngram-simple takes up to 2 numbers of 1 to 9999, such as ngram-simple:24:48\."),
        ("ngram-simple:1:2:3", "ngram-simple takes up to 2 numbers"),
        ("plain:3", "plain takes no numbers"),
        ("draft-simple", "no draft model is loaded"),
    ],
)
def test_a_mode_that_cannot_be_is_refused_with_the_reason(mode: str, obstacle: str) -> None:
    with pytest.raises(EngineError, match=f"can't be run as {mode}: {obstacle}"):
        server_modes.flags(mode, Help(HELP), None)


def test_the_usual_modes_are_those_that_the_server_and_the_models_allow() -> None:
    assert server_modes.possible(Help(HELP), DRAFT) == ("plain", "draft-simple", "ngram-mod", "ngram-simple")
    assert server_modes.possible(Help(HELP), None) == ("plain", "ngram-mod", "ngram-simple")
    assert server_modes.possible(Help(OLD_HELP), DRAFT) == ("plain", "draft-simple")


def test_numbers_after_a_mode_are_its_sizes() -> None:
    assert list(server_modes.flags("ngram-mod:12:8:32", Help(HELP), None)) == [
        *("--spec-type", "ngram-mod", "--spec-ngram-mod-n-match", "12"),
        *("--spec-ngram-mod-n-min", "8", "--spec-ngram-mod-n-max", "32"),
    ]
    assert server_modes.described("ngram-simple:4:31") == (
        "--spec-type ngram-simple, ngram-simple-size-n 4, ngram-simple-size-m 31"
    )
    assert server_modes.described("draft-simple:8") == "drafts of up to 8 tokens by the draft model"


def loaded_of(setup: Setup, **other: str) -> tuple[Load, Loaded]:
    loaded = Loaded("model", str(setup.model), "llama.cpp", "CPU, 1 thread", setup.n_ctx, setup.n_vocab)
    return Load(str(setup.model), threads=1), msgspec.structs.replace(loaded, **other)


def test_rivals_are_chosen_by_name_url_or_path_and_take_the_modes_of_their_kind(
    server: Imitation, setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    words, modes = ["llama-cpp-python", server.url], ["plain", "lookup:4", "ngram-mod"]
    if os.name != "nt":
        program(tmp_path)
        words.append("~/llama-server")
    with rivals(words, modes, *loaded_of(setup), tmp_path / "log", never) as chosen:
        assert [list(rival.modes) for rival in chosen] == [
            *(["plain", "lookup:4"], ["plain"]),
            *([["plain", "ngram-mod"]] if os.name != "nt" else []),
        ]


def test_modes_and_programs_that_are_not_there_are_found_out_without_a_model() -> None:
    check(["llama-cpp-python", "transformers", "http://127.0.0.1:1"], ["plain", "lookup:4", "ngram-mod"])
    with pytest.raises(EngineError, match="No rival has a mode fast; llama-cpp-python has plain, lookup, transf"):
        check(["llama-cpp-python"], ["fast"])
    with pytest.raises(EngineError, match="There is no program ~/missing/llama-server to measure against"):
        check(["~/missing/llama-server"], None)


def test_models_of_other_runtimes_have_no_rivals(setup: Setup, tmp_path: Path) -> None:
    ours = loaded_of(setup, backend="torch")
    with rivals((), None, *ours, tmp_path / "log", never) as chosen:
        assert chosen == ()
    with (
        pytest.raises(EngineError, match="model runs in torch: take --engine llamacpp, or --against transformers"),
        rivals(["llama-cpp-python"], None, *ours, tmp_path / "log", never),
    ):
        pass


@pytest.mark.real
@pytest.mark.skipif(not REAL, reason="SPECCHAT_LLAMA_SERVER names no llama-server")
def test_a_real_server_answers_and_drafts_and_starts_empty_each_time(kept: Kept, tmp_path: Path) -> None:
    assert REAL is not None
    model = tiny.make(tmp_path / "model.gguf", cycle=1.0, end=-30)
    draft = tiny.make(tmp_path / "draft.gguf", cycle=1.0, end=-30, noise=0.1)
    rival = ServerProgram(
        str(shutil.which(REAL)),
        setup_of(model, draft=draft),
        kept,
        tmp_path / "rivals.log",
        ["plain", "draft-simple", "ngram-simple:4:31", "ngram-mod:4:1:16"],
    )
    asked = question(*range(20, 60), max_tokens=64)
    text = rival.answer("plain", asked, never).tokens
    assert text is not None and len(text) == 64
    for mode in rival.modes:
        runs = [rival.answer(mode, asked, never) for _ in range(2)]
        assert [run.tokens for run in runs] == [text, text], mode
        # With what ngram-mod keeps of the first answer it would draft most of the second.
        assert counters(runs[0]) == counters(runs[1]), mode
        assert (runs[0].drafted is None) == (mode == "plain")


def counters(run: RivalRun | None) -> tuple[int | None, int | None]:
    assert run is not None
    return run.drafted, run.accepted
