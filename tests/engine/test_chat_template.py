"""Chat templates come from model files: they render as their authors meant, and can do nothing else."""

import json

import pytest

import tiny
from specengine.chat_template import TemplateRefused, render
from specengine.errors import EngineError

CHAT = [{"role": role, "content": text} for role, text in (("user", "Hi"), ("assistant", "Hello"), ("user", "Bye"))]


def test_a_chatml_template_renders_with_its_default_system_prompt() -> None:
    assert render(tiny.CHATML, CHAT[:1]) == (
        "<|im_start|>system\nYou are a tiny model. You are a helpful assistant.<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_generation_prompt_is_left_out_on_request() -> None:
    assert render(tiny.CHATML, CHAT[:1], add_generation_prompt=False).endswith("<|im_end|>\n")


def test_blocks_are_trimmed_as_hugging_face_does() -> None:
    template = "    {% for m in messages %}\n{{ m.content }}\n    {% endfor %}\nend"
    assert render(template, CHAT) == "Hi\nHello\nBye\nend"


def test_templates_may_break_out_of_loops_and_mark_what_was_generated() -> None:
    template = "{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ m.content }}{% endfor %}"
    assert render(template, CHAT) == "Hi"
    assert render("a{% generation %}{{ messages[1].content }}{% endgeneration %}b", CHAT) == "aHellob"


def test_templates_know_the_bos_and_eos_tokens() -> None:
    assert render("{{ bos_token }}{{ messages[0].content + eos_token }}", CHAT, bos="<s>", eos="</s>") == "<s>Hi</s>"


def test_tojson_escapes_nothing_for_html() -> None:
    message = {"role": "user", "content": "<é> & 'x'"}
    assert json.loads(render("{{ messages[0] | tojson }}", [message])) == message
    assert "<é> & 'x'" in render("{{ messages[0] | tojson(indent=2) }}", [message])


def test_the_date_can_be_asked_for() -> None:
    assert render("{{ strftime_now('%Y') }}", CHAT).isdigit()


def test_a_template_that_refuses_the_conversation_says_why() -> None:
    with pytest.raises(TemplateRefused, match="System role not supported"):
        render("{{ raise_exception('System role not supported') }}", CHAT)


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}",
        "{{ messages[0].content.nothing.here }}",
        "{{ 1 / 0 }}",
        "{{ unknown() }}",
        "{% include 'x' %}",
        "{% import 'os' as os %}",
        "{{ messages[9].content.x }}",
    ],
)
def test_a_broken_template_is_one_clear_sentence(template: str) -> None:
    with pytest.raises(EngineError, match=r"chat template can't be used \(.+\); choose another model") as caught:
        render(template, CHAT)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__class__.__init__.__globals__['os'].system('true') }}",
        "{{ raise_exception.__globals__['json'] }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('true').read() }}",
        "{{ '{0.__class__}'.format(messages) }}",
        "{{ messages.append({}) }}",
        "{{ messages[0].update({'role': 'system'}) }}",
        "{{ lipsum.__globals__ }}",
    ],
)
def test_a_template_can_not_leave_its_sandbox(template: str) -> None:
    try:
        assert render(template, CHAT) == ""
    except EngineError as error:
        assert "class 'object'" not in str(error)


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(90000) %}{% for j in range(90000) %}{{ 'spam' * 100 }}{% endfor %}{% endfor %}",
        "{{ 'x' * 10000000000 }}",
        "{{ 10000000000 * 'x' }}",
        "{{ [1] * 10000000000 }}",
        "{{ 9 ** (9 ** 9) }}",
        "{% for i in range(10 ** 10) %}x{% endfor %}",
    ],
)
def test_what_a_template_can_produce_is_bounded(template: str) -> None:
    with pytest.raises(EngineError, match=r"far more than|repeats a text|too large|Range too big"):
        render(template, CHAT)


def test_the_bound_grows_with_the_conversation() -> None:
    long = [{"role": "user", "content": "x" * 3_000_000}]
    assert len(render("{{ messages[0].content }}" * 4, long)) == 12_000_000


def test_the_conversation_is_not_changed_by_rendering() -> None:
    message = {"role": "user", "content": "Hi"}
    render("{% set _ = messages %}{{ messages[0].content }}", [message])
    assert message == {"role": "user", "content": "Hi"}
