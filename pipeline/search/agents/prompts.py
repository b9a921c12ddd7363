"""Prompts: versioned templates and what they show in; messages, with version and digest, out."""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records.record import Record, digest_bytes
from pipeline.records.search.model_attempt import Message, Template

if TYPE_CHECKING:
    import jinja2

FOLDER = Path(__file__).parent / "templates"
SUFFIX = ".md.j2"

_VERSION = re.compile(r"\A\{# version: (\d+) #\}\n")
# Control characters, and what changes the direction of text or does not show at all.
_CONTROL = re.compile(
    r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    r"|[\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_TAG = re.compile(r"<(?=/?data\b)", re.IGNORECASE)


class Prompt(Record, frozen=True, kw_only=True):
    """A template that was filled in."""

    template: Template
    system: str
    user: str

    @property
    def messages(self) -> tuple[Message, ...]:
        """As a conversation begins."""
        return (Message(role="system", content=self.system), Message(role="user", content=self.user))


def render(name: str, values: Mapping[str, object]) -> Prompt:
    """Fill in the template of that name."""
    source = (FOLDER / f"{name}{SUFFIX}").read_bytes()
    template = _environment().get_template(f"{name}{SUFFIX}")
    context = template.new_context(dict(values))
    parts = {block: "".join(template.blocks[block](context)).strip() + "\n" for block in ("system", "user")}
    version = _VERSION.match(source.decode())
    assert version is not None, f"{name}{SUFFIX} does not begin with its version"
    return Prompt(
        template=Template(name=name, version=version[1], digest=digest_bytes(source)),
        system=parts["system"],
        user=parts["user"],
    )


def data(text: str, language: str) -> str:
    """Material in a prompt: it cannot end its own section, and holds nothing that does not show."""
    shown = plain(text)
    longest = max((len(run) for run in re.findall(r"`{3,}", shown)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"<data>\n{fence}{language}\n{shown.rstrip()}\n{fence}\n</data>"


def line(text: str, at_most: int) -> str:
    """One line of material: shortened, without line ends, marks of sections and code fences."""
    flat = " ".join(plain(text).split()).replace("```", "'''")
    return flat if len(flat) <= at_most else flat[: at_most - 1] + "…"


def cut(text: str, at_most: int) -> str:
    """The beginning of a long text, with a mark that tells what is missing."""
    if len(text) <= at_most:
        return text
    return f"{text[:at_most]}\n[… {len(text) - at_most} more characters]\n"


def plain(text: str) -> str:
    """Without characters that do not show, and with nothing that looks like the mark of a section."""
    return _TAG.sub("<\\\\", _CONTROL.sub("", text.replace("\r\n", "\n")))


@functools.cache
def _environment() -> "jinja2.Environment":
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # prompts are no HTML; what is foreign goes through `data` or `line`
    )
    functions: dict[str, Any] = {"data": data}
    environment.globals.update(functions)
    return environment
